"""Boschloo's and Barnard's tests against rational arithmetic with an independent search for the worst rate."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.unit.analysis.exact_tables import SIDED, fisher_order, tables, wald_order, worst_rate
from trialfleet_statistics.comparisons import barnard, boschloo, boschloo_rejects, fisher
from trialfleet_statistics.comparisons.unconditional import Convention
from trialfleet_statistics.estimates import Alternative

CONVENTIONS: tuple[Convention, ...] = ("central", "minlike")
WALDS: tuple[tuple[bool, Alternative], ...] = ((True, "two-sided"), (False, "two-sided"))
arm = st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize("n_a", range(1, 13))
def test_every_table_up_to_twelve_per_arm(n_a: int) -> None:
    for n_b in range(n_a, 13):  # the other half by symmetry, below
        every = list(tables(n_a, n_b))
        x_a, x_b = np.array(every).T
        oracles = [worst_rate(fisher_order(n_a, n_b, side)) for side in SIDED[:2]]
        either, greater = (np.array([oracle(*table) for table in every]) for oracle in oracles)
        less = greater[::-1]  # pass and fail exchanged: the last table becomes the first
        central = np.minimum(1, 2 * np.minimum(greater, less))
        assert boschloo(x_a, [n_a], x_b, [n_b]).p_value == pytest.approx(central, abs=2e-8)
        minlike = boschloo(x_a, [n_a], x_b, [n_b], convention="minlike")
        assert minlike.p_value == pytest.approx(either, abs=1e-8)
        for pooled, alternative in WALDS:
            oracle = worst_rate(wald_order(n_a, n_b, pooled, alternative))
            found = barnard(x_a, [n_a], x_b, [n_b], pooled=pooled, alternative=alternative)
            assert found.p_value == pytest.approx([oracle(*table) for table in every], abs=1e-8)


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_one_sided_tables_of_unequal_arms(alternative: Alternative) -> None:
    for n_a, n_b in ((7, 4), (5, 9)):
        every = list(tables(n_a, n_b))
        x_a, x_b = np.array(every).T
        oracle = worst_rate(fisher_order(n_a, n_b, alternative))
        found = boschloo(x_a, [n_a], x_b, [n_b], alternative=alternative)
        assert found.p_value == pytest.approx([oracle(*table) for table in every], abs=1e-8)
        for pooled in (True, False):
            oracle = worst_rate(wald_order(n_a, n_b, pooled, alternative))
            found = barnard(x_a, [n_a], x_b, [n_b], pooled=pooled, alternative=alternative)
            assert found.p_value == pytest.approx([oracle(*table) for table in every], abs=1e-8)


# Own rational arithmetic, where plain float comparisons of the statistic give .0580, .0136 and .0206.
@pytest.mark.parametrize(
    ("table", "pooled", "expected"),
    [((3, 5, 0, 5), True, 0.0618), ((4, 5, 0, 5), False, 0.0215), ((12, 35, 22, 35), False, 0.0225)],
)
def test_ties_are_not_lost(table: tuple[int, int, int, int], pooled: bool, expected: float) -> None:
    assert barnard(*table, pooled=pooled).p_value == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("alternative", SIDED)
def test_boschloo_agrees_with_scipy(alternative: Alternative) -> None:
    for table in ((7, 12, 2, 9), (20, 25, 12, 25), (3, 30, 11, 40)):
        x_a, n_a, x_b, n_b = table
        expected = stats.boschloo_exact([[x_a, x_b], [n_a - x_a, n_b - x_b]], alternative=alternative, n=64)
        found = boschloo(*table, alternative=alternative)
        assert found.p_value == pytest.approx(expected.pvalue, abs=1e-7)
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize(("n_a", "n_b"), [(5, 5), (7, 11), (11, 7)])
def test_a_region_is_where_p_is_at_most_alpha(convention: Convention, n_a: int, n_b: int) -> None:
    x_a, x_b = np.array(list(tables(n_a, n_b))).T
    for alternative in SIDED:
        p = boschloo(x_a, [n_a], x_b, [n_b], convention=convention, alternative=alternative).p_value
        region = boschloo_rejects(n_a, n_b, alpha=0.05, convention=convention, alternative=alternative)
        assert np.array_equal(region.ravel(), p <= 0.05 * (1 + 1e-7))


@settings(max_examples=25, deadline=None)
@given(arm, arm, st.sampled_from(CONVENTIONS), st.booleans())
def test_symmetries(a: tuple[int, int], b: tuple[int, int], convention: Convention, pooled: bool) -> None:
    for test in (partial(boschloo, convention=convention), partial(barnard, pooled=pooled)):
        found = test(*a, *b)
        assert 0 < found.attainable_p <= found.p_value * (1 + 1e-7)
        assert found.p_value <= 1
        assert test(*b, *a).p_value == pytest.approx(found.p_value, abs=1e-8)
        assert test(a[1] - a[0], a[1], b[1] - b[0], b[1]).p_value == pytest.approx(found.p_value, abs=1e-8)


@settings(max_examples=25, deadline=None)
@given(arm, arm, st.sampled_from(SIDED[1:]))
def test_a_one_sided_p_never_above_fishers(
    a: tuple[int, int], b: tuple[int, int], alternative: Alternative
) -> None:
    ours, fishers = (
        boschloo(*a, *b, alternative=alternative).p_value,
        fisher(*a, *b, alternative=alternative).p_value,
    )
    assert ours <= fishers * (1 + 1e-7)


def test_least_attainable() -> None:
    # only all against none is as extreme: 2 sup π^n (1 − π)^n = 2 / 4^n
    assert boschloo(1, 3, 1, 3).attainable_p == pytest.approx(2 / 4**3)
    assert boschloo(1, 3, 1, 3, alternative="greater").attainable_p == pytest.approx(1 / 4**3)
    assert barnard(1, 3, 1, 3).attainable_p == pytest.approx(2 / 4**3)


def test_what_says_nothing() -> None:
    for test in (boschloo, barnard):
        none = test(0, 5, 0, 7)
        assert (none.p_value, none.n_informative, none.reason) == (1.0, 0, "no trial passed")
        assert test(5, 5, 7, 7).p_value == 1.0
        assert (test(0, 0, 3, 5).p_value, test(0, 0, 3, 5).reason) == (None, "no valid trial")
        several = test(np.array([[0, 3], [2, 5]]), np.array([[0, 5], [5, 5]]), [1], [4])
        assert np.isnan(several.p_value).tolist() == [[True, False], [False, False]]
        assert several.p_value[1, 1] == test(5, 5, 1, 4).p_value
        with pytest.raises(ValueError, match="passes"):
            test(6, 5, 1, 4)
