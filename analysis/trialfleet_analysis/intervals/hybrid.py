"""Newcombe's interval for a difference of two rates, from the two rates' own Wilson intervals."""

from __future__ import annotations

from typing import overload

import numpy as np

from trialfleet_analysis.estimates import Counts, Interval, Intervals, floats, four_counts, normal_quantile
from trialfleet_analysis.intervals.shapes import answered, unmeasured_arm
from trialfleet_analysis.intervals.single import wilson_limits


@overload
def newcombe(passes_a: int, trials_a: int, passes_b: int, trials_b: int, *, level: float = 0.95) -> Interval: ...
@overload
def newcombe(
    passes_a: Counts, trials_a: Counts, passes_b: Counts, trials_b: Counts, *, level: float = 0.95
) -> Intervals: ...
def newcombe(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    level: float = 0.95,
) -> Interval | Intervals:
    """Difference of two independent rates, a − b, cell by cell: Newcombe's method 10, uncorrected.

    With Wilson's limits l, u of each rate: low = d − √((p_a − l_a)² + (u_b − p_b)²), high = d + √((u_a − p_a)² +
    (p_b − l_b)²). Source: Newcombe 1998, Statist. Med. 17:873. Never leaves [−1, 1]. Not the inversion of a test:
    beside an exact test it may disagree, and near a boundary `miettinen_nurminen` covers better. Undefined where
    an arm has no trial.

    >>> newcombe(56, 70, 48, 80).rounded(4)
    (0.0524, 0.3339)
    """
    xa, na, xb, nb = four_counts(passes_a, trials_a, passes_b, trials_b)
    z = normal_quantile(level)
    low_a, high_a = wilson_limits(floats(xa), floats(na), z)
    low_b, high_b = wilson_limits(floats(xb), floats(nb), z)
    with np.errstate(invalid="ignore"):
        p_a, p_b = floats(xa / na), floats(xb / nb)
    low = np.maximum(-1.0, p_a - p_b - np.hypot(p_a - low_a, high_b - p_b))
    high = np.minimum(1.0, p_a - p_b + np.hypot(high_a - p_a, p_b - low_b))
    return answered(
        (floats(p_a - p_b), floats(low), floats(high)),
        n=na + nb,
        level=level,
        method="newcombe",
        reason=unmeasured_arm(na, nb),
    )
