"""Planning: the power of the tests that analyse, the reps that an effect needs, the effect that reps detect.

One cell: exact, by enumeration. Several tasks: simulated with the code that analyses. None of it is for results
that are in: power at an effect that was seen says nothing that the p-value does not.
"""

from trialfleet_analysis.power.allocation import Design, best_reps, reps_versus_tasks
from trialfleet_analysis.power.campaign_effect import CampaignEffect, campaign_effect, campaign_power
from trialfleet_analysis.power.detectable import minimum_detectable_effect
from trialfleet_analysis.power.exact import boschloo_power, fisher_power
from trialfleet_analysis.power.population import Calibrated, Population, calibrated, drawn_rates
from trialfleet_analysis.power.required import RequiredReps, TestName, required_reps
from trialfleet_analysis.power.simulated import Analysis, SimulatedPower, stratified_power

__all__ = [
    "Analysis",
    "Calibrated",
    "CampaignEffect",
    "Design",
    "Population",
    "RequiredReps",
    "SimulatedPower",
    "TestName",
    "best_reps",
    "boschloo_power",
    "calibrated",
    "campaign_effect",
    "campaign_power",
    "drawn_rates",
    "fisher_power",
    "minimum_detectable_effect",
    "reps_versus_tasks",
    "required_reps",
    "stratified_power",
]
