"""Tests that hold only the arms' sizes fixed, Boschloo's and Barnard's, and the size of the mid-p test.

With both arms at rate π, passes in both are binomial and, given them, the table is hypergeometric. So a region's
probability is Σ_m w_m B(m; N, π), where w_m is the probability of the region given m passes in both: N + 1 numbers
instead of a table. Its supremum over π is found on a grid in φ, π = sin² φ, and refined around every maximum.

Why the grid cannot miss it: at a maximum the curvature in φ is at most 4 N times the value (both terms of the
second derivative of a binomial's logarithm sum to that where the first vanishes). A step of 1 / (16 √N) therefore
loses less than 1 % at the nearest point, and every point within 1 % of the best is refined.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from scipy import special

from trialfleet_statistics.comparisons import hypergeometric
from trialfleet_statistics.comparisons.fisher import (
    answer,
    at_most,
    fisher_design,
    probability,
    table_reasons,
)
from trialfleet_statistics.comparisons.hypergeometric import bounds, log_choose, log_probability
from trialfleet_statistics.estimates import (
    TIES,
    Alternative,
    ArrayTest,
    Counts,
    Floats,
    Integers,
    Tally,
    Test,
    floats,
    four_counts,
    known_alternative,
    one_of,
    share,
)

_STEPS_PER_ROOT = 16
_NEAR_BEST = 0.99
_POINTS = np.linspace(-1.0, 1.0, 17)


def supremum(weights: Floats) -> float:
    """Largest Σ_m w_m B(m; N, π) over π in [0, 1]; `weights`: w_0 … w_N. Relative error below 1e-8."""
    angles, binomials = _grid(weights.size - 1)
    values = binomials @ weights
    best = float(values.max())
    if best >= 1 or best == 0:
        return best
    rises, falls = values[1:] >= values[:-1], values[1:] <= values[:-1]
    peak = values >= _NEAR_BEST * best
    peak[1:] &= rises
    peak[:-1] &= falls
    return max(best, _refined(weights, angles[peak], float(angles[1])))


def exceeds(weights: Floats, limit: float) -> bool:
    """Whether `supremum` is above the limit; the refinement is spared where the grid decides."""
    best = float((_grid(weights.size - 1)[1] @ weights).max())
    if best > limit * (1 + TIES) or best < _NEAR_BEST * limit:
        return best > limit
    return supremum(weights) > limit * (1 + TIES)


def _refined(weights: Floats, centres: Floats, reach: float) -> float:
    """Best value around the centres (φ): each bracket is searched in finer steps, twice, then a parabola is laid
    through the best point and its neighbours. Beyond 0 and π / 2 the value continues as its mirror image."""
    angles, _, best = _searched(weights, centres, reach)
    finer = np.take_along_axis(angles, best, axis=1)[:, 0]
    _, values, best = _searched(weights, finer, reach * float(_POINTS[1] - _POINTS[0]))
    before, here, after = np.take_along_axis(values, best + np.array([-1, 0, 1]), axis=1).T
    bend = 2 * here - before - after
    rise = np.divide((after - before) ** 2, 8 * bend, out=np.zeros_like(bend), where=bend > 0)
    return min(1.0, max(float(values.max()), float((here + rise).max())))


def _searched(weights: Floats, centres: Floats, reach: float) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Angles around each centre, their values, and where the best with two neighbours is: shape (centres, 1)."""
    angles = centres[:, None] + reach * _POINTS
    values = (_binomials(weights.size - 1, angles.ravel()) @ weights).reshape(angles.shape)
    return angles, values, np.clip(np.argmax(values, axis=1), 1, _POINTS.size - 2)[:, None]


@lru_cache(maxsize=4)
def _grid(trials: int) -> tuple[Floats, Floats]:
    angles = np.linspace(0.0, np.pi / 2, int(np.ceil(_STEPS_PER_ROOT * np.sqrt(trials) * np.pi / 2)) + 1)
    return angles, _binomials(trials, angles)


def _binomials(trials: int, angles: Floats) -> Floats:
    """B(m; N, sin² φ), shape (angles, N + 1)."""
    passes = np.arange(trials + 1)
    hit, miss = np.sin(angles)[:, None] ** 2, np.cos(angles)[:, None] ** 2
    miss[hit == 1] = 0.0  # at the float nearest to π / 2 the cosine is not 0
    return floats(np.exp(log_choose(trials) + special.xlogy(passes, hit) + special.xlogy(trials - passes, miss)))


Mask: TypeAlias = NDArray[np.bool_]
Found: TypeAlias = tuple[float, float, float]  # p, the statistic, the least p that these arms allow


