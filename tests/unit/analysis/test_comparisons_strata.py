"""The exact stratified test, its odds ratio and McNemar's against rational arithmetic and published values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from operator import attrgetter
from typing import Literal, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.unit.analysis.exact_tables import SIDED, given_margins, tables
from trialfleet_statistics.comparisons import (
    conditional_odds_ratio,
    convolution,
    mcnemar,
    midp_size,
    stratified_exact,
)
from trialfleet_statistics.comparisons.conditional import pass_weights, weighted_strata
from trialfleet_statistics.comparisons.convolution import convolved
from trialfleet_statistics.comparisons.unconditional import Convention
from trialfleet_statistics.estimates import Alternative, strata

limits = attrgetter("low", "high")

Table = tuple[int, int, int, int]
Named = Literal["equal", "mh"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
arm = st.integers(0, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
asked = st.sampled_from([("central", "equal"), ("central", "mh"), ("minlike", "mh")])
stratum = st.tuples(arm, arm).map(lambda arms: (*arms[0], *arms[1]))
several = st.lists(stratum, min_size=1, max_size=6)

# Mantel 1963 (JASA 58:690): rabbits cured by penicillin at once against after 1.5 h, five doses; R's `Rabbits`.
RABBITS = [(0, 6, 0, 5), (3, 6, 0, 6), (6, 6, 2, 6), (5, 6, 6, 6), (2, 2, 5, 5)]


def columns(found: Sequence[Table]) -> tuple[list[int], list[int], list[int], list[int]]:
    one, two, three, four = (list(column) for column in zip(*found, strict=True))
    return one, two, three, four


def informative(found: Sequence[Table]) -> list[Table]:
    return [table for table in found if table[1] and table[3] and 0 < table[0] + table[2] < table[1] + table[3]]


def weighing(found: Sequence[Table], weights: Named) -> list[int]:
    """Of a pass in each informative stratum: 1, or so that every stratum's difference of rates weighs the same."""
    kept = informative(found)
    if weights == "mh" or not kept:
        return [1] * len(kept)
    exact = [Fraction(1, n_a) + Fraction(1, n_b) for _, n_a, _, n_b in kept]
    whole = [max(1, round(100 * one / max(exact))) for one in exact]
    return [one // math.gcd(*whole) for one in whole]


def ways_of_the_sum(found: Sequence[Table], weights: Named = "equal") -> tuple[dict[int, int], int]:
    """Ways to reach every weighted sum of passes_a over informative strata, and the observed one."""
    weighted = list(zip(weighing(found, weights), informative(found), strict=True))

    def joined(before: dict[int, int], one: tuple[int, Table]) -> dict[int, int]:
        after: dict[int, int] = {}
        weight, table = one
        for x, ways in given_margins(table[1], table[3], table[0] + table[2]).items():
            for total, others in before.items():
                after[total + weight * x] = after.get(total + weight * x, 0) + ways * others
        return after

    return reduce(joined, weighted, {0: 1}), sum(weight * table[0] for weight, table in weighted)


def exact(
    found: Sequence[Table],
    *,
    midp: bool,
    convention: Convention,
    alternative: Alternative,
    weights: Named = "equal",
) -> Fraction:
    ways, s = ways_of_the_sum(found, weights)
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


@pytest.mark.parametrize("n_a", range(1, 13))
def test_midp_of_every_table_up_to_twelve_per_arm(n_a: int) -> None:
    for n_b in range(n_a, 13):
        for x_a, x_b in tables(n_a, n_b):
            table = (x_a, n_a, x_b, n_b)
            convention = CONVENTIONS[(x_a + x_b) % 2]
            expected = float(exact([table], midp=True, convention=convention, alternative="two-sided"))
            ours = stratified_exact(*table, convention=convention, weights="mh")
            assert ours.p_value == pytest.approx(expected, rel=1e-11)


@settings(max_examples=25, deadline=None)
@given(several, st.booleans(), asked, st.sampled_from(SIDED))
def test_strata(found: list[Table], midp: bool, how: tuple[Convention, Named], alternative: Alternative) -> None:
    convention, weights = how
    ours = stratified_exact(
        *columns(found), weights=weights, midp=midp, convention=convention, alternative=alternative
    )
    p = exact(found, weights=weights, midp=midp, convention=convention, alternative=alternative)
    assert ours.p_value == pytest.approx(float(p), rel=1e-9)
    ways, s = ways_of_the_sum(found, weights)
    assert ours.statistic == s
    mean = Fraction(sum(total * way for total, way in ways.items()), sum(ways.values()))
    assert ours.direction == (s > mean) - (s < mean)
    again = stratified_exact(
        *columns(found[::-1]), weights=weights, midp=midp, convention=convention, alternative=alternative
    )
    assert again.p_value == pytest.approx(ours.p_value, rel=1e-9)
    least = min(exact_at(s, ways, midp=midp, convention=convention, alternative=alternative) for s in ways)
    assert ours.attainable_p == pytest.approx(float(least), rel=1e-11)


@pytest.mark.parametrize(("n_a", "n_b"), [(5, 5), (12, 7)])
def test_the_largest_size_of_one_stratum(n_a: int, n_b: int) -> None:
    """Every table's p, and the rejected tables' probability on a dense grid of rates."""
    rejected = [
        (x_a, x_b) for x_a, x_b in tables(n_a, n_b) if value(stratified_exact(x_a, n_a, x_b, n_b).p_value) <= 0.1
    ]
    rates = np.linspace(0, 0.5 if n_a == n_b else 1, 401)
    sizes = np.sum(
        [stats.binom.pmf(x_a, n_a, rates) * stats.binom.pmf(x_b, n_b, rates) for x_a, x_b in rejected], axis=0
    )
    assert midp_size(n_a, n_b, alpha=0.1) == pytest.approx(float(sizes.max()), rel=1e-4)


def test_the_largest_size_may_lie_above_alpha() -> None:
    assert [round(midp_size(n, n), 3) for n in (25, 50, 100)] == [0.046, 0.057, 0.056]
    assert (midp_size(2, 2), midp_size(0, 5)) == (0.0, 0.0)
    with pytest.raises(ValueError, match="alpha"):
        midp_size(5, 5, alpha=5)
    with pytest.raises(ValueError, match="trials"):
        midp_size(-1, 5)


# --- every stratum weighs the same, however many of its trials are left ---------------------------------


@pytest.mark.parametrize(
    ("found", "weights", "statistic", "p_value", "of_passes"),
    [
        ([(25, 25, 3, 25), *[(9, 25, 4, 6)] * 3], [39, 100, 100, 100], 3675, 0.930653548, 0.012008186),
        ([(24, 25, 6, 25), *[(11, 25, 4, 6)] * 3], [39, 100, 100, 100], 4236, 0.919955328, 0.030015387),
        ([(5, 5, 1, 5), (3, 5, 2, 5), (5, 5, 5, 5)], [1, 1, 0], 8, 0.041761149, 0.041761149),
        ([(4, 5, 1, 4), (3, 4, 1, 5), (5, 5, 2, 5)], [100, 100, 89], 1145, 0.005364491, 0.004288444),
        ([(12, 25, 5, 20), (20, 24, 15, 25), (7, 25, 6, 18)], [94, 85, 100], 3528, 0.103800944, 0.078477405),
    ],
)
def test_reference_values(
    found: list[Table], weights: list[int], statistic: int, p_value: float, of_passes: float
) -> None:
    assert pass_weights(*np.array(found).T).tolist() == weights
    ours = stratified_exact(*columns(found))
    assert (ours.statistic, ours.p_value) == (statistic, pytest.approx(p_value, abs=1e-8))
    assert stratified_exact(*columns(found), weights="mh").p_value == pytest.approx(of_passes, abs=1e-8)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=6))
