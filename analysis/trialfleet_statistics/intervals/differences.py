"""Intervals for a difference of two rates: the score test inverted, by cell and over strata; Newcombe's.

The stratified score at difference 0 with weights "mh" is the Cochran-Mantel-Haenszel statistic without continuity
correction; the exact stratified test is another test, and may disagree with these intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from trialfleet_statistics.estimates import (
    NOTHING_MEASURED,
    Counts,
    Floats,
    Integers,
    Interval,
    Intervals,
    Tally,
    floats,
    four_counts,
    normal_quantile,
    state_lack,
    strata,
)
from trialfleet_statistics.intervals.rates import answered, unmeasured_arm, wilson_limits


def constrained_rate_b(x_a: Floats, n_a: Floats, x_b: Floats, n_b: Floats, difference: Floats) -> Floats:
    """The maximum-likelihood rate of arm b when p_a = p_b + difference, elementwise; both arms have trials.

    The score equation is a cubic in p_b with one root in the allowed range; the trigonometric solution takes
    sign(0) = +1, since a 0 there would make NaN of cells that are well defined. Source: Miettinen & Nurminen
    1985, appendix.
    """
    n, d = n_a + n_b, difference
    squared = ((n_a + 2 * n_b) * d - n - x_a - x_b) / (3 * n)
    linear = ((n_b * d - n - 2 * x_b) * d + x_a + x_b) / (3 * n)
    constant = x_b * d * (1 - d) / (2 * n)
    c = squared * (squared * squared - 1.5 * linear) + constant
    size = np.sqrt(np.maximum(squared * squared - linear, 0.0))
    b = np.copysign(size, c + 0.0)  # which makes +0 of −0
    cosine = np.divide(c, b * b * b, out=np.zeros_like(c), where=b != 0)
    angle = (np.pi + np.arccos(np.minimum(np.maximum(cosine, -1.0), 1.0))) / 3
    root = 2 * b * np.cos(angle) - squared
    return floats(np.minimum(np.maximum(root, np.maximum(0.0, -d)), np.minimum(1.0, 1.0 - d)))


def constrained_variance(x_a: Floats, n_a: Floats, x_b: Floats, n_b: Floats, difference: Floats) -> Floats:
    """Variance of the difference of the two rates at `constrained_rate_b`, times N / (N − 1)."""
    p_b = constrained_rate_b(x_a, n_a, x_b, n_b, difference)
    p_a = np.minimum(np.maximum(p_b + difference, 0.0), 1.0)
    n = n_a + n_b
    return floats((p_a * (1 - p_a) / n_a + p_b * (1 - p_b) / n_b) * n / (n - 1))


Weights: TypeAlias = Literal["equal", "mh"] | Sequence[float] | NDArray[Any]

HALVINGS = 52  # of a bracket at most 2 wide: as fine as a double near 1 resolves
AT_ONCE = 4  # halvings, of what is small: 15 differences cost hardly more than one
SMALL = 128  # strata of all differences


@overload
def miettinen_nurminen(
    passes_a: int, trials_a: int, passes_b: int, trials_b: int, *, level: float = 0.95
) -> Interval: ...
@overload
def miettinen_nurminen(
    passes_a: Counts, trials_a: Counts, passes_b: Counts, trials_b: Counts, *, level: float = 0.95
) -> Intervals: ...
def miettinen_nurminen(
    passes_a: Tally, trials_a: Tally, passes_b: Tally, trials_b: Tally, *, level: float = 0.95
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
    passes_a: Tally,
    trials_a: Tally,
    passes_b: Tally,
    trials_b: Tally,
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
    low, high = _stratified_limits(
        tuple(tuple(c.tolist()) for c in table.counts), tuple(table.weights.tolist()), z
    )
    return Interval(d, low, high, level, table.n, method, "these_tasks")


@lru_cache(maxsize=1024)  # one report asks for the same interval five times, for as many of its tables
def _stratified_limits(
    counted: tuple[tuple[float, ...], ...], weights: tuple[float, ...], z: float
) -> tuple[float, float]:
    x_a, n_a, x_b, n_b = (floats(values) for values in counted)
    table = _WeightedStrata((x_a, n_a, x_b, n_b), floats(weights), 0, None)
    d = table.estimate

    def kept(at: Floats) -> NDArray[np.bool_]:
        return (d - at) ** 2 <= z * z * table.variance(at)

    low, high = _outermost(kept, np.array(d), strata=len(weights))
    return float(low), float(high)


def stratified_score_z(
    passes_a: Tally,
    trials_a: Tally,
    passes_b: Tally,
    trials_b: Tally,
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
        return float((self.weights * (x_a / n_a - x_b / n_b)).sum())

    def variance(self, at: Floats) -> Floats:
        """Of the estimate, if every stratum's difference were `at`; in the shape of `at`."""
        by_stratum = constrained_variance(*self.counts, at[..., None])
        return floats((self.weights**2 * by_stratum).sum(axis=-1))


