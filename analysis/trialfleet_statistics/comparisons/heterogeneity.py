"""Tables in strata: Mantel and Haenszel's methods; whether, and how far, effects differ between tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from trialfleet_statistics.comparisons.convolution import informative
from trialfleet_statistics.comparisons.hypergeometric import log_choose
from trialfleet_statistics.comparisons.paired import ONE_TASK, SAME, SAME_DIFFERENCE
from trialfleet_statistics.estimates import (
    LEAST,
    TIES,
    Floats,
    Integers,
    Interval,
    Tally,
    Test,
    floats,
    share,
    state_lack,
    strata,
)
from trialfleet_statistics.intervals import PooledInterval, pooled_random

HALF = 0.5 * (1 - TIES)  # a distance of one half, however its sum was rounded
NONE_INFORMATIVE = "no informative stratum"


@dataclass(frozen=True)
class ChiSquared(Test):
    """A test whose statistic is referred to χ² with `df` degrees of freedom."""

    df: int | None = None


def cochran_mantel_haenszel(
    passes_a: Tally, trials_a: Tally, passes_b: Tally, trials_b: Tally, *, continuity: bool = False
) -> ChiSquared:
    """χ² test with 1 df of equal pass rates within strata, shape (T,).

    (|Σ (x_a − E)| − c)² / Σ V over informative strata, with the hypergeometric mean E = n_a m / N and variance V =
    n_a n_b m (N − m) / (N² (N − 1)); with `continuity`, c = 1/2 where |Σ (x_a − E)| is at least that, else c = 0.
    Source: Mantel & Haenszel 1959; the correction as in R's `mantelhaen.test`. `n_informative`: strata with trials
    in both arms and both outcomes.

    Undefined (None, with the reason) without one. Pitfall: it answers for *these tasks*; where the effect
    differs between tasks it rejects for tasks like these far too often (.28 at 7 x 25). Raises `ValueError` for
    counts that cannot be.

    >>> found = cochran_mantel_haenszel([4, 5, 2], [5, 5, 5], [2, 3, 0], [5, 5, 5])
    >>> round(found.statistic, 4), round(found.p_value, 4)
    (5.7857, 0.0162)
    """
    # Not statsmodels' StratifiedTable.test_null_odds: its correction exceeds a distance below one half.
    x, n_a, x_b, n_b = _informative(passes_a, trials_a, passes_b, trials_b)
    method = "cochran_mantel_haenszel, continuity" if continuity else "cochran_mantel_haenszel"
    if not x.size:
        return ChiSquared(None, None, method, n_informative=0, reason=NONE_INFORMATIVE)
    mean, variance = hypergeometric_moments(n_a, n_b, x + x_b)
    distance = abs(float((x - mean).sum()))
    if continuity and distance >= HALF:
        distance -= 0.5
    return _chi_squared(distance**2 / float(variance.sum()), 1, method, x.size)


def mantel_haenszel_odds_ratio(
    passes_a: Tally, trials_a: Tally, passes_b: Tally, trials_b: Tally, *, level: float = 0.95
) -> Interval:
    """The common odds ratio of passing, a against b, over strata of shape (T,).

    R / S with R = Σ x_a (n_b − x_b) / N and S = Σ x_b (n_a − x_a) / N; limits exp(log ± z √V) with the variance of
    Robins, Breslow & Greenland 1986, consistent for few large and for many small strata. On the scale of odds, not
    of rates. `n`: trials in informative strata.

    Undefined (None, with the reason) without an informative stratum. Where R or S is 0 the estimate is 0 or
    infinite and has no variance, so the limits are None: `conditional_odds_ratio` has them. Raises `ValueError`
    for counts that cannot be.

    >>> found = mantel_haenszel_odds_ratio([8, 7], [10, 10], [3, 4], [10, 10])
    >>> round(found.estimate, 2), found.rounded(2)
    (5.44, (1.4, 21.18))
    """
    share(level, "level")
    x_a, n_a, x_b, n_b = _informative(passes_a, trials_a, passes_b, trials_b)
    trials, method = int((n_a + n_b).sum()), "mantel_haenszel_odds_ratio"
    if not x_a.size:
        return Interval(None, None, None, level, trials, method, "these_tasks", NONE_INFORMATIVE)
    for_a, against_a = (float(terms.sum()) for terms in _cross_products(x_a, n_a, x_b, n_b))
    if for_a == 0 or against_a == 0:
        reason = "one arm is never the better one in any stratum: its logarithm has no variance"
        return Interval(math.inf if for_a else 0.0, None, None, level, trials, method, "these_tasks", reason)
    from statsmodels.stats.contingency_tables import StratifiedTable  # imported here because the import takes 2 s

    found: Any = StratifiedTable(np.array([[x_a, n_a - x_a], [x_b, n_b - x_b]]))
    low, high = found.oddsratio_pooled_confint(1 - level)
    return Interval(float(found.oddsratio_pooled), float(low), float(high), level, trials, method, "these_tasks")


def _strata(number: int) -> str:
    return "1 informative stratum" if number == 1 else f"{number} informative strata"


def breslow_day(
    passes_a: Tally, trials_a: Tally, passes_b: Tally, trials_b: Tally, *, tarone: bool = False
) -> ChiSquared:
    """χ² test of one common odds ratio in all strata, shape (T,): does the effect differ between tasks?

    Σ (x_a − A)² / V over informative strata, A the passes that margins and Mantel-Haenszel's odds ratio lead to
    expect, 1/V the sum of the four fitted cells' inverses; `df`: informative strata less one. `tarone` subtracts
    (Σ (x_a − A))² / Σ V. Source: Breslow & Day 1980; Tarone 1985. Strata with one outcome only, or without an arm,
    say nothing and are dropped; kept, they would make 0 / 0.

    Undefined (None, with the reason) below two informative strata, or where the common odds ratio is 0 or
    infinite. Size .046 at 7 tasks of 5 reps. Raises `ValueError` for counts that cannot be.

    >>> found = breslow_day([8, 2, 5], [10, 10, 5], [3, 5, 5], [10, 10, 5])
    >>> round(found.statistic, 3), found.df, found.n_informative
    (6.677, 1, 2)
    """
    x_a, n_a, x_b, n_b = _informative(passes_a, trials_a, passes_b, trials_b)
    method = "breslow_day, tarone" if tarone else "breslow_day"
    if x_a.size < 2:
        reason = f"{_strata(x_a.size)}; a comparison of strata needs two"
        return ChiSquared(None, None, method, n_informative=x_a.size, reason=reason)
    for_a, against_a = (float(terms.sum()) for terms in _cross_products(x_a, n_a, x_b, n_b))
    if for_a == 0 or against_a == 0:
        reason = "the common odds ratio is 0 or infinite"
        return ChiSquared(None, None, method, n_informative=x_a.size, reason=reason)
    # Not statsmodels' StratifiedTable.test_equal_odds: it divides 0 by 0 at a common odds ratio of 1, the null.
    fitted = _fitted(for_a / against_a, n_a, n_b, x_a + x_b)
    others = x_a + x_b - fitted
    variance = 1 / (1 / fitted + 1 / (n_a - fitted) + 1 / others + 1 / (n_b - others))
    statistic = float(((x_a - fitted) ** 2 / variance).sum())
    if tarone:
        statistic -= float((x_a - fitted).sum()) ** 2 / float(variance.sum())
    return _chi_squared(max(0.0, statistic), x_a.size - 1, method, x_a.size)


def hypergeometric_moments(n_a: Floats, n_b: Floats, passes: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the passes in arm a given the margins, elementwise; N at least 2."""
    trials = n_a + n_b
    return n_a * passes / trials, n_a * n_b * passes * (trials - passes) / (trials**2 * (trials - 1))


