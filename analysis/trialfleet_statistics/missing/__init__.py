"""Missing trials: what they could do to a comparison, and whether conditions lost different numbers.

A trial is missing when its first attempt whose agent started was lost, even if a retry was measured: retries make
a loss that depends on the outcome look ignorable. Losses before the agent started may be replaced, and are not
counted here. `passes`, `valid`, `lost`: per arm, numbers or one entry per stratum; valid trials have a verdict.
"""

from trialfleet_statistics.missing.by_condition import LossTest, loss_by_condition
from trialfleet_statistics.missing.scenarios import (
    ArmCounts,
    Bounds,
    FourCounts,
    Robustness,
    Scenario,
    bounds,
    complete_case,
    lost_as_failed,
    robustness,
)

__all__ = [
    "ArmCounts",
    "Bounds",
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