def size(region: Mask, n_a: int, n_b: int) -> float:
    """Probability of the region at the worst common pass rate."""
    return supremum(weights(region, n_a, n_b))


def weights(region: Mask, n_a: int, n_b: int) -> Floats:
    """Probability of the region given the passes in both arms, for 0 … n_a + n_b of them."""
    chances, passes = _space(n_a, n_b)
    return floats(np.bincount(passes[region], weights=chances[region], minlength=n_a + n_b + 1))


@lru_cache(maxsize=4)
def _space(n_a: int, n_b: int) -> tuple[Floats, Integers]:
    return hypergeometric.conditional(n_a, n_b), hypergeometric.totals(n_a, n_b)


def each_table(
    passes_a: Tally,
    trials_a: Tally,
    passes_b: Tally,
    trials_b: Tally,
    one: Callable[[int, int, int, int], Found],
    method: str,
    alternative: Alternative,
) -> Test | ArrayTest:
    """Every different table once, designs together so that their tables stay cached."""
    x_a, n_a, x_b, n_b = four_counts(passes_a, trials_a, passes_b, trials_b)
    reasons = table_reasons(n_a, n_b, x_a + x_b)
    tables = np.stack([np.ravel(values) for values in (n_a, n_b, x_a, x_b)], axis=1)
    different, place = np.unique(tables, axis=0, return_inverse=True)
    found = np.full((len(different), 3), np.nan)
    for row, (trials_one, trials_two, in_one, in_two) in enumerate(different.tolist()):
        if trials_one and trials_two:
            found[row] = one(in_one, in_two, trials_one, trials_two)
    p_value, statistic, least = (found[place.ravel(), column].reshape(x_a.shape) for column in range(3))
    informative = np.where(reasons == None, n_a + n_b, 0)  # noqa: E711 (elementwise)
    return answer(
        probability(p_value),
        floats(statistic),
        probability(least),
        informative,
        reasons,
        method=method,
        alternative=alternative,
    )


Convention = Literal["central", "minlike"]


@overload
def boschloo(
    passes_a: int,
    trials_a: int,
    passes_b: int,
    trials_b: int,
    *,
    convention: Convention = "central",
    alternative: Alternative = "two-sided",
) -> Test: ...
@overload
def boschloo(
    passes_a: Counts,
    trials_a: Counts,
    passes_b: Counts,
    trials_b: Counts,
    *,
    convention: Convention = "central",
    alternative: Alternative = "two-sided",
) -> ArrayTest: ...
def boschloo(
    passes_a: Tally,
    trials_a: Tally,
    passes_b: Tally,
    trials_b: Tally,
    *,
    convention: Convention = "central",
    alternative: Alternative = "two-sided",
) -> Test | ArrayTest:
    """Boschloo's exact test of equal pass rates: Fisher's p as the statistic, no margin but the arms fixed.

    p = sup over π of P(Fisher's p ≤ the observed one) with both arms at rate π, tables within 1e-7 of each other
    tied; never above Fisher's p of the same convention, at nominal size. Two-sided: "central" is twice the smaller
    one-sided p, "minlike" takes the two-sided Fisher p as the statistic; they differ (1/5 v 6/7: .0464, .0386), so
    name the one used. Source: Boschloo 1970. `statistic`: Fisher's p that was ordered by (central: that of the
    smaller side). `attainable_p`: the least p of any table with these arms. `n_informative`: trials in both arms,
    0 where all passed or none did.

    Undefined (None, NaN in arrays) where an arm has no trial. Raises `ValueError` for counts that cannot be.
    Memory and time grow with trials_a x trials_b.

    >>> found = boschloo(1, 5, 6, 7)
    >>> round(found.p_value, 4), round(boschloo(1, 5, 6, 7, convention="minlike").p_value, 4)
    (0.0464, 0.0386)
    """
    conventional(convention)
    known_alternative(alternative)
    central = alternative == "two-sided" and convention == "central"
    one = _central if central else partial(_one_statistic, alternative=alternative)
    method = f"boschloo, {convention}" if alternative == "two-sided" else "boschloo"
    return each_table(passes_a, trials_a, passes_b, trials_b, one, method, alternative)


def boschloo_rejects(
    n_a: int, n_b: int, *, alpha: float, convention: Convention = "central", alternative: Alternative = "two-sided"
) -> Mask:
    """Which tables of a design Boschloo's test rejects: shape (n_a + 1, n_b + 1), rows passes in a; read-only.

    >>> boschloo_rejects(5, 5, alpha=0.05).sum()
    np.int64(6)
    """
    return _rejects(n_a, n_b, share(alpha, "alpha"), conventional(convention), known_alternative(alternative))


