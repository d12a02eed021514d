"""Exact comparison of two arms within strata: the test, and the odds ratio with limits that agree with it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import optimize

from trialfleet_analysis.comparisons.answers import LEAST, sided
from trialfleet_analysis.comparisons.convolution import Strata, centre, chances, informative_strata
from trialfleet_analysis.comparisons.unconditional import Convention, conventional
from trialfleet_analysis.estimates import TIES, Alternative, Counts, Floats, Interval, Test, share, strata

NONE_INFORMATIVE = "no informative stratum: in each an arm has no trial, every trial passed, or none did"


def stratified_exact(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    midp: bool = True,
    convention: Convention = "central",
    alternative: Alternative = "two-sided",
) -> Test:
    """Exact conditional test of equal pass rates in every stratum (task, or task x block): one p for shape (T,).

    S = Σ passes_a over informative strata is, given every stratum's margins, a sum of hypergeometrics. With c =
    1/2 for `midp`, else 1: "greater" P(S > s) + c P(S = s), "less" mirrored; two-sided "central" twice the
    smaller side, at most 1, "minlike" P(π < π_s) + c P(π = π_s) over the probabilities π of S, ties within 1e-7.
    Source: Cox 1970; mid-p: Lancaster 1961. Strata of one trial per arm make it McNemar's test.

    `statistic`: S. `n_informative`: strata with trials in both arms and both outcomes; without any p is 1, and the
    reason says so. `attainable_p`: the least p that the margins allow. Below 1e-300 p is given as 2.2e-308.

    Pitfall: it answers for *these tasks*. With mid-p the size is near alpha, not guaranteed to stay below it.
    Raises `ValueError` for counts that cannot be.

    >>> found = stratified_exact([5, 3, 5], [5, 5, 5], [1, 2, 5], [5, 5, 5])
    >>> round(found.p_value, 4), found.statistic, found.n_informative
    (0.0418, 8.0, 2)
    """
    conventional(convention)
    sided(alternative)
    found = informative_strata(*strata(passes_a, trials_a, passes_b, trials_b))
    method = "stratified_exact" + (", mid-p" if midp else "")
    if alternative == "two-sided":
        method += f", {convention}"
    if not found.size:
        return Test(1.0, 0.0, method, alternative, 1.0, 0, NONE_INFORMATIVE)
    distribution = chances(found)

    def p_value(total: int) -> float:
        p = exact_p(distribution, total - found.low, midp=midp, convention=convention, alternative=alternative)
        return min(1.0, max(p, LEAST))

    least = min(p_value(found.low), p_value(found.high))
    return Test(p_value(found.observed), float(found.observed), method, alternative, least, found.size)


def exact_p(
    distribution: Floats, at: int, *, midp: bool, convention: Convention, alternative: Alternative
) -> float:
    """p of outcome `at` under P(S = k) = `distribution[k]`; not yet held to (0, 1]."""
    weight = 0.5 if midp else 1.0
    own = float(distribution[at])
    if alternative == "two-sided" and convention == "minlike":
        tied = np.abs(distribution - own) <= TIES * own
        return float(distribution[(distribution < own) & ~tied].sum() + weight * distribution[tied].sum())
    less = float(distribution[:at].sum()) + weight * own
    greater = float(distribution[at + 1 :].sum()) + weight * own
    return {"less": less, "greater": greater, "two-sided": 2 * min(less, greater)}[alternative]


def conditional_odds_ratio(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    midp: bool = True,
    level: float = 0.95,
) -> Interval:
    """The common odds ratio of passing, a against b, with limits that agree with `stratified_exact` (central).

    Estimate: conditional maximum likelihood, the ratio at which S has its observed value as mean. Limits: the
    ratios at which P(S > s) + c P(S = s), and the same downwards, are (1 − level) / 2, c = 1/2 for `midp`, else
    1; so 1 lies outside exactly when the central test of the same c rejects at 1 − level. Source: Cornfield
    1956; Mehta, Patel & Gray 1985. On the scale of odds, not of rates: 0 and infinity are real answers, where S
    has its least or largest value. `n`: trials in informative strata.

    Undefined (None, with the reason) without an informative stratum. Pitfall: one odds ratio for all strata is an
    assumption (`breslow_day`). Raises `ValueError` for counts that cannot be.

    >>> found = conditional_odds_ratio([8, 7], [10, 10], [3, 4], [10, 10])
    >>> round(found.estimate, 2), found.rounded(2)
    (5.06, (1.34, 21.18))
    """
    tail = (1 - share(level, "level")) / 2
    found = informative_strata(*strata(passes_a, trials_a, passes_b, trials_b))
    method = "conditional_odds_ratio, mid-p" if midp else "conditional_odds_ratio"
    if not found.size:
        return Interval(None, None, None, level, 0, method, "these_tasks", NONE_INFORMATIVE)
    estimate = {found.low: 0.0, found.high: math.inf}.get(found.observed)
    start = centre(found, min(max(found.observed, found.low + 0.5), found.high - 0.5))
    if estimate is None:
        estimate = math.exp(start)
    low, high = _limits(found, start, tail, 0.5 if midp else 1.0)
    return Interval(estimate, low, high, level, found.trials, method, "these_tasks")


def _limits(found: Strata, start: float, tail: float, weight: float) -> tuple[float, float]:
    """Solved from the distribution tilted to lie around the observed sum, where nothing has underflowed."""
    with np.errstate(divide="ignore"):
        logs = np.log(chances(found, start))
    distance = np.arange(logs.size) - (found.observed - found.low)

    def excess(shift: float, above: bool) -> float:
        tilted = logs + distance * shift
        terms = np.exp(tilted - tilted.max())
        side = terms[distance > 0] if above else terms[distance < 0]
        own = float(terms[distance == 0].sum())
        return (float(side.sum()) + weight * own) / float(terms.sum()) - tail

    low = 0.0 if found.observed == found.low else math.exp(start - _root(lambda down: excess(-down, True)))
    high = math.inf if found.observed == found.high else math.exp(start + _root(lambda up: excess(up, False)))
    return low, high


def _root(falling: Callable[[float], float]) -> float:
    """Where a falling function is 0: left of 0 when it starts below, else right of it."""
    low, high = -1.0, 1.0
    while falling(low) < 0:
        low *= 2
    while falling(high) > 0:
        high *= 2
    return float(optimize.brentq(falling, low, high, xtol=1e-13, rtol=1e-14))
