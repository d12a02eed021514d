"""When agents first edit, how their turns divide before and after, and what a later first edit goes with.

All of it describes what happened after the treatment began: none of it is a causal effect of an early edit, or of
a hit. What a condition changed is in the contrasts of `first_edit_turn` and `first_edit_s`, which compare arms as
they were assigned. Numbers are of *these tasks* unless a function asks for the estimand."""

from trialfleet_analysis.timing.after import slope_after_first_edit
from trialfleet_analysis.timing.first_edit import median_over_tasks
from trialfleet_analysis.timing.hits import HitGroup, described_by_hit
from trialfleet_analysis.timing.phases import mean_share

__all__ = ["HitGroup", "described_by_hit", "mean_share", "median_over_tasks", "slope_after_first_edit"]
