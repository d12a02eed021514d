"""Does the effect differ between tasks, by how much, and does it change its sign? And how far apart are tasks?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from trialfleet_analysis.comparisons.answers import LEAST
from trialfleet_analysis.comparisons.convolution import informative
from trialfleet_analysis.comparisons.mantel_haenszel import ChiSquared, breslow_day, hypergeometric_moments
from trialfleet_analysis.comparisons.paired import ONE_TASK, SAME, SAME_DIFFERENCE
from trialfleet_analysis.estimates import Counts, Floats, Integers, Interval, Test, floats, share, strata
from trialfleet_analysis.intervals import PooledInterval, pooled_random


@dataclass(frozen=True)
class Heterogeneity:
    """`sigma_int`: SD between tasks of the true difference of rates, None with the `reason`. `prediction`: where
    another task's difference lies. `test`: Breslow and Day's. `qualitative`: Gail and Simon's."""

    sigma_int: float | None
    prediction: Interval
    test: ChiSquared
    qualitative: Test
    reason: str | None = None


@dataclass(frozen=True)
class VarianceComponents:
    """One condition's rates over tasks like these: `mean`, `icc`, and the variance of one trial `between` tasks
    (mean (1 − mean) icc) and `within` (the rest), both at the posterior's medians."""

    mean: PooledInterval
    icc: Interval
    between: float | None
    within: float | None


def heterogeneity(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    level: float = 0.95,
) -> Heterogeneity:
    """How much the difference a − b varies between tasks, shape (T,), beyond the noise of their reps.

    sigma_int² = max(0, s_d² − mean over tasks of Σ p (1 − p) / (n − 1)), s_d² the variance of the tasks' observed
    differences; another task's difference is predicted at mean d ± t √(sigma_int² + s_d² / T), T − 1 degrees of
    freedom, held to [−1, 1]. Moments, so that 0 means "none seen", not "none".

    sigma_int is None, with the reason, below two tasks and where a task has fewer than two trials in an arm: one
    trial does not show its own noise. The prediction is undefined there too, and where all differences are equal.
    Raises `ValueError` for counts that cannot be.

    >>> found = heterogeneity([9, 2, 5, 5], [10] * 4, [1, 8, 5, 4], [10] * 4)
    >>> round(found.sigma_int, 3), found.prediction.rounded(2), round(found.test.p_value, 6)
    (0.536, (-1.0, 1.0), 0.000183)
    """
    tail = (1 - share(level, "level")) / 2
    x_a, n_a, x_b, n_b = strata(passes_a, trials_a, passes_b, trials_b)
    few = int(np.sum((n_a < 2) | (n_b < 2)))
    reason = f"{few} of {n_a.size} tasks have fewer than two trials in an arm" if few else None
    if n_a.size < 2:
        reason = ONE_TASK
    sigma, predicted = (None, _prediction(None, None, None, level, n_a + n_b, reason))
    if reason is None:
        sigma, predicted = _moments(floats(x_a), floats(n_a), floats(x_b), floats(n_b), tail, level)
    test = breslow_day(x_a, n_a, x_b, n_b)
    return Heterogeneity(sigma, predicted, test, gail_simon(x_a, n_a, x_b, n_b), reason)


def gail_simon(
    passes_a: int | Counts, trials_a: int | Counts, passes_b: int | Counts, trials_b: int | Counts
) -> Test:
    """Likelihood ratio test of a qualitative interaction: is a better in some tasks *and* worse in others?

    With z the score statistic of each stratum (hypergeometric variance), Q⁺ = Σ z² where a is ahead, Q⁻ where b
    is; `statistic` = min(Q⁺, Q⁻), p = Σ_h B(h; K − 1, 1/2) P(χ²_h ≥ Q), h = 1 … K − 1, over the K informative
    strata (`n_informative`), 1 where Q is 0. Source: Gail & Simon 1985, there with estimated variances; the
    score's is never 0. A small p says that no sign holds for all tasks; a large one does not say that one does.

    Undefined (None, with the reason) below two informative strata. Raises `ValueError` for counts that cannot be.

    >>> found = gail_simon([9, 2], [10, 10], [2, 9], [10, 10])
    >>> round(found.statistic, 2), round(found.p_value, 4)
    (9.4, 0.0011)
    """
    counted = strata(passes_a, trials_a, passes_b, trials_b)
    keep = informative(*counted)
    x_a, n_a, x_b, n_b = (floats(values[keep]) for values in counted)
    if x_a.size < 2:
        reason = f"{x_a.size} informative strata; a change of sign needs two"
        return Test(None, None, "gail_simon", n_informative=x_a.size, reason=reason)
    mean, variance = hypergeometric_moments(n_a, n_b, x_a + x_b)
    ahead, squares = x_a - mean, (x_a - mean) ** 2 / variance
    statistic = min(float(squares[ahead > 0].sum()), float(squares[ahead < 0].sum()))
    return Test(qualitative_p(statistic, x_a.size), statistic, "gail_simon", n_informative=x_a.size)