def conventional(convention: Convention) -> Convention:
    """Raises `ValueError` unless it is a two-sided convention."""
    return one_of(Convention, convention, "convention")


@lru_cache(maxsize=128)
def _rejects(n_a: int, n_b: int, alpha: float, convention: Convention, alternative: Alternative) -> Mask:
    if alternative == "two-sided" and convention == "central":
        greater = _rejects(n_a, n_b, alpha / 2, convention, "greater")
        mask = greater | (greater.T if n_a == n_b else _rejects(n_a, n_b, alpha / 2, convention, "less"))
    else:
        mask = _largest_region(fisher_design(n_a, n_b, alternative), n_a, n_b, alpha)
    mask.setflags(write=False)
    return mask


def _largest_region(statistic: Floats, n_a: int, n_b: int, alpha: float) -> Mask:
    """All tables with p ≤ alpha: p grows with the statistic, so the last value that holds is found by halving.
    Fisher's own region always holds."""
    ascending = np.sort(statistic, axis=None)
    holds, fails = int(np.count_nonzero(at_most(ascending, alpha))) - 1, ascending.size
    while fails - holds > 1:
        middle = (holds + fails) // 2
        region = at_most(statistic, float(ascending[middle]))
        holds, fails = (holds, middle) if exceeds(weights(region, n_a, n_b), alpha) else (middle, fails)
    return at_most(statistic, float(ascending[holds])) if holds >= 0 else np.zeros(statistic.shape, dtype=np.bool_)


def _one_statistic(x_a: int, x_b: int, n_a: int, n_b: int, alternative: Alternative) -> Found:
    """p, the statistic, and the least p that these arms allow."""
    if alternative == "less":  # fewer passes are more failures
        return _one_statistic(n_a - x_a, n_b - x_b, n_a, n_b, "greater")
    observed = float(fisher_design(n_a, n_b, alternative)[x_a, x_b])
    return _size(n_a, n_b, alternative, observed), observed, _least(n_a, n_b, alternative)


@lru_cache(maxsize=1024)  # tables with pass and fail exchanged share their statistic
def _size(n_a: int, n_b: int, alternative: Alternative, observed: float) -> float:
    return size(at_most(fisher_design(n_a, n_b, alternative), observed), n_a, n_b)


@lru_cache(maxsize=64)
def _least(n_a: int, n_b: int, alternative: Alternative) -> float:
    statistic = fisher_design(n_a, n_b, alternative)
    return size(at_most(statistic, float(statistic.min())), n_a, n_b)


def _central(x_a: int, x_b: int, n_a: int, n_b: int) -> Found:
    sides: tuple[Alternative, ...] = ("greater", "less")
    greater, less = (_one_statistic(x_a, x_b, n_a, n_b, side) for side in sides)
    p_value, statistic, _ = min(greater, less)
    return min(1.0, 2 * p_value), statistic, min(1.0, 2 * min(greater[2], less[2]))


@overload
def barnard(
    passes_a: int,
    trials_a: int,
    passes_b: int,
    trials_b: int,
    *,
    pooled: bool = True,
    alternative: Alternative = "two-sided",
) -> Test: ...
@overload
def barnard(
    passes_a: Counts,
    trials_a: Counts,
    passes_b: Counts,
    trials_b: Counts,
    *,
    pooled: bool = True,
    alternative: Alternative = "two-sided",
) -> ArrayTest: ...
def barnard(
    passes_a: Tally,
    trials_a: Tally,
    passes_b: Tally,
    trials_b: Tally,
    *,
    pooled: bool = True,
    alternative: Alternative = "two-sided",
) -> Test | ArrayTest:
    """Barnard's exact test of equal pass rates, ordered by the Wald z of the difference.

    z = (p_a − p_b) / √V with V = p (1 − p) (1/n_a + 1/n_b) of both arms `pooled`, or Σ p_i (1 − p_i) / n_i; 0
    where the rates are equal, infinite where they differ and V is 0. p = sup over π of P(|z| ≥ the observed one),
    for "greater" and "less" by the signed z. Values within 1e-7 are ties: a plain float comparison loses them and
    gives p too small (3/5 v 0/5: .058 for .0618). Source: Barnard 1947; Suissa & Shuster 1985. `attainable_p`: the
    least p of any table with these arms. `n_informative`: trials in both arms, 0 where all passed or none did.

    Undefined (None, NaN in arrays) where an arm has no trial. Raises `ValueError` for counts that cannot be.

    >>> round(barnard(3, 5, 0, 5).p_value, 4), round(barnard(4, 5, 0, 5, pooled=False).p_value, 4)
    (0.0618, 0.0215)
    """
    known_alternative(alternative)
    method = f"barnard, {'pooled' if pooled else 'unpooled'}"
    one = partial(_barnard, pooled=pooled, alternative=alternative)
    return each_table(passes_a, trials_a, passes_b, trials_b, one, method, alternative)


