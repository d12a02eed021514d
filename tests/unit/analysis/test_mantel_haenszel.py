"""Mantel and Haenszel's methods against R's published examples, their definitions, and statsmodels."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from tests.unit.analysis.exact_tables import stratified_chi_square
from trialfleet_statistics.comparisons import (
    breslow_day,
    cochran_mantel_haenszel,
    mantel_haenszel_odds_ratio,
)

Columns = tuple[list[int], list[int], list[int], list[int]]

# Bickel, Hammel & O'Connell 1975 (Science 187:398), R's `UCBAdmissions`: men a, women b, departments A to F.
ADMISSIONS: Columns = (
    [512, 353, 120, 138, 53, 22],
    [825, 560, 325, 417, 191, 373],
    [89, 17, 202, 131, 94, 24],
    [108, 25, 593, 375, 393, 341],
)
# Mantel 1963 (JASA 58:690), R's `Rabbits`.
RABBITS: Columns = ([0, 3, 6, 5, 2], [6, 6, 6, 6, 2], [0, 0, 2, 6, 5], [5, 6, 6, 6, 5])
inner = st.integers(2, 30).flatmap(lambda n: st.tuples(st.integers(1, n - 1), st.just(n)))
strata = st.lists(st.tuples(inner, inner), min_size=2, max_size=6)


def columns(found: list[tuple[tuple[int, int], tuple[int, int]]]) -> Columns:
    return [a[0] for a, _ in found], [a[1] for a, _ in found], [b[0] for _, b in found], [b[1] for _, b in found]


def expected_passes(odds: float, n: int, passes: int, m: int) -> float:
    """Passes in a that give the stratum this odds ratio, by root finding."""

    def excess(x: float) -> float:
        return x * (m - passes + x) - odds * (n - x) * (passes - x)

    return float(optimize.brentq(excess, max(0, passes - m), min(n, passes), xtol=1e-13))


def test_published() -> None:
    # R's `mantelhaen.test(UCBAdmissions)` and `mantelhaen.test(Rabbits)`
    found = cochran_mantel_haenszel(*ADMISSIONS, continuity=True)
    assert (found.statistic, found.p_value) == pytest.approx((1.4269, 0.2323), abs=5e-5)
    ratio = mantel_haenszel_odds_ratio(*ADMISSIONS)
    assert ratio.estimate == pytest.approx(0.9046968, abs=5e-8)
    assert (ratio.low, ratio.high) == pytest.approx((0.7719074, 1.0603298), abs=5e-8)
    rabbits, odds = cochran_mantel_haenszel(*RABBITS, continuity=True), mantel_haenszel_odds_ratio(*RABBITS)
    assert (rabbits.statistic, rabbits.p_value) == pytest.approx((3.9286, 0.04747), abs=5e-5)
    assert (odds.estimate, odds.low, odds.high) == pytest.approx((7, 1.026713, 47.725133), abs=5e-7)
    assert rabbits.n_informative == 3


@settings(max_examples=25, deadline=None)
@given(strata)
def test_agrees_with_the_definitions(found: list[tuple[tuple[int, int], tuple[int, int]]]) -> None:
    counted = columns(found)
    ours, expected = cochran_mantel_haenszel(*counted), stratified_chi_square(*counted)
    assert (ours.statistic, ours.df) == (pytest.approx(expected, rel=1e-9), 1)
    assert ours.p_value == pytest.approx(stats.chi2.sf(expected, 1), rel=1e-7)
    cells = [(x, n - x, y, m - y) for x, n, y, m in zip(*counted, strict=True)]
    odds = sum(a * d / (a + b + c + d) for a, b, c, d in cells) / sum(
        b * c / (a + b + c + d) for a, b, c, d in cells
    )
    assert mantel_haenszel_odds_ratio(*counted).estimate == pytest.approx(odds, rel=1e-9)
    distances, spreads = [], []
    for x, n, y, m in zip(*counted, strict=True):
        fitted = expected_passes(odds, n, x + y, m)
        distances.append(x - fitted)
        spreads.append(1 / sum(1 / cell for cell in (fitted, n - fitted, x + y - fitted, m - x - y + fitted)))
    statistic = sum(d**2 / v for d, v in zip(distances, spreads, strict=True))
    corrected = statistic - sum(distances) ** 2 / sum(spreads)
    assert breslow_day(*counted, tarone=False).statistic == pytest.approx(statistic, rel=1e-7, abs=1e-9)
    homogeneity = breslow_day(*counted, tarone=True)
    assert homogeneity.statistic == pytest.approx(corrected, rel=1e-7, abs=1e-9)
    assert homogeneity.df == len(found) - 1


# StratifiedTable of statsmodels 0.15.0, whose import costs seconds: test_null_odds (χ², p), the odds ratio with
# 95 % and 80 % limits, test_equal_odds without and with Tarone's adjustment.
@pytest.mark.parametrize(
    ("counted", "null", "ratio", "wide", "narrow", "equal"),
    [
        (
            ADMISSIONS,
            (1.5246066604434356, 0.21692369705551817),
            0.9046968282586231,
            (0.7719073617593505, 1.0603297644366558),
            (0.8155057127231269, 1.0036426947006492),
            (18.825513705236514, 18.82550125205323),
        ),
        (
            ([8, 1], [26, 21], [2, 1], [17, 11]),
            (1.163288773844805, 0.2807845204659335),
            2.122266401590457,
            (0.5244325438975223, 8.58835846808131),
            (0.8508085271378906, 5.293805287155686),
            (1.4000015003433561, 1.3975615287002778),
        ),
    ],
)
def test_agrees_with_statsmodels(
    counted: Columns,
    null: tuple[float, float],
    ratio: float,
    wide: tuple[float, float],
    narrow: tuple[float, float],
    equal: tuple[float, float],
) -> None:
    ours = cochran_mantel_haenszel(*counted)
    assert (ours.statistic, ours.p_value) == pytest.approx(null, rel=1e-7)
    for level, limits in ((0.95, wide), (0.8, narrow)):
        found = mantel_haenszel_odds_ratio(*counted, level=level)
        assert found.estimate == pytest.approx(ratio, rel=1e-9)
        assert (found.low, found.high) == pytest.approx(limits, rel=1e-7)
    for tarone, statistic in zip((False, True), equal, strict=True):
        assert breslow_day(*counted, tarone=tarone).statistic == pytest.approx(statistic, rel=1e-7)


@settings(max_examples=25, deadline=None)
@given(strata)
def test_uninformative_strata_change_nothing(found: list[tuple[tuple[int, int], tuple[int, int]]]) -> None:
    counted = columns(found)
    more = columns([((0, 4), (0, 5)), *found, ((3, 3), (2, 2)), ((1, 2), (0, 0))])
    for method in (cochran_mantel_haenszel, breslow_day):
        assert method(*more).statistic == pytest.approx(method(*counted).statistic, rel=1e-9, abs=1e-12)
        assert method(*more).n_informative == len(found)
    assert breslow_day(*more).df == len(found) - 1
    assert mantel_haenszel_odds_ratio(*more) == mantel_haenszel_odds_ratio(*counted)


def test_continuity_corrects_distances_of_a_half_and_more() -> None:
    """As R's `mantelhaen.test`: YATES <- if (correct && (DELTA >= 0.5)) 0.5 else 0."""
    none = cochran_mantel_haenszel([3, 2], [5, 5], [3, 2], [5, 5], continuity=True)  # statsmodels gives .1125
    assert (none.statistic, none.p_value) == (0.0, 1.0)
    below = cochran_mantel_haenszel(2, 3, 1, 2, continuity=True)  # 2 less 9/5, variance .36
    assert below.statistic == pytest.approx(0.2**2 / 0.36)
    assert below.statistic == cochran_mantel_haenszel(2, 3, 1, 2).statistic
    assert cochran_mantel_haenszel(3, 5, 2, 5, continuity=True).statistic == pytest.approx(0, abs=1e-12)  # a half
    thirds = [1, 1, 1], [1, 1, 1], [0, 0, 0], [2, 2, 5]  # 2/3 + 2/3 + 5/6, variances 2/9, 2/9, 5/36
    corrected = cochran_mantel_haenszel(*thirds, continuity=True)
    assert corrected.statistic == pytest.approx((13 / 6 - 0.5) ** 2 / (21 / 36))


