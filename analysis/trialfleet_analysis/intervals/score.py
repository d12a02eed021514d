"""Score intervals for a difference of two rates, cell by cell and over strata, by inverting the score test.

The stratified score at difference 0 with weights "mh" is the Cochran-Mantel-Haenszel statistic without continuity
correction; the exact stratified test is another test, and may disagree with these intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from trialfleet_analysis.estimates import (
    NOTHING_MEASURED,
    Counts,
    Floats,
    Integers,
    Interval,
    Intervals,
    floats,
    four_counts,
    normal_quantile,
    strata,
)
from trialfleet_analysis.intervals.constrained import constrained_variance
from trialfleet_analysis.intervals.shapes import answered, unmeasured_arm

Weights: TypeAlias = Literal["equal", "mh"] | Sequence[float] | NDArray[Any]

HALVINGS = 52  # of a bracket at most 2 wide: as fine as a double near 1 resolves


@overload
def miettinen_nurminen(
    passes_a: int, trials_a: int, passes_b: int, trials_b: int, *, level: float = 0.95
) -> Interval: ...
@overload
def miettinen_nurminen(
    passes_a: Counts, trials_a: Counts, passes_b: Counts, trials_b: Counts, *, level: float = 0.95
) -> Intervals: ...
def miettinen_nurminen(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    level: float = 0.95,
) -> Interval | Intervals:
    """Difference of two independent rates, a − b, cell by cell: the differences D that a score test keeps.

    Those with (d − D)² ≤ z² V(D), where V is the variance at the maximum-likelihood rates of difference D, times
    N / (N − 1). Source: Miettinen & Nurminen 1985, Statist. Med. 4:213. Defined also where both arms pass all or
    none. statsmodels 0.14.5 and 0.15.0 give other limits for this method, or raise. Undefined where an arm has no
    trial.

    >>> miettinen_nurminen(56, 70, 48, 80).rounded(4)
    (0.0528, 0.3382)
    >>> miettinen_nurminen(0, 10, 0, 10).rounded(3)
    (-0.288, 0.288)
    """
    counted = four_counts(passes_a, trials_a, passes_b, trials_b)
    z, n_a, n_b = normal_quantile(level), counted[1], counted[3]
    measured = (n_a > 0) & (n_b > 0)
    x_a, of_a, x_b, of_b = (
        np.where(measured, c, least) for c, least in zip(counted, (0.0, 1.0, 0.0, 1.0), strict=True)
    )
    d = floats(x_a / of_a - x_b / of_b)

    def kept(at: Floats) -> NDArray[np.bool_]:
        return (d - at) ** 2 <= z * z * constrained_variance(x_a, of_a, x_b, of_b, at)

    low, high = _outermost(kept, d)
    return answered(
        (d, low, high), n=n_a + n_b, level=level, method="miettinen_nurminen", reason=unmeasured_arm(n_a, n_b)
    )


def stratified_miettinen_nurminen(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    weights: Weights = "equal",
    level: float = 0.95,
) -> Interval:
    """Weighted mean of the strata's differences of rates, a − b, for *these tasks*, with its score interval.

    Counts of shape (T,), one entry per stratum. With weights w_t, the differences D with |z(D)| at most the normal
    quantile, z(D) = Σ w_t (d_t − D) / √Σ w_t² V_t(D), V_t as in `miettinen_nurminen`. `weights`: "equal" is the
    mean over tasks, the estimand; "mh", n_a n_b / (n_a + n_b), reproduces Cochran-Mantel-Haenszel at D = 0; or
    one number per stratum, 0 or more. Source: Miettinen & Nurminen 1985, with the weights fixed.

    Undefined when a stratum of positive weight has an empty arm ("mh" gives it none). One effect D for all strata
    is assumed in V alone: with effects that differ, the estimate is still their weighted mean. Raises `ValueError`
    for weights of another shape, negative, not finite, or all 0.

    >>> stratified_miettinen_nurminen([4, 5, 2], [5, 5, 5], [2, 3, 0], [5, 5, 5]).rounded(3)
    (0.089, 0.662)
    """
    table = _weighted(strata(passes_a, trials_a, passes_b, trials_b), weights)
    z, method = normal_quantile(level), "stratified_miettinen_nurminen"
    if table.reason is not None:
        return Interval(None, None, None, level, table.n, method, "these_tasks", table.reason)
    d = table.estimate

    def kept(at: Floats) -> NDArray[np.bool_]:
        return (d - at) ** 2 <= z * z * table.variance(at)

    low, high = _outermost(kept, np.array(d))
    return Interval(d, float(low), float(high), level, table.n, method, "these_tasks")


def stratified_score_z(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    difference: float,
    *,
    weights: Weights = "equal",
) -> float:
    """z(D) of `stratified_miettinen_nurminen` at D = `difference`: positive when a − b is above it.

    NaN where that interval is undefined; ±∞ at D = ±1, 0 where the strata's rates leave neither a distance nor a
    variance (D = 0 and every stratum at 0 or n). Raises `ValueError` for a difference outside [−1, 1].

    >>> round(stratified_score_z([4, 5, 2], [5, 5, 5], [2, 3, 0], [5, 5, 5], 0.0, weights="mh"), 4)
    2.4054
    """
    if not -1 <= difference <= 1:
        raise ValueError(f"difference must lie between -1 and 1, got {difference}")
    table = _weighted(strata(passes_a, trials_a, passes_b, trials_b), weights)
    if table.reason is not None:
        return math.nan
    distance, variance = table.estimate - difference, float(table.variance(np.array(difference)))
    if variance > 0:
        return distance / math.sqrt(variance)
    return math.copysign(math.inf, distance) if distance else 0.0


@dataclass(frozen=True, eq=False)
class _WeightedStrata:
    """Strata of positive weight, the weights adding up to 1; or the reason why there is no weighted mean."""

    counts: tuple[Floats, Floats, Floats, Floats]
    weights: Floats
    n: int
    reason: str | None

    @property
    def estimate(self) -> float:
        x_a, n_a, x_b, n_b = self.counts
        return float(np.sum(self.weights * (x_a / n_a - x_b / n_b)))

    def variance(self, at: Floats) -> Floats:
        """Of the estimate, if every stratum's difference were `at`; in the shape of `at`."""
        by_stratum = constrained_variance(*self.counts, at[..., None])
        return floats(np.sum(self.weights**2 * by_stratum, axis=-1))