def _barnard(x_a: int, x_b: int, n_a: int, n_b: int, pooled: bool, alternative: Alternative) -> Found:
    z = wald(n_a, n_b, pooled)
    limit = float(_extreme(z[x_a, x_b], alternative))
    return (
        _barnard_size(n_a, n_b, pooled, alternative, limit),
        float(z[x_a, x_b]),
        _barnard_least(n_a, n_b, pooled, alternative),
    )


@lru_cache(maxsize=1024)  # tables with pass and fail exchanged share their |z|
def _barnard_size(n_a: int, n_b: int, pooled: bool, alternative: Alternative, limit: float) -> float:
    return size(_at_least(_extreme(wald(n_a, n_b, pooled), alternative), limit), n_a, n_b)


@lru_cache(maxsize=64)
def _barnard_least(n_a: int, n_b: int, pooled: bool, alternative: Alternative) -> float:
    extreme = _extreme(wald(n_a, n_b, pooled), alternative)
    return size(_at_least(extreme, float(extreme.max())), n_a, n_b)


def _extreme(z: Floats, alternative: Alternative) -> Floats:
    return {"two-sided": np.abs(z), "greater": z, "less": -z}[alternative]


def _at_least(values: Floats, limit: float) -> Mask:
    return values >= limit - (abs(limit) * TIES if np.isfinite(limit) else 0.0)


@lru_cache(maxsize=4)
def wald(n_a: int, n_b: int, pooled: bool) -> Floats:
    """Wald's z of p_a − p_b for every table, shape (n_a + 1, n_b + 1); exactly 0 where the rates are equal."""
    x_a, x_b = np.arange(n_a + 1)[:, None], np.arange(n_b + 1)[None, :]
    crossed = x_a * n_b - x_b * n_a
    if pooled:
        passes = x_a + x_b
        variance = passes * (n_a + n_b - passes) / ((n_a + n_b) * float(n_a) * n_b)
    else:
        variance = x_a * (n_a - x_a) / float(n_a) ** 3 + x_b * (n_b - x_b) / float(n_b) ** 3
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(crossed == 0, 0.0, crossed / (float(n_a) * n_b) / np.sqrt(variance))


def midp_size(trials_a: int, trials_b: int, *, alpha: float = 0.05) -> float:
    """The largest probability, over all common pass rates, that `stratified_exact` rejects in a single stratum.

    Exact: mid-p, central, of every table. Mid-p keeps alpha on average over what the totals may be, not at every
    rate, so that this may lie above it. Over several tasks there is no such number: it depends on every task's
    rate. 0 where no table is rejected. Raises `ValueError` for trials below 0 and alpha outside (0, 1).

    >>> [round(midp_size(n, n), 3) for n in (5, 25, 50, 100)]
    [0.021, 0.046, 0.057, 0.056]
    """
    share(alpha, "alpha")
    if min(trials_a, trials_b) < 0:
        raise ValueError(f"trials must be 0 or more, got {trials_a} and {trials_b}")
    return _midp_size(trials_a, trials_b, alpha)


@lru_cache(maxsize=256)
def _midp_size(n_a: int, n_b: int, alpha: float) -> float:
    return supremum(floats([_rejected(n_a, n_b, passes, alpha) for passes in range(n_a + n_b + 1)]))


def _rejected(n_a: int, n_b: int, passes: int, alpha: float) -> float:
    """Given the passes in both arms."""
    arms = [np.array([n]) for n in (n_a, n_b, passes)]
    low, high = (int(limit[0]) for limit in bounds(arms[0], arms[1], arms[2]))
    x = np.arange(low, high + 1)
    chances = np.exp(log_probability(x, *(np.full_like(x, n) for n in (n_a, n_b, passes))))
    less, greater = _middle(chances), _middle(chances[::-1])[::-1]
    return float(chances[at_most(floats(2 * np.minimum(less, greater)), alpha)].sum())


def _middle(chances: Floats) -> Floats:
    """P(X < x) + P(X = x) / 2."""
    return floats(np.cumsum(chances) - chances / 2)
