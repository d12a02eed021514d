"""Missing trials: what they could do to a comparison, and whether conditions lost unequally many.

A trial is missing when its first attempt whose agent started was lost, whatever a retry gave: retries make a loss
that depends on the outcome look ignorable. Losses before the agent started may be replaced, and are not counted
here. `passes`, `valid`, `lost`: per arm, numbers or one entry per stratum; valid trials have a verdict.
"""

from trialfleet_analysis.missing.by_condition import LossTest, loss_by_condition
from trialfleet_analysis.missing.counted import (
    Bounds,
    Counted,
    FourCounts,
    bounds,
    complete_case,
    lost_as_failed,
)
from trialfleet_analysis.missing.robust import Robustness, Scenario, robustness

__all__ = [
    "Bounds",
    "Counted",
    "FourCounts",
    "LossTest",
    "Robustness",
    "Scenario",
    "bounds",
    "complete_case",
    "loss_by_condition",
    "lost_as_failed",
    "robustness",
]
