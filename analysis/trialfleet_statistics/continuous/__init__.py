"""Turns, seconds, tokens, money and first edits: what is measured on a scale, compared between two arms.

`arm` is 1 (or True) for a, the treatment, and 0 for b, the control; effects are a − b. Reps are never pooled over
tasks: every method compares within a task and gives each task the same weight. Values that are NaN or infinite
raise `ValueError`, which says how many there are: what was not measured is the caller's to leave out and count.
"""

from trialfleet_statistics.continuous.bootstrap import cliffs_delta, cost_per_pass, hierarchical_bootstrap
from trialfleet_statistics.continuous.permutation import PermutationTest, stratified_permutation
from trialfleet_statistics.continuous.resampling import BootstrapInterval
from trialfleet_statistics.continuous.signed_rank import SignedRankInterval, hodges_lehmann, signed_rank
from trialfleet_statistics.continuous.spread import pool_mean_variation, pool_variation
from trialfleet_statistics.continuous.survival import (
    cumulative_incidence,
    restricted_mean_difference,
    restricted_time_to_pass_difference,
)

__all__ = [
    "BootstrapInterval",
    "PermutationTest",
    "SignedRankInterval",
    "cliffs_delta",
    "cost_per_pass",
    "cumulative_incidence",
    "hierarchical_bootstrap",
    "hodges_lehmann",
    "pool_mean_variation",
    "pool_variation",
    "restricted_mean_difference",
    "restricted_time_to_pass_difference",
    "signed_rank",
    "stratified_permutation",
]
