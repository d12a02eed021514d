"""Arms of ascending doses within strata: does the pass rate rise, or fall, with the dose?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy import special

from trialfleet_statistics.comparisons.convolution import convolved
from trialfleet_statistics.estimates import (
    LEAST,
    Floats,
    Integers,
    Interval,
    Test,
    counts,
    floats,
    normal_quantile,
)

__all__ = ["DoseSlope", "TrendTest", "dose_slope", "stratified_trend"]

_FINENESS = 100
SEPARATED = "passes are at the end of what the totals allow: no finite slope is the likeliest"
NO_TREND = "no informative stratum: in each, fewer than two doses have trials, every trial passed, or none did"


@dataclass(frozen=True)
class TrendTest(Test):
    """`mean`, `variance`: of the statistic, given the margins. `direction`: 1 if passes rise with the dose, beyond
    what equal rates lead to expect, −1 if they fall, 0 at the mean."""

    mean: float = 0.0
    variance: float = 0.0
    direction: int = 0

    @property
    def z(self) -> float | None:
        """(W − E) / √V: the normal approximation. None without variance."""
        if self.statistic is None or not self.variance:
            return None
        return (self.statistic - self.mean) / math.sqrt(self.variance)


def stratified_trend(
    passes: NDArray[Any] | Sequence[Sequence[int]],
    trials: NDArray[Any] | Sequence[Sequence[int]],
    doses: Sequence[int],
    *,
    midp: bool = True,
    weights: Literal["mh", "equal"] = "mh",
) -> TrendTest:
    """Exact conditional trend test, counts of shape (T, J): one stratum (task) a row, one dose a column.

    W = Σ_t Σ_j d_j x_tj for whole-numbered doses d. Given a stratum's trials n_j and its passes m, Σ_j d_j x_j has
    the probabilities of the coefficients of z^m in Π_j Σ_k C(n_j, k) z^k q^(d_j k); strata are convolved.
    Two-sided, central: 2 min(P(W < w), P(W > w)) + P(W = w) for `midp`, else 2 min(P(W ≤ w), P(W ≥ w)), at most
    1. Source: Cochran 1954; Armitage 1955; Mantel 1963, made exact. With doses 0, 1 it is `stratified_exact` with
    the same `weights`. Only the distances between doses matter.

    `weights` "equal": W = Σ_t Σ_j (d_j − d̄) / n_tj x_tj, which is the slope of the mean rates but for a
    constant, in whole numbers of two digits or more; the direction is that slope's. Every stratum needs trials
    at every dose. With as many trials in all cells it is the same test.

    `attainable_p`: the least p that the margins allow; without an informative stratum p is 1, and the reason says
    so. Raises `ValueError` for counts that cannot be, and for doses that are not ascending whole numbers.

    >>> found = stratified_trend([[1, 2, 4], [0, 3, 3], [2, 1, 4]], [[5, 5, 5], [5, 5, 5], [5, 5, 4]], [0, 1, 2])
    >>> round(found.p_value, 6), found.n_informative, found.direction
    (0.001904, 3, 1)
    """
    x, n = counts(passes, trials)
    dose = np.asarray(doses)
    if x.ndim != 2 or dose.shape != x.shape[1:] or dose.size < 2:
        raise ValueError(f"expected counts of shape (T, J) and J doses, two or more; got {x.shape}, {dose.shape}")
    if dose.dtype.kind not in "iu" or (np.diff(dose) <= 0).any():
        raise ValueError("doses are whole numbers in ascending order")
    if weights == "equal" and not n.all():
        raise ValueError("equal weights need trials at every dose of every stratum")
    method, told = "stratified_trend" + (", mid-p" if midp else ""), _telling(x, n)
    each = _steps(n, dose) if weights == "equal" else np.broadcast_to(dose, n.shape)
    statistic, (mean, variance) = float((x * each).sum()), _moments(x, n, each)
    if not told.any():
        return TrendTest(1.0, statistic, method, "two-sided", 1.0, 0, NO_TREND, mean, variance)
    steps = each - each.min(axis=1, keepdims=True)
    steps = steps // max(1, int(np.gcd.reduce(steps, axis=None)))
    low, chances = _distribution(x[told].sum(axis=1), n[told], steps[told])
    at = int((x[told] * steps[told]).sum()) - low
    possible = np.flatnonzero(chances)
    moved = statistic - mean if weights == "mh" else _mean_slope(x, n, dose)
    return TrendTest(
        _central(chances, at, midp=midp),
        statistic,
        method,
        "two-sided",
        min(_central(chances, int(end), midp=midp) for end in (possible[0], possible[-1])),
        int(told.sum()),
        None,
        mean,
        variance,
        int(np.sign(round(moved, 9))),
    )


def _steps(n: Integers, dose: Integers) -> Integers:
    """(d_j − d̄) / n_tj in whole numbers: exact where cells have as many trials, else the largest is at least
    `_FINENESS`."""
    centred = dose * dose.size - dose.sum()
    if not n.size or np.ptp(n) == 0:
        return np.broadcast_to(centred // int(np.gcd.reduce(centred)), n.shape)
    each = centred / n
    return np.asarray(np.rint(each * (_FINENESS / np.abs(each).max())), dtype=np.int64)


def _mean_slope(x: Integers, n: Integers, dose: Integers) -> float:
    """The slope of the doses' mean rates, but for a factor above 0."""
    return float((dose - dose.mean()) @ (x / n).mean(axis=0))


