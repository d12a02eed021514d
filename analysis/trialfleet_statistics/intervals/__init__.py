"""Intervals: for one cell's pass rate, for a condition over its tasks, and for the difference of two conditions.

Counts in, intervals out; nothing is rounded. Scalars give an `Interval` whose numbers are None, with a reason,
where they are undefined; arrays give `Intervals`, NaN and a reason there. `ValueError` for counts that cannot
be: negative, fractional, not finite, more passes than trials, or a level outside (0, 1).
"""

from trialfleet_statistics.intervals.differences import (
    Weights,
    miettinen_nurminen,
    newcombe,
    stratified_miettinen_nurminen,
    stratified_score_z,
)
from trialfleet_statistics.intervals.rates import (
    PooledInterval,
    clopper_pearson,
    effective_sample_wilson,
    jeffreys,
    pooled_fixed,
    pooled_random,
    wilson,
)

__all__ = [
    "PooledInterval",
    "Weights",
    "clopper_pearson",
    "effective_sample_wilson",
    "jeffreys",
    "miettinen_nurminen",
    "newcombe",
    "pooled_fixed",
    "pooled_random",
    "stratified_miettinen_nurminen",
    "stratified_score_z",
    "wilson",
]