def _informative(
    passes_a: Tally, trials_a: Tally, passes_b: Tally, trials_b: Tally
) -> tuple[Floats, Floats, Floats, Floats]:
    counted = strata(passes_a, trials_a, passes_b, trials_b)
    keep = informative(*counted)
    x_a, n_a, x_b, n_b = (floats(values[keep]) for values in counted)
    return x_a, n_a, x_b, n_b


def _cross_products(x_a: Floats, n_a: Floats, x_b: Floats, n_b: Floats) -> tuple[Floats, Floats]:
    return x_a * (n_b - x_b) / (n_a + n_b), x_b * (n_a - x_a) / (n_a + n_b)


def _fitted(odds_ratio: float, n_a: Floats, n_b: Floats, passes: Floats) -> Floats:
    """Passes in arm a that give each stratum that odds ratio: the root of a quadratic, in the form that does not
    subtract nearly equal numbers."""
    linear = n_b - passes + odds_ratio * (n_a + passes)
    root = np.sqrt(linear**2 + 4 * (1 - odds_ratio) * odds_ratio * n_a * passes)
    with np.errstate(divide="ignore", invalid="ignore"):
        usual = 2 * odds_ratio * n_a * passes / (linear + root)
        return np.where(linear >= 0, usual, (root - linear) / (2 * (1 - odds_ratio)))