def test_with_the_same_trials_in_every_arm_passes_are_summed(n: int, passes: list[tuple[int, int]]) -> None:
    x_a, x_b = ([min(n, x) for x in arm] for arm in zip(*passes, strict=True))
    assert stratified_exact(x_a, n, x_b, n) == stratified_exact(x_a, n, x_b, n, weights="mh")
    assert conditional_odds_ratio(x_a, n, x_b, n) == conditional_odds_ratio(x_a, n, x_b, n, weights="mh")


@settings(max_examples=25, deadline=None)
@given(several, st.data())
def test_weights_hang_on_the_margins_alone(found: list[Table], data: st.DataObject) -> None:
    """Any other split of the same passes: the same weights."""

    def split_again(table: Table) -> Table:
        x_a, n_a, x_b, n_b = table
        x = data.draw(st.sampled_from(sorted(given_margins(n_a, n_b, x_a + x_b))))
        return x, n_a, x_a + x_b - x, n_b

    weights = pass_weights(*np.array(found).T)
    assert pass_weights(*np.array([split_again(table) for table in found]).T).tolist() == weights.tolist()
    assert weights[weights > 0].tolist() == weighing(found, "equal")


def test_weights_of_ones_own() -> None:
    """They are the differences'. A stratum of weight 0 is left out, and a large one is not rounded away."""
    found = columns([(4, 5, 1, 4), (3, 4, 1, 5), (5, 5, 2, 5), (100, 250, 90, 250), (0, 1, 1, 1)])
    assert pass_weights(*np.array(found), weights=[0, 1, 2, 0, 0]).tolist() == [0, 14, 25, 0, 0]
    assert pass_weights(*np.array(found)).tolist() == [22, 22, 20, 1, 100]
    kept = stratified_exact(*(column[1:3] for column in found), weights=[0.5, 1])
    assert stratified_exact(*found, weights=[0, 1, 2, 0, 0]) == kept


