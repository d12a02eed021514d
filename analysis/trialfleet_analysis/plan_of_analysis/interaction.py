"""Whether an effect differs between groups of tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from trialfleet_analysis.comparisons.conditional import exact_p
from trialfleet_analysis.comparisons.convolution import Strata, centre, chances, informative_strata
from trialfleet_analysis.estimates import Floats, Test
from trialfleet_analysis.plan_of_analysis.columns import FourCounts
from trialfleet_analysis.tables.arrays import Bools

EXACT, WELCH = "exact interaction, mid-p", "Welch's t on task differences"


def interaction(four: FourCounts, levels: Sequence[Bools]) -> Test:
    """Equal odds ratios in all levels? Exact, given every task's totals and the passes of both arms together.

    `levels`: which tasks belong to each, shape (T,) each. Given the treatment's passes in all, S = S₁ + S₂,
    those in one level have P(S₁ = s) ∝ P₁(s) P₂(S − s), whatever the common odds ratio is; mid-p, central. With
    more than two levels each is set against the others and the smallest p times their number is taken
    (Bonferroni). Source: Zelen 1971, for strata that fall into two groups.

    Undefined (None, with the reason) when a level has no informative task.
    """
    if len(levels) == 2:
        return _against_the_rest(four, levels[0])
    return _least([_against_the_rest(four, level) for level in levels], EXACT)


def interaction_like_these(differences: Floats, levels: Sequence[Bools]) -> Test:
    """Equal mean differences in the populations of tasks that the levels stand for? Welch's t, two-sided.

    With more than two levels as in `interaction`. Undefined below two tasks in a level, or without any spread.
    """
    if len(levels) == 2:
        return _welch(differences, levels[0])
    return _least([_welch(differences, level) for level in levels], WELCH)


def _against_the_rest(four: FourCounts, level: Bools) -> Test:
    inside, outside = (informative_strata(*(c[kept] for c in four)) for kept in (level, ~level))
    if not inside.size or not outside.size:
        return Test(None, None, EXACT, reason="a level has no informative task")
    total = inside.observed + outside.observed
    first = max(inside.low, total - outside.high)
    split = _split(inside, outside, total, first, _log_odds(four))
    least = min(_p(split, 0), _p(split, split.size - 1))
    return Test(
        _p(split, inside.observed - first),
        float(inside.observed),
        EXACT,
        attainable_p=least,
        n_informative=inside.size + outside.size,
    )


def _split(inside: Strata, outside: Strata, total: int, first: int, log_odds: float) -> Floats:
    """How `total` passes divide between the groups, from `first` passes inside on. Any odds ratio gives the same;
    the one where the total is likely keeps the terms from underflowing."""
    last = min(inside.high, total - outside.low)
    passes = np.arange(first, last + 1)
    both = (
        chances(inside, log_odds)[passes - inside.low] * chances(outside, log_odds)[total - passes - outside.low]
    )
    return np.asarray(both / both.sum(), dtype=np.float64)


def _log_odds(four: FourCounts) -> float:
    every = informative_strata(*four)
    if every.high - every.low < 2:
        return 0.0
    return centre(every, min(max(every.observed, every.low + 0.5), every.high - 0.5))


def _p(split: Floats, at: int) -> float:
    return min(1.0, exact_p(split, at, midp=True, convention="central", alternative="two-sided"))


def _welch(differences: Floats, level: Bools) -> Test:
    one, other = differences[level], differences[~level]
    if min(one.size, other.size) < 2:
        return Test(None, None, WELCH, reason="a level has fewer than two tasks")
    if np.ptp(one) == 0 and np.ptp(other) == 0:
        return Test(None, None, WELCH, reason="task differences do not vary within the levels")
    parts = np.array([np.var(group, ddof=1) / group.size for group in (one, other)])
    t = float(one.mean() - other.mean()) / float(np.sqrt(parts.sum()))
    df = float(parts.sum() ** 2 / np.sum(parts**2 / (np.array([one.size, other.size]) - 1)))
    return Test(float(2 * special.stdtr(df, -abs(t))), t, WELCH, n_informative=differences.size)


def _least(tests: Sequence[Test], method: str) -> Test:
    """The smallest p, corrected for having looked at each level."""
    undefined = next((test for test in tests if test.p_value is None), None)
    if undefined is not None:
        return undefined
    ps = [test.p_value for test in tests if test.p_value is not None]
    least = tests[int(np.argmin(ps))]
    return Test(
        min(1.0, min(ps) * len(ps)),
        least.statistic,
        f"{method}, each level against the others",
        n_informative=least.n_informative,
    )