@dataclass(frozen=True)
class DoseSlope:
    """`slope`: logits per unit of dose, its limits and standard error; `odds_ratio`: of passing at the highest
    dose against the lowest, exp(slope × their distance). None with the `reason`."""

    slope: float | None
    se: float | None
    low: float | None
    high: float | None
    odds_ratio: Interval
    level: float
    reason: str | None = None


def dose_slope(
    passes: NDArray[Any] | Sequence[Sequence[int]],
    trials: NDArray[Any] | Sequence[Sequence[int]],
    doses: Sequence[int],
    *,
    level: float = 0.95,
) -> DoseSlope:
    """Logistic regression on the dose with an effect of every informative stratum, counts as in
    `stratified_trend`: how large, where the exact test says whether. Wald limits.

    Strata of few trials draw the slope away from 0, by about 1 / (trials − 1) of it. Undefined where the test has
    no information, and where W is the least or the largest that the margins allow.

    >>> found = dose_slope([[1, 2, 4], [0, 3, 3], [2, 1, 4]], [[5, 5, 5], [5, 5, 5], [5, 5, 4]], [0, 1, 2])
    >>> round(found.slope or 0, 4), round(found.se or 0, 4), found.odds_ratio.rounded(2)
    (1.3798, 0.4686, (2.52, 99.12))
    """
    x, n = counts(passes, trials)
    test = stratified_trend(passes, trials, doses)
    reach = float(doses[-1] - doses[0])
    told = _telling(x, n)
    if test.n_informative == 0 or not reach:
        return no_slope(test.reason or NO_TREND, level)
    if _at_an_end(x[told], n[told], np.asarray(doses)):
        return no_slope(SEPARATED, level)
    slope, se = _fitted(x[told], n[told], (np.asarray(doses) - doses[0]) / reach)
    z = normal_quantile(level)
    low, high = slope - z * se, slope + z * se
    odds = Interval(
        math.exp(slope), math.exp(low), math.exp(high), level, int(n.sum()), "logistic regression", "these_tasks"
    )
    return DoseSlope(slope / reach, se / reach, low / reach, high / reach, odds, level)


def no_slope(reason: str, level: float) -> DoseSlope:
    """Undefined, with the reason."""
    odds = Interval(None, None, None, level, 0, "logistic regression", "these_tasks", reason)
    return DoseSlope(None, None, None, None, odds, level, reason)


def _telling(x: Integers, n: Integers) -> NDArray[np.bool_]:
    """Strata with trials at two doses or more, in which some trials passed and some did not."""
    return np.asarray(((n > 0).sum(axis=1) > 1) & (x.sum(axis=1) > 0) & (x.sum(axis=1) < n.sum(axis=1)))