def test_undefined() -> None:
    nothing = [5, 0], [5, 5], [4, 0], [4, 5]
    test, ratio, homogeneity = (
        method(*nothing) for method in (cochran_mantel_haenszel, mantel_haenszel_odds_ratio, breslow_day)
    )
    assert (test.p_value, test.statistic, test.n_informative) == (None, None, 0)
    assert (ratio.estimate, ratio.low, ratio.high) == (None, None, None)
    assert homogeneity.p_value is None
    assert test.reason
    assert ratio.reason
    assert homogeneity.reason
    assert breslow_day(3, 5, 2, 5).p_value is None
    assert breslow_day([5, 5], [5, 5], [2, 3], [5, 5]).reason == "the common odds ratio is 0 or infinite"
    only_a = mantel_haenszel_odds_ratio([5, 5], [5, 5], [2, 3], [5, 5])
    assert (only_a.estimate, only_a.low, only_a.high) == (math.inf, None, None)
    assert only_a.reason
    assert mantel_haenszel_odds_ratio(2, 5, 5, 5).estimate == 0.0


def test_breslow_days_fit_holds_for_small_and_large_ratios() -> None:
    for table in (([29, 28], [30, 30], [1, 3], [30, 30]), ([1, 3], [30, 30], [29, 28], [30, 30])):
        # StratifiedTable.test_equal_odds of statsmodels 0.15.0
        assert breslow_day(*table).statistic == pytest.approx(1.244866592474, rel=1e-6)
