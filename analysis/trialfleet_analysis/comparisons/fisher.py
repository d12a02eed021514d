"""Fisher's exact test: for one table, for arrays of tables with any margins, and for every table of a design."""

from __future__ import annotations

from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from trialfleet_analysis.comparisons import hypergeometric
from trialfleet_analysis.comparisons.answers import answer, at_most, probability, sided, table_reasons
from trialfleet_analysis.estimates import (
    NOTHING_MEASURED,
    Alternative,
    Counts,
    Floats,
    Integers,
    Test,
    Tests,
    floats,
    four_counts,
    share,
)

SIDES: dict[Alternative, int] = {"two-sided": 0, "greater": 1, "less": -1}
_LARGEST_DESIGN = 1 << 22  # cells of a design's table; above, tables are summed one by one


@overload
def fisher(
    passes_a: int, trials_a: int, passes_b: int, trials_b: int, *, alternative: Alternative = "two-sided"
) -> Test: ...
@overload
def fisher(
    passes_a: Counts,
    trials_a: Counts,
    passes_b: Counts,
    trials_b: Counts,
    *,
    alternative: Alternative = "two-sided",
) -> Tests: ...
def fisher(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    alternative: Alternative = "two-sided",
) -> Test | Tests:
    """Fisher's exact test of equal pass rates in two arms (a: treatment, b: control), elementwise.

    Given both margins, passes in a are hypergeometric. Two-sided: the probability of all tables at most as likely
    as the observed one, where relative differences under 1e-7 are ties; "greater" (a > b) and "less": one tail.
    Source: Fisher 1935; the two-sided rule is R's. `statistic`: the sample odds ratio, infinite where only its
    denominator is 0. `attainable_p`: the least p of any table with these margins. `n_informative`: trials in both
    arms, 0 where all passed or none did; there p is 1, the odds ratio undefined, and the reason says so.

    Pitfall: with 5 trials per arm only 0-4, 0-5 and 1-5 are below .05, with 3 nothing is. Undefined (None, NaN in
    arrays) where an arm has no trial. Raises `ValueError` for counts that cannot be.

    >>> found = fisher(0, 5, 4, 5)
    >>> round(found.p_value, 4), round(found.attainable_p, 4), found.statistic
    (0.0476, 0.0476, 0.0)
    >>> fisher([10, 3], [25, 3], [15, 0], [25, 3]).p_value.round(4).tolist()
    [0.2578, 0.1]
    """
    side = SIDES[sided(alternative)]
    x_a, n_a, x_b, n_b = four_counts(passes_a, trials_a, passes_b, trials_b)
    passes = x_a + x_b
    reasons = table_reasons(n_a, n_b, passes)
    measured = reasons != NOTHING_MEASURED
    p_value = np.where(measured, probability(_p_values(x_a, n_a, x_b, n_b, side)), np.nan)
    attainable = np.where(measured, probability(_least(n_a, n_b, passes, side)), np.nan)
    informative = np.where(reasons == None, n_a + n_b, 0)  # noqa: E711 (elementwise)
    return answer(
        p_value,
        _odds_ratio(x_a, n_a, x_b, n_b),
        attainable,
        informative,
        reasons,
        method="fisher",
        alternative=alternative,
    )


def fisher_rejects(
    n_a: int, n_b: int, *, alpha: float, alternative: Alternative = "two-sided"
) -> NDArray[np.bool_]:
    """Which tables of a design Fisher's test rejects: shape (n_a + 1, n_b + 1), rows passes in a; read-only.

    >>> fisher_rejects(5, 5, alpha=0.05).sum(), fisher_rejects(3, 3, alpha=0.05).any()
    (np.int64(6), np.False_)
    """
    return _rejects(n_a, n_b, share(alpha, "alpha"), sided(alternative))


@lru_cache(maxsize=128)
def _rejects(n_a: int, n_b: int, alpha: float, alternative: Alternative) -> NDArray[np.bool_]:
    mask = at_most(fisher_design(n_a, n_b, alternative), alpha)
    mask.setflags(write=False)
    return mask


@lru_cache(maxsize=16)
def fisher_design(n_a: int, n_b: int, alternative: Alternative = "two-sided") -> Floats:
    """Fisher's p of every table with n_a and n_b trials: shape (n_a + 1, n_b + 1), rows passes in a; read-only."""
    if n_a > n_b:  # the shorter arm makes the shorter rows
        mirror: dict[Alternative, Alternative] = {"two-sided": "two-sided", "greater": "less", "less": "greater"}
        return fisher_design(n_b, n_a, mirror[alternative]).T
    rows = hypergeometric.log_rows(n_a, n_b)
    if alternative == "two-sided":
        likely = at_most_as_likely(rows)
        table = hypergeometric.unfold(likely, likely, n_a, n_b)
    else:
        below, above = np.cumsum(np.exp(rows), axis=1), np.cumsum(np.exp(rows[:, ::-1]), axis=1)[:, ::-1]
        pair = (above, below) if alternative == "greater" else (below, above)
        table = hypergeometric.unfold(*pair, n_a, n_b)
    table = probability(table)
    table.setflags(write=False)
    return table


def at_most_as_likely(rows: Floats) -> Floats:
    """For every entry of a row of log-probabilities the sum of the row's probabilities that are not above it."""
    order = np.argsort(rows, axis=1, kind="stable")  # which finds the two runs, up and down, and merges them
    ascending = np.take_along_axis(rows, order, axis=1)
    total = np.cumsum(np.exp(ascending), axis=1)
    tied = np.diff(ascending, axis=1) <= hypergeometric.TIE
    np.copyto(total[:, :-1], np.inf, where=tied)  # the last of equals holds their sum
    merged = np.minimum.accumulate(total[:, ::-1], axis=1)[:, ::-1]
    found = np.empty_like(rows)
    np.put_along_axis(found, order, merged, axis=1)
    return found


def _p_values(x_a: Integers, n_a: Integers, x_b: Integers, n_b: Integers, side: int) -> Floats:
    """Many tables of one design come from the design's table, all others are summed one by one."""
    if x_a.size and n_a.min() == n_a.max() and n_b.min() == n_b.max():
        arms = int(n_a.min()), int(n_b.min())
        if x_a.size > sum(arms) and (sum(arms) + 1) * (min(arms) + 1) <= _LARGEST_DESIGN:
            alternative = next(name for name, value in SIDES.items() if value == side)
            return fisher_design(*arms, alternative)[x_a, x_b]
    flat = (np.ravel(values) for values in (x_a, n_a, n_b, x_a + x_b))
    return hypergeometric.tail_sums(*flat, side=side).reshape(x_a.shape)


def _least(n_a: Integers, n_b: Integers, passes: Integers, side: int) -> Floats:
    """The least p given the margins: the least likely table lies at an end of the support, or at both."""
    low, high = hypergeometric.bounds(n_a, n_b, passes)
    at_low = hypergeometric.log_probability(low, n_a, n_b, passes)
    at_high = hypergeometric.log_probability(high, n_a, n_b, passes)
    if side:
        return np.exp(at_high if side > 0 else at_low)
    tied = (np.abs(at_low - at_high) <= hypergeometric.TIE) & (low < high)
    return np.exp(np.minimum(at_low, at_high)) * np.where(tied, 2.0, 1.0)


def _odds_ratio(x_a: Integers, n_a: Integers, x_b: Integers, n_b: Integers) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return floats(floats(x_a) * (n_b - x_b) / (floats(x_b) * (n_a - x_a)))