def qualitative_p(statistic: float, count: int) -> float:
    """Gail and Simon's p of min(Q⁺, Q⁻) over `count` strata."""
    if statistic <= 0:
        return 1.0
    h = np.arange(1, count)
    return max(LEAST, float(_binomial(count - 1)[1:] @ special.chdtrc(h, statistic)))


def variance_components(passes: int | Counts, trials: int | Counts, *, level: float = 0.95) -> VarianceComponents:
    """How far tasks lie apart: the intra-class correlation of one condition's passes, for *tasks like these*.

    `passes`, `trials`: shape (T,). Posterior of the beta-binomial model (`pooled_random`): flat in the mean and
    in the correlation, medians and equal tails. It feeds the planning of reps against tasks; agents on real
    tasks show .3 to .7. Undefined (numbers None, with the reason in `icc`) below two tasks or when a task has no
    valid trial. With one rep per task it stays at its prior. Raises `ValueError` for counts that cannot be.

    >>> found = variance_components([5, 5, 4, 3, 2, 1, 0], [5] * 7)
    >>> round(found.icc.estimate, 2), round(found.between, 2), round(found.within, 2)
    (0.44, 0.11, 0.14)
    """
    mean = pooled_random(passes, trials, level=level)
    icc = mean.icc
    if icc is None or icc.estimate is None or mean.estimate is None:
        none = Interval(None, None, None, level, mean.n, "pooled_random_icc", "tasks_like_these", mean.reason)
        return VarianceComponents(mean, none, None, None)
    total = mean.estimate * (1 - mean.estimate)
    return VarianceComponents(mean, icc, total * icc.estimate, total * (1 - icc.estimate))


def _moments(
    x_a: Floats, n_a: Floats, x_b: Floats, n_b: Floats, tail: float, level: float
) -> tuple[float, Interval]:
    p_a, p_b = x_a / n_a, x_b / n_b
    differences, tasks = p_a - p_b, n_a.size
    noise = float(np.mean(p_a * (1 - p_a) / (n_a - 1) + p_b * (1 - p_b) / (n_b - 1)))
    observed, mean = float(differences.var(ddof=1)), float(differences.mean())
    sigma = math.sqrt(max(0.0, observed - noise))
    if float(np.ptp(differences)) <= SAME:
        return sigma, _prediction(mean, None, None, level, n_a + n_b, SAME_DIFFERENCE)
    half = float(special.stdtrit(tasks - 1, 1 - tail)) * math.sqrt(sigma**2 + observed / tasks)
    low, high = max(-1.0, mean - half), min(1.0, mean + half)
    return sigma, _prediction(mean, low, high, level, n_a + n_b, None)


def _prediction(
    estimate: float | None,
    low: float | None,
    high: float | None,
    level: float,
    trials: Floats | Integers,
    reason: str | None,
) -> Interval:
    return Interval(
        estimate, low, high, level, int(trials.sum()), "prediction of another task", "tasks_like_these", reason
    )


def _binomial(trials: int) -> Floats:
    h = np.arange(trials + 1)
    logs = special.gammaln(trials + 1) - special.gammaln(h + 1.0) - special.gammaln(trials - h + 1.0)
    return floats(np.exp(logs - trials * math.log(2)))