def _weighted(counted: tuple[Integers, Integers, Integers, Integers], weights: Weights) -> _WeightedStrata:
    _, n_a, _, n_b = counted
    w = _resolved(weights, n_a, n_b)
    empty = int(np.sum((w > 0) & ((n_a == 0) | (n_b == 0))))
    kept = w > 0
    x_a, of_a, x_b, of_b = (floats(values[kept]) for values in counted)
    reason = None
    if n_a.size == 0:
        reason = "no strata"
    elif empty:
        reason = f"{empty} of {n_a.size} strata have no valid trial in an arm"
    elif not kept.any():
        reason = f"{NOTHING_MEASURED} in both arms of any stratum"
    total = w.sum() if kept.any() else 1.0
    return _WeightedStrata((x_a, of_a, x_b, of_b), floats(w[kept] / total), int((n_a + n_b)[kept].sum()), reason)


def _resolved(weights: Weights, n_a: Integers, n_b: Integers) -> Floats:
    if isinstance(weights, str):
        if weights == "equal":
            return np.ones(n_a.shape)
        if weights == "mh":
            return floats(n_a * n_b / np.maximum(n_a + n_b, 1))
        raise ValueError(f'weights: "equal", "mh" or an array is wanted, got {weights!r}')
    given = floats(weights)
    if given.shape != n_a.shape:
        raise ValueError(f"weights: shape {n_a.shape} is wanted, got {given.shape}")
    if not np.all(np.isfinite(given)) or np.any(given < 0) or (given.size and not np.any(given > 0)):
        raise ValueError("weights are finite numbers, 0 or more, not all 0")
    return given


def _outermost(kept: Callable[[Floats], NDArray[np.bool_]], estimate: Floats) -> tuple[Floats, Floats]:
    """The ends of the kept differences, by bisection between the estimate, which is kept, and −1 and 1."""
    inside = np.stack([estimate, estimate])
    outside = np.stack([np.full_like(estimate, -1.0), np.full_like(estimate, 1.0)])
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        keep = kept(middle)
        inside, outside = np.where(keep, middle, inside), np.where(keep, outside, middle)
    return floats(outside[0]), floats(outside[1])
