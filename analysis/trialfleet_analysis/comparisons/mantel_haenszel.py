"""Mantel and Haenszel's methods for 2×2 tables in strata: approximate, for many trials or many strata."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from trialfleet_analysis.comparisons.answers import LEAST
from trialfleet_analysis.comparisons.convolution import informative
from trialfleet_analysis.estimates import Counts, Floats, Interval, Test, floats, normal_quantile, strata

NONE_INFORMATIVE = "no informative stratum"


@dataclass(frozen=True)
class ChiSquared(Test):
    """A test whose statistic is referred to χ² with `df` degrees of freedom."""

    df: int | None = None


def cochran_mantel_haenszel(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    continuity: bool = False,
) -> ChiSquared:
    """χ² test with 1 df of equal pass rates within strata, shape (T,).

    (|Σ (x_a − E)| − c)² / Σ V over informative strata, with the hypergeometric mean E = n_a m / N and variance V =
    n_a n_b m (N − m) / (N² (N − 1)); c = 1/2 with `continuity`, and the difference is never taken below 0. Source:
    Mantel & Haenszel 1959; R's `mantelhaen.test`. `n_informative`: strata with trials in both arms and both
    outcomes.

    Undefined (None, with the reason) without one. Pitfall: it answers for *these tasks*; where the effect
    differs between tasks it rejects for tasks like these far too often (.28 at 7 x 25). Raises `ValueError` for
    counts that cannot be.

    >>> found = cochran_mantel_haenszel([4, 5, 2], [5, 5, 5], [2, 3, 0], [5, 5, 5])
    >>> round(found.statistic, 4), round(found.p_value, 4)
    (5.7857, 0.0162)
    """
    x, n_a, x_b, n_b = _informative(passes_a, trials_a, passes_b, trials_b)
    method = "cochran_mantel_haenszel, continuity" if continuity else "cochran_mantel_haenszel"
    if not x.size:
        return ChiSquared(None, None, method, n_informative=0, reason=NONE_INFORMATIVE)
    mean, variance = hypergeometric_moments(n_a, n_b, x + x_b)
    distance = max(0.0, abs(float((x - mean).sum())) - (0.5 if continuity else 0.0))
    return _chi_squared(distance**2 / float(variance.sum()), 1, method, x.size)


def mantel_haenszel_odds_ratio(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    level: float = 0.95,
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
    z = normal_quantile(level)
    x_a, n_a, x_b, n_b = _informative(passes_a, trials_a, passes_b, trials_b)
    unanswered = Interval(
        None,
        None,
        None,
        level,
        int((n_a + n_b).sum()),
        "mantel_haenszel_odds_ratio",
        "these_tasks",
        NONE_INFORMATIVE,
    )
    if not x_a.size:
        return unanswered
    for_a, against_a = _cross_products(x_a, n_a, x_b, n_b)
    above, below = float(for_a.sum()), float(against_a.sum())
    if above == 0 or below == 0:
        reason = "one arm is never the better one in any stratum: its logarithm has no variance"
        return replace(unanswered, estimate=math.inf if above else 0.0, reason=reason)
    agreeing = (x_a + n_b - x_b) / (n_a + n_b)
    variance = float((agreeing * for_a).sum()) / (2 * above**2)
    variance += float((agreeing * against_a + (1 - agreeing) * for_a).sum()) / (2 * above * below)
    variance += float(((1 - agreeing) * against_a).sum()) / (2 * below**2)
    log, half = math.log(above / below), z * math.sqrt(variance)
    return replace(
        unanswered, estimate=above / below, low=math.exp(log - half), high=math.exp(log + half), reason=None
    )


def breslow_day(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    tarone: bool = False,
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
        reason = f"{x_a.size} informative strata; a comparison of strata needs two"
        return ChiSquared(None, None, method, n_informative=x_a.size, reason=reason)
    for_a, against_a = (float(terms.sum()) for terms in _cross_products(x_a, n_a, x_b, n_b))
    if for_a == 0 or against_a == 0:
        reason = "the common odds ratio is 0 or infinite"
        return ChiSquared(None, None, method, n_informative=x_a.size, reason=reason)
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
    passes_a: int | Counts, trials_a: int | Counts, passes_b: int | Counts, trials_b: int | Counts
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
