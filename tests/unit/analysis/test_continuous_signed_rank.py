"""The signed-rank test against all 2ᵀ signs, published data and an independent library; its interval."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from trialfleet_statistics.continuous import hodges_lehmann, signed_rank
from trialfleet_statistics.continuous.signed_rank import Zeros
from trialfleet_statistics.estimates import Alternative

# Darwin's Zea mays (The Effects of Cross and Self Fertilisation, 1876; Fisher 1935, table 3), eighths of an inch.
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
# Hollander & Wolfe 1973, table 3.1: Hamilton depression scale factor IV, first visit and second.
FIRST = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
SECOND = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "greater", "less")

small = st.lists(st.integers(-4, 4), min_size=1, max_size=8)


def enumerated(differences: list[int], zeros: Zeros, alternative: Alternative) -> Fraction:
    """All signs of the non-zero differences, each as likely as the others."""
    kept = [d for d in differences if d or zeros == "pratt"]
    rank = {size: Fraction(sum(abs(d) < size for d in kept)) for size in map(abs, kept)}
    ranks = [rank[abs(d)] + Fraction(sum(abs(e) == abs(d) for e in kept) + 1, 2) for d in kept if d]
    observed = sum((r for r, d in zip(ranks, [d for d in kept if d], strict=True) if d > 0), Fraction(0))
    sums = [
        sum((r for r, up in zip(ranks, ups, strict=True) if up), Fraction(0))
        for ups in product((0, 1), repeat=len(ranks))
    ]
    above = Fraction(sum(s >= observed for s in sums), len(sums))
    below = Fraction(sum(s <= observed for s in sums), len(sums))
    return {"two-sided": min(Fraction(1), 2 * min(above, below)), "greater": above, "less": below}[alternative]


@given(small, st.sampled_from(["pratt", "wilcox"]), st.sampled_from(ALTERNATIVES))
@settings(max_examples=50, deadline=None)
def test_every_sign(differences: list[int], zeros: Zeros, alternative: Alternative) -> None:
    found = signed_rank(differences, zeros=zeros, alternative=alternative)
    if any(differences):
        assert found.p_value == pytest.approx(float(enumerated(differences, zeros, alternative)), rel=1e-12)
        assert found.n_informative == sum(d != 0 for d in differences)
        assert 0 < found.attainable_p <= (found.p_value or 0) * (1 + 1e-12) <= 1 + 1e-12
    else:
        assert (found.p_value, found.statistic, found.reason) == (1.0, 0.0, "all differences are 0")


def test_published() -> None:
    maize = signed_rank(MAIZE)
    assert (maize.statistic, round(maize.p_value or 0, 5)) == (96, 0.04126)  # R: V = 96, p-value = 0.04126
    assert signed_rank(np.subtract(FIRST, SECOND), alternative="greater").p_value == pytest.approx(
        0.01953, abs=5e-6
    )
    interval = hodges_lehmann(np.subtract(FIRST, SECOND))
    assert interval.estimate == pytest.approx(0.46)  # Hollander & Wolfe, examples 3.2 and 3.4, signs reversed
    assert interval.rounded(3) == (0.01, 0.786)
    assert interval.attained_level == pytest.approx(0.961, abs=5e-4)


@pytest.mark.parametrize("size", [6, 17, 30])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_agrees_with_scipy_without_ties(size: int, alternative: Alternative) -> None:
    d = np.random.default_rng(size).normal(0.3, 1, size)
    expected = stats.wilcoxon(d, alternative=alternative, method="exact")
    found = signed_rank(d, alternative=alternative)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-10)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12), st.randoms())
@settings(max_examples=50, deadline=None)
def test_swapped_arms_and_shuffled_tasks(differences: list[float], random: object) -> None:
    found, mirrored = (
        signed_rank(differences, alternative="greater"),
        signed_rank(np.negative(differences), alternative="less"),
    )
    assert found.p_value == mirrored.p_value
    assert signed_rank(differences).p_value == signed_rank(differences[::-1]).p_value
    there, back = hodges_lehmann(differences), hodges_lehmann(np.negative(differences))
    assert there.estimate == pytest.approx(-(back.estimate or 0), abs=1e-9)


def test_what_arithmetic_leaves_is_no_difference() -> None:
    dusty = [0.1 + 0.2 - 0.3, 0.6 - 0.4, 0.2, -0.2, 0.5]
    assert signed_rank(dusty) == signed_rank([0, 2, 2, -2, 5])


def test_two_hundred_tasks_all_up() -> None:
    found = signed_rank(np.arange(1, 201))
    assert found.p_value == found.attainable_p == pytest.approx(2.0**-199)
    assert 0 < (signed_rank(np.ones(1_100)).p_value or 0) < 1e-300


def test_floor_of_few_tasks() -> None:
    floors = [signed_rank(np.ones(tasks)).attainable_p for tasks in (1, 5, 7, 9, 11)]
    assert floors == [1.0, 0.0625, 0.015625, 0.00390625, 0.0009765625]


@given(st.lists(st.integers(-1000, 1000), min_size=6, max_size=14, unique_by=abs).filter(lambda d: 0 not in d))
@settings(max_examples=50, deadline=None)
def test_interval_excludes_zero_exactly_when_the_test_rejects(differences: list[int]) -> None:
    found = hodges_lehmann(differences)
    assert (found.low > 0 or found.high < 0) == ((signed_rank(differences).p_value or 0) <= 0.05)
    assert (found.attained_level or 0) >= 0.95


def test_few_tasks_have_no_limits() -> None:
    found = hodges_lehmann([1, 2, 3, 4, 5])
    assert (found.estimate, found.low, found.high, found.attained_level) == (3, None, None, None)
    assert found.reason == "5 differences allow an interval of 93.75% at most"
    assert hodges_lehmann([1, 2, 3, 4, 5], level=0.9375).rounded(1) == (1.0, 5.0)  # the level itself is reached
    assert hodges_lehmann([2.0], level=0.5).estimate == 2


def test_nothing() -> None:
    assert (signed_rank([]).p_value, signed_rank([]).reason) == (None, "no differences")
    assert (hodges_lehmann([]).estimate, hodges_lehmann([]).reason) == (None, "no differences")