def _weighted(counted: tuple[Integers, Integers, Integers, Integers], weights: Weights) -> _WeightedStrata:
    _, n_a, _, n_b = counted
    w = resolved_weights(weights, n_a, n_b)
    empty = int(np.sum((w > 0) & ((n_a == 0) | (n_b == 0))))
    kept = w > 0
    x_a, of_a, x_b, of_b = (floats(values[kept]) for values in counted)
    reason = None
    if n_a.size == 0:
        reason = "no strata"
    elif empty:
        reason = state_lack(empty, n_a.size, "stratum", "no valid trial in an arm")
    elif not kept.any():
        reason = f"{NOTHING_MEASURED} in both arms of any stratum"
    total = w.sum() if kept.any() else 1.0
    return _WeightedStrata((x_a, of_a, x_b, of_b), floats(w[kept] / total), int((n_a + n_b)[kept].sum()), reason)


def resolved_weights(weights: Weights, n_a: Integers, n_b: Integers) -> Floats:
    if isinstance(weights, str):
        if weights == "equal":
            return np.ones(n_a.shape)
        if weights == "mh":
            return floats(n_a * n_b / np.maximum(n_a + n_b, 1))
        raise ValueError(f'weights: expected "equal", "mh" or an array, got {weights!r}')
    given = floats(weights)
    if given.shape != n_a.shape:
        raise ValueError(f"weights: expected shape {n_a.shape}, got {given.shape}")
    if not np.all(np.isfinite(given)) or np.any(given < 0) or (given.size and not np.any(given > 0)):
        raise ValueError("weights are finite numbers, 0 or more, not all 0")
    return given


def _outermost(
    kept: Callable[[Floats], NDArray[np.bool_]], estimate: Floats, *, strata: int = 1
) -> tuple[Floats, Floats]:
    """The ends of the kept differences, by bisection between the estimate, which is kept, and −1 and 1. `kept` is
    asked at once about all middles that the next halvings may reach."""
    inside, outside = np.tile(estimate.ravel(), 2), np.repeat([-1.0, 1.0], estimate.size)
    at_once = AT_ONCE if estimate.size * strata <= SMALL else 1
    cells, asked = np.arange(inside.size), 2**at_once - 1
    for _ in range(HALVINGS // at_once):
        inner, outer, middles = inside[None], outside[None], list[Floats]()
        for _ in range(at_once):  # bracket k becomes k, where its middle is not kept, and k + as many as there are
            middles.append((inner + outer) / 2)
            inner, outer = np.concatenate([inner, middles[-1]]), np.concatenate([middles[-1], outer])
        keep = kept(np.concatenate(middles).reshape(asked, 2, *estimate.shape)).reshape(asked, inside.size)
        place = np.zeros_like(cells)
        for halving in range(at_once):
            place += keep[2**halving - 1 + place, cells] << halving
        inside, outside = inner[place, cells], outer[place, cells]
    low, high = outside.reshape(2, *estimate.shape)
    return floats(low), floats(high)


@overload
def newcombe(passes_a: int, trials_a: int, passes_b: int, trials_b: int, *, level: float = 0.95) -> Interval: ...
@overload
def newcombe(
    passes_a: Counts, trials_a: Counts, passes_b: Counts, trials_b: Counts, *, level: float = 0.95
) -> Intervals: ...
def newcombe(
    passes_a: Tally, trials_a: Tally, passes_b: Tally, trials_b: Tally, *, level: float = 0.95
) -> Interval | Intervals:
    """Difference of two independent rates, a − b, cell by cell: Newcombe's method 10, uncorrected.

    With Wilson's limits l, u of each rate: low = d − √((p_a − l_a)² + (u_b − p_b)²), high = d + √((u_a − p_a)² +
    (p_b − l_b)²). Source: Newcombe 1998, Statist. Med. 17:873. Never leaves [−1, 1]. Not the inversion of a test:
    it may disagree with an exact test, and near a boundary `miettinen_nurminen` covers better. Undefined where
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
