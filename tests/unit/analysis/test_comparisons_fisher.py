"""Fisher's test against rational arithmetic, scipy, and what must hold for every table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.unit.analysis.exact_tables import SIDED, fisher_order, fisher_scale, given_margins, tables
from trialfleet_statistics.comparisons import fisher, fisher_rejects
from trialfleet_statistics.comparisons.fisher import SIDES
from trialfleet_statistics.comparisons.hypergeometric import tail_sums
from trialfleet_statistics.estimates import Alternative

arm = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
mirrored: dict[Alternative, Alternative] = {"two-sided": "two-sided", "greater": "less", "less": "greater"}


@pytest.mark.parametrize("alternative", SIDED)
def test_every_table_up_to_twelve_per_arm(alternative: Alternative) -> None:
    for n_a in range(1, 13):
        for n_b in range(n_a, 13):  # the other half by symmetry, below
            exact = np.array(fisher_order(n_a, n_b, alternative), dtype=float) / fisher_scale(n_a, n_b)
            x_a, x_b = np.array(list(tables(n_a, n_b))).T
            found = fisher(x_a, [n_a], x_b, [n_b], alternative=alternative)
            assert found.p_value == pytest.approx(exact.ravel(), rel=1e-12)
            margins = x_a * 0 + n_a, x_a * 0 + n_b, x_a + x_b
            assert tail_sums(x_a, *margins, side=SIDES[alternative]) == pytest.approx(exact.ravel(), rel=1e-12)


@pytest.mark.parametrize("alternative", SIDED)
def test_attainable_is_the_least_with_these_margins(alternative: Alternative) -> None:
    for n_a, n_b in ((1, 1), (3, 3), (5, 5), (4, 7), (12, 5)):
        exact = fisher_order(n_a, n_b, alternative)
        for x_a, x_b in tables(n_a, n_b):
            passes = x_a + x_b
            least = min(exact[x][passes - x] for x in given_margins(n_a, n_b, passes))
            found = fisher(x_a, n_a, x_b, n_b, alternative=alternative)
            assert found.attainable_p == pytest.approx(least / fisher_scale(n_a, n_b), rel=1e-12)


def test_what_few_reps_can_show() -> None:
    reached = {(a, b) for a, b in tables(5, 5) if fisher_rejects(5, 5, alpha=0.05)[a, b]}
    assert reached == {(0, 4), (4, 0), (0, 5), (5, 0), (1, 5), (5, 1)}
    assert not fisher_rejects(3, 3, alpha=0.05).any()
    assert fisher_rejects(3, 3, alpha=0.1).sum() == 2, "a p of exactly alpha rejects"
    assert fisher(3, 3, 0, 3).p_value == pytest.approx(0.1)


def test_many_margins_at_once_agree_with_scipy() -> None:
    rng = np.random.default_rng(1)
    n_a, n_b = rng.integers(1, 300, (2, 60))
    x_a, x_b = rng.integers(0, n_a + 1), rng.integers(0, n_b + 1)
    for alternative in SIDED:
        expected = [
            stats.fisher_exact([[a, n - a], [b, m - b]], alternative=alternative).pvalue
            for a, n, b, m in zip(x_a, n_a, x_b, n_b, strict=True)
        ]
        found = fisher(
            x_a.reshape(6, 10), n_a.reshape(6, 10), x_b.reshape(6, 10), n_b.reshape(6, 10), alternative=alternative
        )
        assert found.p_value.shape == (6, 10)
        assert found.p_value.ravel() == pytest.approx(expected, rel=1e-10)


def test_more_terms_than_one_chunk_holds() -> None:
    n = np.array([40_000, 60_000, 50_000, 7])
    found = fisher(n // 2, n, n // 2 + n // 100, n)
    alone = [fisher(int(k) // 2, int(k), int(k) // 2 + int(k) // 100, int(k)).p_value for k in n]
    assert found.p_value.tolist() == pytest.approx(alone, rel=1e-12)
    assert alone[0] == pytest.approx(stats.fisher_exact([[20_000, 20_000], [20_400, 19_600]]).pvalue, rel=1e-7)


@settings(max_examples=25, deadline=None)
@given(arm, arm, st.sampled_from(SIDED))
def test_symmetries(a: tuple[int, int], b: tuple[int, int], alternative: Alternative) -> None:
    p = fisher(*a, *b, alternative=alternative).p_value
    assert 0 < p <= 1
    assert fisher(*b, *a, alternative=mirrored[alternative]).p_value == pytest.approx(p, rel=1e-10)
    failed_a, failed_b = (a[1] - a[0], a[1]), (b[1] - b[0], b[1])
    assert fisher(*failed_a, *failed_b, alternative=mirrored[alternative]).p_value == pytest.approx(p, rel=1e-10)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(SIDED), st.sampled_from([0.01, 0.05, 0.2]))
def test_a_region_is_where_p_is_at_most_alpha(n_a: int, n_b: int, alternative: Alternative, alpha: float) -> None:
    x_a, x_b = np.array(list(tables(n_a, n_b))).T
    p = fisher(x_a, x_a * 0 + n_a, x_b, x_b * 0 + n_b, alternative=alternative).p_value.reshape(n_a + 1, n_b + 1)
    region = fisher_rejects(n_a, n_b, alpha=alpha, alternative=alternative)
    assert np.array_equal(region, p <= alpha * (1 + 1e-7))
    if alternative == "greater":
        assert np.all(np.diff(p, axis=0) <= 1e-12)
        assert np.all(np.diff(p, axis=1) >= -1e-12)


def test_odds_ratio_and_what_says_nothing() -> None:
    assert fisher(3, 5, 2, 5).statistic == pytest.approx(3 * 3 / (2 * 2))
    assert fisher(5, 5, 2, 5).statistic == np.inf
    none, every = fisher(0, 5, 0, 7), fisher(5, 5, 7, 7)
    assert (none.p_value, none.attainable_p, none.statistic, none.n_informative) == (1.0, 1.0, None, 0)
    assert (none.reason, every.reason, every.p_value) == ("no trial passed", "every trial passed", 1.0)
    empty = fisher(0, 0, 3, 5)
    assert (empty.p_value, empty.attainable_p, empty.reason) == (None, None, "no valid trial")
    several = fisher([0, 3], [0, 5], [3, 0], [5, 5])
    assert np.isnan(several.p_value[0])
    assert several.reason.tolist() == ["no valid trial", None]
    assert several.n_informative.tolist() == [0, 10]
    assert fisher([], [], [], []).p_value.shape == (0,)


def test_never_zero() -> None:
    assert fisher(5000, 5000, 0, 5000).p_value == np.finfo(float).tiny