def _at_an_end(x: Integers, n: Integers, dose: Integers) -> bool:
    """Whether in every stratum the passes lie as low, or in every one as high, as its margins allow: with a slope
    of −∞ or ∞ no outcome would be likelier."""
    passed = x.sum(axis=1)
    own = x @ dose
    highest = [_filled(int(m), row[::-1]) @ dose[::-1] for m, row in zip(passed, n, strict=True)]
    lowest = [_filled(int(m), row) @ dose for m, row in zip(passed, n, strict=True)]
    return bool((own == np.array(highest)).all() or (own == np.array(lowest)).all())


def _filled(passed: int, n: Integers) -> Integers:
    """The first arms filled with the passes."""
    before = np.concatenate([[0], np.cumsum(n)[:-1]])
    return np.asarray(np.clip(passed - before, 0, n), dtype=np.int64)


def _fitted(x: Integers, n: Integers, dose: Floats) -> tuple[float, float]:
    """Slope and standard error for doses from 0 to 1."""
    from statsmodels.genmod.families import Binomial  # imported here because the import takes 2 s; `api` all of it
    from statsmodels.genmod.generalized_linear_model import GLM

    strata, arms = x.shape
    effects = np.repeat(np.eye(strata), arms, axis=0)
    design = np.column_stack([effects, np.tile(dose, strata)])
    kept = n.ravel() > 0
    outcomes = np.column_stack([x.ravel(), (n - x).ravel()])[kept]
    with warnings.catch_warnings():  # of a fit that repeats its outcomes, as one task under two doses has
        warnings.simplefilter("ignore")
        found: Any = cast("Any", GLM(outcomes, design[kept], family=Binomial())).fit()
    return float(found.params[-1]), float(found.bse[-1])


def _moments(x: Integers, n: Integers, steps: Integers) -> tuple[float, float]:
    total, passed = n.sum(axis=1), x.sum(axis=1)
    first, second = (n * steps).sum(axis=1), (n * steps**2).sum(axis=1)
    mean = passed * first / np.maximum(total, 1)
    spread = total * second - first**2
    variance = passed * (total - passed) * spread / np.maximum(total.astype(float) ** 2 * (total - 1), 1)
    return float(mean.sum()), float(variance.sum())


def _distribution(passed: Integers, n: Integers, steps: Integers) -> tuple[int, Floats]:
    """Of the sum over strata: the least sum kept, and the probabilities from it on."""
    strata = [_stratum(int(m), row, each) for m, row, each in zip(passed, n, steps, strict=True)]
    return sum(low for low, _ in strata), convolved([chances for _, chances in strata])


def stratum_table(passed: int, n: Integers, steps: Integers) -> Floats:
    """Weights of a stratum's Σ_j d_j x_j, one column each, for totals of passes up to `passed`, one row each: not
    normalised. Halved n times, a binomial's coefficients cannot overflow."""
    table = np.zeros((passed + 1, int(n @ steps) + 1))
    table[0, 0] = 1.0
    arms = [(int(count), int(step)) for count, step in zip(n, steps, strict=True)]
    for count, step in arms:
        k = floats(np.arange(min(count, passed) + 1))
        logs = special.gammaln(count + 1) - special.gammaln(k + 1) - special.gammaln(count - k + 1)
        table = _with_arm(table, np.exp(logs - count * math.log(2)), step)
    return table


def _stratum(passed: int, n: Integers, steps: Integers) -> tuple[int, Floats]:
    chances = stratum_table(passed, n, steps)[passed]
    possible = np.flatnonzero(chances)
    kept = chances[possible[0] : possible[-1] + 1]
    return int(possible[0]), np.asarray(kept / kept.sum(), dtype=np.float64)


def _with_arm(table: Floats, chances: Floats, step: int) -> Floats:
    found = np.zeros_like(table)
    rows, columns = table.shape
    for k, chance in enumerate(chances.tolist()):
        found[k:, k * step :] += chance * table[: rows - k, : columns - k * step]
    return found


def _central(chances: Floats, at: int, *, midp: bool) -> float:
    below, own, above = float(chances[:at].sum()), float(chances[at]), float(chances[at + 1 :].sum())
    p_value = 2 * (min(below, above) + (0.5 if midp else 1.0) * own)
    return min(1.0, max(p_value, LEAST))
