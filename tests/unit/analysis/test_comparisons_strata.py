"""The exact stratified test, its odds ratio and McNemar's against rational arithmetic and published values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.unit.analysis.exact_tables import SIDED, given_margins, tables
from trialfleet_analysis.comparisons import conditional_odds_ratio, fisher, mcnemar, stratified_exact
from trialfleet_analysis.comparisons.unconditional import Convention
from trialfleet_analysis.estimates import Alternative, Interval

Table = tuple[int, int, int, int]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
arm = st.integers(0, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
stratum = st.tuples(arm, arm).map(lambda arms: (*arms[0], *arms[1]))
several = st.lists(stratum, min_size=1, max_size=6)

# Mantel 1963 (JASA 58:690): rabbits cured by penicillin at once against after 1.5 h, five doses; R's `Rabbits`.
RABBITS = [(0, 6, 0, 5), (3, 6, 0, 6), (6, 6, 2, 6), (5, 6, 6, 6), (2, 2, 5, 5)]


def columns(found: Sequence[Table]) -> tuple[list[int], list[int], list[int], list[int]]:
    one, two, three, four = (list(column) for column in zip(*found, strict=True))
    return one, two, three, four


def ways_of_the_sum(found: Sequence[Table]) -> tuple[dict[int, int], int]:
    """Ways to reach every Σ passes_a over informative strata, and the observed one."""
    kept = [table for table in found if table[1] and table[3] and 0 < table[0] + table[2] < table[1] + table[3]]

    def joined(before: dict[int, int], table: Table) -> dict[int, int]:
        after: dict[int, int] = {}
        for x, ways in given_margins(table[1], table[3], table[0] + table[2]).items():
            for total, others in before.items():
                after[total + x] = after.get(total + x, 0) + ways * others
        return after

    return reduce(joined, kept, {0: 1}), sum(table[0] for table in kept)


def exact(found: Sequence[Table], *, midp: bool, convention: Convention, alternative: Alternative) -> Fraction:
    ways, s = ways_of_the_sum(found)
    return exact_at(s, ways, midp=midp, convention=convention, alternative=alternative)


def exact_at(
    s: int, ways: dict[int, int], *, midp: bool, convention: Convention, alternative: Alternative
) -> Fraction:
    own, weight = ways[s], Fraction(1, 2) if midp else Fraction(1)
    less = sum(way for total, way in ways.items() if total < s) + weight * own
    greater = sum(way for total, way in ways.items() if total > s) + weight * own
    rarer = sum(way for way in ways.values() if way < own) + weight * sum(w for w in ways.values() if w == own)
    whole = sum(ways.values())
    if len(ways) == 1:
        return Fraction(1)
    if alternative == "two-sided":
        return min(Fraction(1), 2 * min(less, greater) / whole) if convention == "central" else rarer / whole
    return Fraction(greater if alternative == "greater" else less) / whole


def value(p: float | None) -> float:
    assert p is not None
    return p


def limits(interval: Interval) -> tuple[float, float]:
    return value(interval.low), value(interval.high)


@pytest.mark.parametrize("n_a", range(1, 13))
def test_midp_of_every_table_up_to_twelve_per_arm(n_a: int) -> None:
    for n_b in range(n_a, 13):
        for x_a, x_b in tables(n_a, n_b):
            table = (x_a, n_a, x_b, n_b)
            convention = CONVENTIONS[(x_a + x_b) % 2]
            expected = float(exact([table], midp=True, convention=convention, alternative="two-sided"))
            assert stratified_exact(*table, convention=convention).p_value == pytest.approx(expected, rel=1e-11)


@settings(max_examples=25, deadline=None)
@given(several, st.booleans(), st.sampled_from(CONVENTIONS), st.sampled_from(SIDED))
def test_strata(found: list[Table], midp: bool, convention: Convention, alternative: Alternative) -> None:
    ours = stratified_exact(*columns(found), midp=midp, convention=convention, alternative=alternative)
    p = exact(found, midp=midp, convention=convention, alternative=alternative)
    assert ours.p_value == pytest.approx(float(p), rel=1e-11)
    assert ours.statistic == ways_of_the_sum(found)[1]
    again = stratified_exact(*columns(found[::-1]), midp=midp, convention=convention, alternative=alternative)
    assert again.p_value == pytest.approx(ours.p_value, rel=1e-11)
    ways = ways_of_the_sum(found)[0]
    least = min(exact_at(s, ways, midp=midp, convention=convention, alternative=alternative) for s in ways)
    assert ours.attainable_p == pytest.approx(float(least), rel=1e-11)


@settings(max_examples=25, deadline=None)
@given(several, st.booleans(), st.sampled_from(CONVENTIONS))
def test_swapped_arms(found: list[Table], midp: bool, convention: Convention) -> None:
    one, two, three, four = columns(found)
    ours = stratified_exact(one, two, three, four, midp=midp, convention=convention)
    swapped = stratified_exact(three, four, one, two, midp=midp, convention=convention)
    assert swapped.p_value == pytest.approx(ours.p_value, rel=1e-11)
    assert swapped.attainable_p == pytest.approx(ours.attainable_p, rel=1e-11)


def test_one_stratum_is_fishers_test() -> None:
    for x_a, x_b in tables(9, 7):
        ours = stratified_exact(x_a, 9, x_b, 7, midp=False, convention="minlike")
        theirs = fisher(x_a, 9, x_b, 7)
        assert (ours.p_value, ours.attainable_p) == pytest.approx((theirs.p_value, theirs.attainable_p), rel=1e-11)


def test_published_strata() -> None:
    # R 4.2.2, example of `mantelhaen.test(Rabbits, exact = TRUE)`: p = 0.03994, odds ratio 10.36102
    rabbits = columns(RABBITS)
    ours = stratified_exact(*rabbits, midp=False, convention="minlike")
    assert ours.p_value == pytest.approx(0.03994, abs=5e-6)
    assert ours.n_informative == 3
    assert conditional_odds_ratio(*rabbits, midp=False).estimate == pytest.approx(10.361, abs=1e-3)


def test_no_informative_stratum() -> None:
    found = stratified_exact([5, 0, 3, 0], [5, 5, 4, 0], [4, 0, 0, 2], [4, 5, 0, 4])
    assert (found.p_value, found.attainable_p, found.statistic, found.n_informative) == (1.0, 1.0, 0.0, 0)
    assert found.reason is not None
    assert stratified_exact([], [], [], []).p_value == 1.0
    ratio = conditional_odds_ratio([5, 0], [5, 5], [4, 0], [4, 5])
    assert (ratio.estimate, ratio.low, ratio.high, ratio.n) == (None, None, None, 0)
    assert ratio.reason == found.reason


@pytest.mark.parametrize("midp", [True, False])
def test_pairs_are_mcnemars(midp: bool) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.random((2, 10_000)) < [[0.32], [0.30]]
    one = np.ones(10_000, dtype=int)
    found = stratified_exact(a.astype(int), one, b.astype(int), one, midp=midp)
    pairs = mcnemar(int(np.sum(a & ~b)), int(np.sum(b & ~a)), midp=midp)
    assert found.p_value == pytest.approx(pairs.p_value, rel=1e-9)
    assert found.n_informative == pairs.n_informative


def test_thousands_of_unequal_strata_keep_their_tails() -> None:
    rng = np.random.default_rng(4)
    n_a, n_b = rng.integers(1, 4, (2, 3000))
    x_a, x_b = rng.binomial(n_a, 0.6), rng.binomial(n_b, 0.3)
    found = stratified_exact(x_a, n_a, x_b, n_b, alternative="greater")
    assert found.statistic is not None
    ways = n_a * (x_a + x_b) / (n_a + n_b)
    z = (x_a - ways).sum() / math.sqrt(
        sum(
            n * m * k * (n + m - k) / ((n + m) ** 2 * (n + m - 1))
            for n, m, k in zip(n_a, n_b, x_a + x_b, strict=True)
        )
    )
    assert 1e-300 < value(found.p_value) < 1e-100
    assert math.log(value(found.p_value)) == pytest.approx(float(stats.norm.logsf(z)), rel=0.1)
    assert stratified_exact(n_a, n_a, n_b * 0, n_b).p_value == np.finfo(float).tiny


@settings(max_examples=25, deadline=None)
@given(several, st.booleans(), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_odds_ratio_agrees_with_the_central_test(found: list[Table], midp: bool, level: float) -> None:
    interval = conditional_odds_ratio(*columns(found), midp=midp, level=level)
    p = stratified_exact(*columns(found), midp=midp).p_value
    if interval.estimate is None:
        assert p == 1.0
        return
    low, high = limits(interval)
    assert 0 <= low <= high <= math.inf
    if abs(value(p) - (1 - level)) > 1e-9:
        assert (value(p) < 1 - level) == (not low < 1 < high)
    one, two, three, four = columns(found)
    swapped = limits(conditional_odds_ratio(three, four, one, two, midp=midp, level=level))
    inverse = (0.0 if high == math.inf else 1 / high), (math.inf if low == 0 else 1 / low)
    assert swapped == pytest.approx(inverse, rel=1e-8)


def test_limits_solve_their_equations() -> None:
    found = [(8, 10, 3, 10), (4, 9, 2, 12)]
    interval = conditional_odds_ratio(*columns(found))
    ways, s = ways_of_the_sum(found)
    low, high = limits(interval)
    for ratio, above in ((low, True), (high, False)):
        weights = {total: way * ratio**total for total, way in ways.items()}
        side = sum(weight for total, weight in weights.items() if (total > s if above else total < s))
        assert (side + weights[s] / 2) / sum(weights.values()) == pytest.approx(0.025, rel=1e-9)
    weights = {total: way * value(interval.estimate) ** total for total, way in ways.items()}
    assert sum(total * weight for total, weight in weights.items()) / sum(weights.values()) == pytest.approx(s)


def test_one_stratums_odds_ratio_agrees_with_scipy() -> None:
    expected = stats.contingency.odds_ratio([[8, 2], [3, 7]])
    ours = conditional_odds_ratio(8, 10, 3, 10, midp=False)
    assert ours.estimate == pytest.approx(expected.statistic, rel=1e-8)
    assert limits(ours) == pytest.approx(tuple(expected.confidence_interval()), rel=1e-8)


def test_infinite_odds() -> None:
    interval = conditional_odds_ratio(5, 5, 2, 5)
    assert (interval.estimate, interval.high) == (math.inf, math.inf)
    assert 0.7 < value(interval.low) < 1  # p is .083
    assert conditional_odds_ratio(2, 5, 5, 5).estimate == 0.0
    pairs = np.r_[np.ones(9990, dtype=int), np.zeros(10, dtype=int)]
    extreme = conditional_odds_ratio(pairs, pairs * 0 + 1, 1 - pairs, pairs * 0 + 1)
    assert extreme.estimate == pytest.approx(999, rel=1e-9)
    clopper = stats.binomtest(9990, 10_000).proportion_ci()
    assert value(extreme.low) > clopper.low / (1 - clopper.low)  # mid-p is the narrower one
    assert value(extreme.low) == pytest.approx(clopper.low / (1 - clopper.low), rel=0.06)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from(SIDED))
def test_mcnemar_is_binomial(only_a: int, only_b: int, alternative: Alternative) -> None:
    found, mid = (mcnemar(only_a, only_b, midp=midp, alternative=alternative) for midp in (False, True))
    assert found.statistic == only_a
    if only_a + only_b == 0:
        assert (found.p_value, mid.p_value, found.attainable_p, found.reason) == (1.0, 1.0, 1.0, "no pair differs")
        return
    expected = stats.binomtest(only_a, only_a + only_b, alternative=alternative).pvalue
    assert found.p_value == pytest.approx(expected, rel=1e-9)
    stratified = stratified_exact(
        [1] * only_a + [0] * only_b, 1, [0] * only_a + [1] * only_b, 1, alternative=alternative
    )
    assert mid.p_value == pytest.approx(stratified.p_value, rel=1e-9)
    assert mid.attainable_p == pytest.approx(stratified.attainable_p, rel=1e-9)


def test_mcnemar_elementwise() -> None:
    found = mcnemar([5, 0, 3], [0, 0, 3])
    assert found.p_value.tolist() == pytest.approx([2 / 64, 1, 1])
    assert found.n_informative.tolist() == [5, 0, 6]
    assert found.reason.tolist() == [None, "no pair differs", None]
    with pytest.raises(ValueError, match="only_b"):
        mcnemar(1, -1)


def test_arguments_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="convention"):
        stratified_exact(1, 5, 1, 5, convention="blaker")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="alternative"):
        stratified_exact(1, 5, 1, 5, alternative="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shape"):
        stratified_exact([[1]], [[5]], [[1]], [[5]])
    with pytest.raises(ValueError, match="level"):
        conditional_odds_ratio(1, 5, 1, 5, level=95)
    with pytest.raises(ValueError, match="passes"):
        conditional_odds_ratio([6], [5], [1], [5])