@pytest.mark.parametrize("log_odds", [-0.7, 0.0, 2.0])
@pytest.mark.parametrize("most", [0, 10**9], ids=["tilted", "enumerated"])
def test_tails_of_unequal_weights_by_either_way(
    monkeypatch: pytest.MonkeyPatch, most: int, log_odds: float
) -> None:
    """Against every outcome of six strata, in rational arithmetic but for the odds ratio."""
    monkeypatch.setattr(convolution, "COMBINATIONS", most)
    found = columns([(3, 4, 1, 4), (3, 4, 2, 3), (1, 5, 2, 5), (0, 4, 2, 3), (2, 2, 1, 2), (4, 5, 4, 5)])
    weights = pass_weights(*np.array(found))
    assert len(set(weights.tolist())) > 3
    ways = [
        [(x, math.comb(n, x) * math.comb(m, total - x)) for x in range(max(0, total - m), min(n, total) + 1)]
        for n, m, total in ((n, m, a + b) for a, n, b, m in zip(*found, strict=True))
    ]
    sums = [
        (sum(x * w for (x, _), w in zip(outcome, weights.tolist(), strict=True)),
         math.prod(way for _, way in outcome) * math.exp(log_odds * sum(x for x, _ in outcome)))
        for outcome in itertools.product(*ways)
    ]  # fmt: skip
    at, whole = int(weights @ np.array(found[0])), math.fsum(way for _, way in sums)
    expected = [math.fsum(way for of, way in sums if np.sign(of - at) == side) / whole for side in (-1, 0, 1)]
    ours = convolution.tails(weighted_strata(strata(*found), weights), log_odds)
    assert ours == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("kept", "effect"), [(8, 0.2), (17, 0.2), (17, 0.4), (8, 0.0)])
def test_size_where_half_of_the_tasks_lost_trials_of_one_arm(kept: int, effect: float) -> None:
    """Four tasks with `effect` and 25 trials per arm, four with its opposite in which b kept fewer: the mean
    difference is 0. Summed passes rejected .229, .069, .126 and .050."""
    runs, rng = 600, np.random.default_rng(11)
    n_a, n_b = np.full(8, 25), np.array([25] * 4 + [kept] * 4)
    sign = np.array([1] * 4 + [-1] * 4)
    draws = zip(
        rng.binomial(n_a, 0.5 + sign * effect / 2, (runs, 8)),
        rng.binomial(n_b, 0.5 - sign * effect / 2, (runs, 8)),
        strict=True,
    )
    tests = [(stratified_exact(a, n_a, b, n_b), stratified_exact(a, n_a, b, n_b, weights="mh")) for a, b in draws]
    ours, passes = (
        np.mean([value(test.p_value) <= 0.05 for test in column]) for column in zip(*tests, strict=True)
    )
    assert ours < 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
    if (kept, effect) == (8, 0.2):
        assert passes > 0.17