def _chi_squared(statistic: float, df: int, method: str, n_informative: int) -> ChiSquared:
    p_value = max(LEAST, float(special.chdtrc(df, statistic)))
    return ChiSquared(p_value, statistic, method, n_informative=n_informative, df=df)


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
    passes_a: Tally, trials_a: Tally, passes_b: Tally, trials_b: Tally, *, level: float = 0.95
) -> Heterogeneity:
    """How much the difference a − b varies between tasks, shape (T,), beyond the noise of their reps.

    sigma_int² = max(0, s_d² − mean over tasks of Σ p (1 − p) / (n − 1)), s_d² the variance of the tasks' observed
    differences; another task's difference is predicted at mean d ± t s_d √(1 + 1 / T), T − 1 degrees of freedom,
    held to [−1, 1]: sigma_int in the place of s_d, which is 0 too often, makes 95 % limits that cover .83 to .90.
    Moments, so that 0 means "none seen", not "none".

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
    reason = state_lack(few, n_a.size, "task", "fewer than two trials in an arm") if few else None
    if n_a.size < 2:
        reason = ONE_TASK
    sigma, predicted = (None, _prediction(None, None, None, level, n_a + n_b, reason))
    if reason is None:
        sigma, predicted = _moments(floats(x_a), floats(n_a), floats(x_b), floats(n_b), tail, level)
    test = breslow_day(x_a, n_a, x_b, n_b)
    return Heterogeneity(sigma, predicted, test, gail_simon(x_a, n_a, x_b, n_b), reason)


def gail_simon(passes_a: Tally, trials_a: Tally, passes_b: Tally, trials_b: Tally) -> Test:
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
        reason = f"{_strata(x_a.size)}; a change of sign needs two"
        return Test(None, None, "gail_simon", n_informative=x_a.size, reason=reason)
    mean, variance = hypergeometric_moments(n_a, n_b, x_a + x_b)
    ahead, squares = x_a - mean, (x_a - mean) ** 2 / variance
    statistic = min(float(squares[ahead > 0].sum()), float(squares[ahead < 0].sum()))
    return Test(qualitative_p(statistic, x_a.size), statistic, "gail_simon", n_informative=x_a.size)


def qualitative_p(statistic: float, count: int) -> float:
    """Gail and Simon's p of min(Q⁺, Q⁻) over `count` strata."""
    if statistic <= 0:
        return 1.0
    h, ways = np.arange(1, count), np.exp(log_choose(count - 1) - (count - 1) * math.log(2))
    return max(LEAST, float(ways[1:] @ special.chdtrc(h, statistic)))


def variance_components(passes: Tally, trials: Tally, *, level: float = 0.95) -> VarianceComponents:
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
    beyond = observed - noise
    sigma = math.sqrt(beyond) if beyond > SAME else 0.0
    if float(np.ptp(differences)) <= SAME:
        return sigma, _prediction(mean, None, None, level, n_a + n_b, SAME_DIFFERENCE)
    half = float(special.stdtrit(tasks - 1, 1 - tail)) * math.sqrt(observed * (1 + 1 / tasks))
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
