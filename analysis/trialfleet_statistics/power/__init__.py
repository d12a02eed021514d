"""Planning: the power of the tests that analyse, the reps that an effect needs, the effect that reps detect.

One cell: exact, by enumeration. Several tasks: simulated with the code that analyses. None of it is for results
that are in: power at an effect that was seen says nothing that the p-value does not.
"""

from trialfleet_statistics.power.allocation import (
    Allocation,
    balance_reps,
    best_reps,
    frontier,
    reps_versus_tasks,
    same_trials,
)
from trialfleet_statistics.power.campaigns import (
    Calibrated,
    CampaignEffect,
    Population,
    calibrated,
    campaign_effect,
    campaign_power,
    drawn_rates,
)
from trialfleet_statistics.power.cell import (
    RequiredReps,
    TestName,
    boschloo_power,
    fisher_power,
    minimum_detectable_effect,
    required_reps,
)
from trialfleet_statistics.power.simulated import Analysis, SimulatedPower, stratified_power
from trialfleet_statistics.power.task_rates import DrawnTasks, KnownTasks, TaskRates, shifted
from trialfleet_statistics.power.trend import TrendPower, dosed_rates, trend_power

__all__ = [
    "Allocation",
    "Analysis",
    "Calibrated",
    "CampaignEffect",
    "DrawnTasks",
    "KnownTasks",
    "Population",
    "RequiredReps",
    "SimulatedPower",
    "TaskRates",
    "TestName",
    "TrendPower",
    "balance_reps",
    "best_reps",
    "boschloo_power",
    "calibrated",
    "campaign_effect",
    "campaign_power",
    "dosed_rates",
    "drawn_rates",
    "fisher_power",
    "frontier",
    "minimum_detectable_effect",
    "reps_versus_tasks",
    "required_reps",
    "same_trials",
    "shifted",
    "stratified_power",
    "trend_power",
]
