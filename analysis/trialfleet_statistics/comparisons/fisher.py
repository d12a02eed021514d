"""Fisher's exact test, for one table, for many and for every table of a design; McNemar's test of pairs."""

from __future__ import annotations

from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray
from scipy import special

from trialfleet_statistics.comparisons import hypergeometric
from trialfleet_statistics.comparisons.hypergeometric import log_ways
from trialfleet_statistics.estimates import (
    LEAST,
    NOTHING_MEASURED,
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
    share,
    whole,
)

_ROUNDING = 1e-12


def at_most(values: Floats, limit: float) -> NDArray[np.bool_]:
    """values ≤ limit, where a difference within rounding is none."""
    return values <= limit * (1 + TIES)


def probability(values: Floats) -> Floats:
    """Sums of probabilities as p-values: in (0, 1] despite rounding and underflow; NaN stays."""
    return np.where(values > 1 - _ROUNDING, 1.0, np.maximum(values, LEAST))


def table_reasons(n_a: Integers, n_b: Integers, passes: Integers) -> NDArray[np.object_]:
    """Why a 2×2 table says nothing: an arm without trials, or one outcome only; None where it says something."""
    reasons = np.full(n_a.shape, None, dtype=np.object_)
    reasons[passes == 0] = "no trial passed"
    reasons[passes == n_a + n_b] = "every trial passed"
    reasons[(n_a == 0) | (n_b == 0)] = NOTHING_MEASURED
    return reasons


def answer(
    p_value: Floats,
    statistic: Floats,
    attainable_p: Floats,
    n_informative: Integers,
    reason: NDArray[np.object_],
    *,
    method: str,
    alternative: Alternative,
) -> Test | ArrayTest:
    """A `Test` for 0-dimensional arrays, None for NaN; else `ArrayTest`."""
    if p_value.ndim:
        return ArrayTest(p_value, statistic, method, alternative, attainable_p, n_informative, reason)
    return Test(
        defined(p_value),
        defined(statistic),
        method,
        alternative,
        defined(attainable_p),
        int(n_informative),
        reason.item(),
    )


def defined(value: float | Floats) -> float | None:
    """None for NaN."""
    number = float(value)
    return None if np.isnan(number) else number


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
) -> ArrayTest: ...
def fisher(
    passes_a: Tally, trials_a: Tally, passes_b: Tally, trials_b: Tally, *, alternative: Alternative = "two-sided"
) -> Test | ArrayTest:
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
    side = SIDES[known_alternative(alternative)]
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
    return _rejects(n_a, n_b, share(alpha, "alpha"), known_alternative(alternative))


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


@overload
def mcnemar(only_a: int, only_b: int, *, midp: bool = True, alternative: Alternative = "two-sided") -> Test: ...
@overload
def mcnemar(
    only_a: Counts, only_b: Counts, *, midp: bool = True, alternative: Alternative = "two-sided"
) -> ArrayTest: ...
def mcnemar(
    only_a: Tally, only_b: Tally, *, midp: bool = True, alternative: Alternative = "two-sided"
) -> Test | ArrayTest:
    """McNemar's exact test: of the pairs that differ, do as many pass in a alone as in b alone? Elementwise.

    only_a is binomial with n = only_a + only_b and rate 1/2. "greater" (a better): P(X > only_a) + P(X = only_a)
    / 2 with `midp`, else P(X ≥ only_a); two-sided: twice the smaller side, at most 1. Source: McNemar 1947;
    mid-p: Fagerland, Lydersen & Laake 2013. It is `stratified_exact` with every pair a stratum of one trial per
    arm. `statistic`: only_a. `n_informative`: pairs that differ; without any p is 1, and the reason says so.

    Pitfall: five pairs that all point one way give .0625 without `midp`. Raises `ValueError` for counts that
    cannot be.

    >>> mcnemar(5, 0).p_value, mcnemar(5, 0, midp=False).p_value, mcnemar(0, 0).p_value
    (0.03125, 0.0625, 1.0)
    """
    known_alternative(alternative)
    one, two = np.broadcast_arrays(whole(only_a, "only_a"), whole(only_b, "only_b"))
    pairs = floats(one + two)
    reasons = np.full(pairs.shape, None, dtype=np.object_)
    reasons[pairs == 0] = "no pair differs"
    share = 0.5 if midp else 1.0
    end = np.exp2(-pairs)  # probability of all pairs pointing one way
    least = np.where(pairs == 0, 1.0, share * end * (2 if alternative == "two-sided" else 1))
    return answer(
        probability(_binomial_p_values(one, two, share, alternative)),
        floats(one),
        probability(least),
        one + two,
        reasons,
        method="mcnemar, mid-p" if midp else "mcnemar",
        alternative=alternative,
    )


def _binomial_p_values(one: Integers, two: Integers, share: float, alternative: Alternative) -> Floats:
    pairs = one + two
    at = np.exp(log_ways(pairs, one) - pairs * np.log(2))
    greater, less = (np.where(pairs == 0, 1.0, _tail(x, pairs) - (1 - share) * at) for x in (one, two))
    if alternative == "two-sided":
        return floats(np.minimum(1.0, 2 * np.minimum(greater, less)))
    return floats(greater if alternative == "greater" else less)


def _tail(x: Integers, pairs: Integers) -> Floats:
    """P(X ≥ x) for X binomial with rate 1/2."""
    return floats(np.where(x == 0, 1.0, special.betainc(np.maximum(x, 1), pairs - x + 1.0, 0.5)))
