"""Families of tests: independent libraries, published examples, and what must hold for any p-values."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from trialfleet_statistics.multiplicity import (
    Adjustment,
    Attainability,
    attainability,
    benjamini_hochberg,
    holm,
)

METHODS = [(holm, "holm"), (benjamini_hochberg, "bh")]
families = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=20)


@pytest.mark.parametrize(("method", "theirs"), METHODS[1:])
@settings(max_examples=30, deadline=None)
@given(p_values=families)
def test_agrees_with_scipy(method: Callable[..., Adjustment], theirs: str, p_values: list[float]) -> None:
    found = method(p_values)
    assert found.adjusted == pytest.approx(stats.false_discovery_control(p_values, method=theirs), rel=1e-12)
    assert (found.family_size, found.dropped) == (len(p_values), ())


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=7))
def test_holm_is_bonferroni_in_every_part_of_the_family(p_values: list[float]) -> None:
    """Closed testing: an adjusted p is the largest Bonferroni p of the parts that hold the test."""
    places = range(len(p_values))
    parts = [part for size in range(1, len(p_values) + 1) for part in combinations(places, size)]
    whole = {part: min(1.0, len(part) * min(p_values[i] for i in part)) for part in parts}
    expected = [max(p for part, p in whole.items() if i in part) for i in places]
    assert holm(p_values).adjusted == pytest.approx(expected, rel=1e-12)


# Benjamini & Hochberg 1995, section 3.2: fifteen p-values, of which the procedure at .05 rejects four.
PUBLISHED = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459),
    *(0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
]


def test_the_published_example() -> None:
    assert int(benjamini_hochberg(PUBLISHED).rejected.sum()) == 4
    assert int(holm(PUBLISHED).rejected.sum()) == 3


@pytest.mark.parametrize(("method", "_name"), METHODS)
@settings(max_examples=40, deadline=None)
@given(p_values=families)
def test_properties(method: Callable[..., Adjustment], _name: str, p_values: list[float]) -> None:
    found = method(p_values)
    p = np.array(p_values)
    assert np.all(found.adjusted >= p * (1 - 1e-12))
    assert np.all((found.adjusted > 0) & (found.adjusted <= 1))
    order = np.argsort(p, kind="stable")
    assert np.all(np.diff(found.adjusted[order]) >= 0)
    assert method(p_values[::-1]).adjusted[::-1] == pytest.approx(found.adjusted)
    assert not np.any(found.rejected & (p > 0.05 * (1 + 1e-7)))


def test_a_tie_with_alpha_is_a_rejection() -> None:
    """Three times .05 / 3 is above .05 in floating point."""
    assert holm([0.05 / 3, 0.9, 0.9]).rejected.tolist() == [True, False, False]
    assert holm([0.1 + 0.2 - 0.25]).rejected.tolist() == [True]


def test_what_cannot_reach_alpha_leaves_the_family() -> None:
    """Three tasks all passed or all failed: with four left, one perfect split suffices."""
    least = 2 / math.comb(10, 5)
    p, attainable = [least, 1.0, 1.0, 1.0, 0.44, 0.52, 1.0], [least, 1.0, 1.0, 1.0, least, 0.048, 0.0476]
    found = benjamini_hochberg(p, attainable=attainable)
    assert found.dropped == (1, 2, 3)
    assert found.family_size == 4
    assert found.adjusted[0] == pytest.approx(4 * least)
    assert found.rejected.tolist() == [True, *[False] * 6]
    assert np.isnan(found.adjusted).tolist() == [False, True, True, True, False, False, False]
    assert list(found.reason) == [None, *["cannot reach alpha given these totals"] * 3, None, None, None]


@pytest.mark.parametrize(("method", "_name"), METHODS)
def test_an_empty_family(method: Callable[..., Adjustment], _name: str) -> None:
    nothing = method([])
    assert (nothing.adjusted.size, nothing.family_size, nothing.dropped) == (0, 0, ())
    gone = method([1.0, 1.0], attainable=[1.0, 0.2])
    assert (gone.family_size, gone.dropped, gone.rejected.any()) == (0, (0, 1), np.False_)


def test_dropping_keeps_the_error_rate() -> None:
    """Twenty tasks of 5 against 5 without an effect, a third near the floor: Holm's familywise error, seeded."""
    rng = np.random.default_rng(5)
    rates = np.concatenate([np.full(7, 0.02), np.full(13, 0.5)])
    table = np.array([[stats.fisher_exact([[a, 5 - a], [b, 5 - b]]).pvalue for b in range(6)] for a in range(6)])
    least = np.array([min(table[a, m - a] for a in range(max(0, m - 5), min(5, m) + 1)) for m in range(11)])
    wrong = 0
    for _ in range(500):
        a, b = rng.binomial(5, rates), rng.binomial(5, rates)
        wrong += bool(holm(table[a, b], attainable=least[a + b]).rejected.any())
    assert wrong / 500 <= 0.05


# --- what a test could show ---------------------------------------------------------------------------------


def test_three_labels() -> None:
    three_reps, five_reps = 2 / math.comb(6, 3), 2 / math.comb(10, 5)
    reps = attainability(three_reps, 1.0, family_size=7)
    assert (reps.label, reps.agreeing) == (Attainability.NOT_WITH_THESE_REPS, None)
    totals = attainability(five_reps, 0.44, family_size=7)
    assert (totals.label, totals.agreeing) == (Attainability.NOT_GIVEN_THESE_TOTALS, None)
    family = attainability(five_reps, five_reps, family_size=7)
    assert (family.label, family.agreeing) == (Attainability.NOT_ALONE, 2)
    assert family.text == "cannot reach alpha in this family unless 2 tasks agree"
    assert attainability(five_reps, five_reps, family_size=6).label is Attainability.ALONE


@given(st.integers(1, 40), st.floats(1e-5, 0.05))
def test_as_many_as_said_must_agree(family_size: int, least: float) -> None:
    found = attainability(least, least, family_size=family_size)
    for agreeing in (found.agreeing - 1, found.agreeing):
        p = [least] * agreeing + [1.0] * (family_size - agreeing)
        assert bool(benjamini_hochberg(p).rejected.any()) == (agreeing == found.agreeing)


@pytest.mark.parametrize("p_values", [[-0.1], [1.1], [math.nan], [[0.1]]])
@pytest.mark.parametrize(("method", "_name"), METHODS)
def test_refuses_what_is_no_p(method: Callable[..., Adjustment], _name: str, p_values: list[float]) -> None:
    with pytest.raises(ValueError, match="p_values"):
        method(p_values)


@pytest.mark.parametrize(("method", "theirs"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
@pytest.mark.parametrize("family", ["published", "tied", 1, 2, 3])
def test_agrees_with_statsmodels(method: Callable[..., Adjustment], theirs: str, family: str | int) -> None:
    """Five families, not hypothesis: every call of multipletests collects all garbage."""
    drawn = np.random.default_rng(family if isinstance(family, int) else 0).beta(0.3, 1, 12).tolist()
    p_values = {"published": PUBLISHED, "tied": [0.04, 0.001, 0.03, 0.03, 0.2]}.get(str(family), drawn)
    rejected, adjusted, *_ = multipletests(p_values, method=theirs)
    found = method(p_values)
    assert found.adjusted == pytest.approx(adjusted, rel=1e-12)
    assert found.rejected.tolist() == rejected.tolist()