def test_published_strata() -> None:
    # R 4.2.2, example of `mantelhaen.test(Rabbits, exact = TRUE)`: p = 0.03994, odds ratio 10.36102
    rabbits = columns(RABBITS)
    ours = stratified_exact(*rabbits, midp=False, convention="minlike", weights="mh")
    assert ours.p_value == pytest.approx(0.03994, abs=5e-6)
    assert ours.n_informative == 3
    assert conditional_odds_ratio(*rabbits, midp=False, weights="mh").estimate == pytest.approx(10.361, abs=1e-3)


def test_no_informative_stratum() -> None:
    found = stratified_exact([5, 0, 3, 0], [5, 5, 4, 0], [4, 0, 0, 2], [4, 5, 0, 4])
    assert (found.p_value, found.attainable_p, found.statistic, found.n_informative) == (1.0, 1.0, 0.0, 0)
    assert found.reason is not None
    assert stratified_exact([], [], [], []).p_value == 1.0
    ratio = conditional_odds_ratio([5, 0], [5, 5], [4, 0], [4, 5])
    assert (ratio.estimate, ratio.low, ratio.high, ratio.n) == (None, None, None, 0)
    assert ratio.reason == found.reason


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


@pytest.mark.parametrize("weights", ["equal", "mh"])
def test_limits_solve_their_equations(weights: Named) -> None:
    found = [(8, 10, 3, 10), (4, 9, 2, 12)]
    interval = conditional_odds_ratio(*columns(found), weights=weights)
    low, high = limits(interval)
    (one, other), s = weighing(found, weights), ways_of_the_sum(found, weights)[1]

    def at(ratio: float) -> dict[int, float]:
        """How probable each sum is, up to a factor, at that odds ratio in both strata."""
        first, second = (given_margins(n_a, n_b, x_a + x_b) for x_a, n_a, x_b, n_b in found)
        sums: dict[int, float] = {}
        for (x, some), (y, more) in itertools.product(first.items(), second.items()):
            total = one * x + other * y
            sums[total] = sums.get(total, 0) + some * more * ratio ** (x + y)
        return sums

    for ratio, above in ((low, True), (high, False)):
        sums = at(ratio)
        side = sum(way for total, way in sums.items() if (total > s if above else total < s))
        assert (side + sums[s] / 2) / sum(sums.values()) == pytest.approx(0.025, rel=1e-9)
    sums = at(value(interval.estimate))
    assert sum(total * way for total, way in sums.items()) / sum(sums.values()) == pytest.approx(s)


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


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ([0, 0, 0.25, 0.75, 0], [0, 1e-280, 0.5, 0, 0.5, 0, 0, 0]),
        ([0.5, 0.5], [0, 1.0]),
        ([0, 0], [0.5, 0.5]),
    ],
)
def test_ends_that_have_underflowed_keep_their_places(one: list[float], two: list[float]) -> None:
    found = convolved([np.array(one), np.array(two)])
    assert found.tolist() == pytest.approx(np.convolve(one, two).tolist(), rel=1e-15, abs=0)


def test_a_sum_so_long_that_its_ends_underflow_is_that_of_one_stratum() -> None:
    """Of 400 strata with 100 pairs of coins each: binomial, with tails far below the least number."""
    coin = stats.binom(100, 0.5).pmf(np.arange(101))
    found = convolved([coin] * 400)
    exact = stats.binom(40_000, 0.5).pmf(np.arange(40_001))
    assert found.size == exact.size
    kept = exact > 1e-290
    assert found[kept] == pytest.approx(exact[kept], rel=1e-9)
    assert found[0] == found[-1] == 0
