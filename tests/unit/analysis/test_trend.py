"""The exact stratified trend test against reference values, enumeration and the test of two arms."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_statistics.comparisons import stratified_exact
from trialfleet_statistics.power import dosed_rates, trend_power
from trialfleet_statistics.trend import dose_slope, stratified_trend

T1 = ([[1, 2, 4], [0, 3, 3], [5, 5, 5], [2, 1, 4]], [[5, 5, 5], [5, 5, 5], [5, 5, 5], [5, 5, 4]])
cell = st.integers(1, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
designs = st.lists(st.tuples(cell, cell, cell), min_size=1, max_size=3)


def test_reference() -> None:
    found = stratified_trend(*T1, [0, 1, 2])
    assert (found.statistic, found.mean) == (43, pytest.approx(34.5))
    assert found.variance == pytest.approx(7.641941392, abs=1e-9)
    assert found.z == pytest.approx(3.074801430, abs=1e-9)
    assert found.p_value == pytest.approx(0.001903963, abs=1e-9)
    assert stratified_trend(*T1, [0, 1, 2], midp=False).p_value == pytest.approx(0.003037274, abs=1e-9)
    assert (found.n_informative, found.direction) == (3, 1)


def test_reference_of_unequal_doses() -> None:
    found = stratified_trend(*T1, [0, 1, 3])
    assert (found.statistic, found.mean) == (59, pytest.approx(45.833333333))
    assert found.variance == pytest.approx(17.702991453, abs=1e-9)
    assert found.p_value == pytest.approx(0.001547041, abs=1e-9)


def test_reference_of_one_stratum() -> None:
    found = stratified_trend([[2, 5, 9]], [[10, 10, 10]], [0, 1, 2])
    assert (found.statistic, found.mean) == (23, pytest.approx(16))
    assert found.variance == pytest.approx(5.149425287, abs=1e-9)
    assert found.p_value == pytest.approx(0.001759079, abs=1e-9)
    assert (found.z or 0) ** 2 == pytest.approx(9.515625, abs=1e-9)


def test_two_doses_are_the_exact_test() -> None:
    found = stratified_trend([[2, 4], [3, 5]], [[5, 5], [5, 5]], [0, 1])
    assert found.p_value == pytest.approx(0.076719577, abs=1e-9)
    assert found.p_value == pytest.approx(stratified_exact([4, 5], [5, 5], [2, 3], [5, 5]).p_value, rel=1e-12)


@settings(max_examples=40)
@given(designs, st.sampled_from([(0, 1, 2), (0, 1, 3), (300, 700, 1500)]))
def test_enumeration_gives_the_same(design: list[tuple[tuple[int, int], ...]], doses: tuple[int, ...]) -> None:
    x, n = np.array(design)[:, :, 0], np.array(design)[:, :, 1]
    chances: dict[int, Fraction] = {0: Fraction(1)}
    for passed, row in zip(x.sum(axis=1).tolist(), n.tolist(), strict=True):
        several: dict[int, int] = {}
        for taken in itertools.product(*(range(count + 1) for count in row)):
            if sum(taken) == passed:
                ways = int(np.prod([comb(count, k) for count, k in zip(row, taken, strict=True)]))
                dose = sum(d * k for d, k in zip(doses, taken, strict=True))
                several[dose] = several.get(dose, 0) + ways
        total = sum(several.values())
        chances = _plus(chances, {dose: Fraction(ways, total) for dose, ways in several.items()})
    at = int((x @ np.array(doses)).sum())
    below = sum(chance for dose, chance in chances.items() if dose < at)
    above = sum(chance for dose, chance in chances.items() if dose > at)
    expected = min(1.0, float(2 * min(below, above) + chances[at]))
    assert stratified_trend(x, n, doses).p_value == pytest.approx(expected, rel=1e-9)


def _plus(one: dict[int, Fraction], other: dict[int, Fraction]) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    for (a, p), (b, q) in itertools.product(one.items(), other.items()):
        found[a + b] = found.get(a + b, Fraction(0)) + p * q
    return found


def test_reversed_doses_and_an_uninformative_stratum_change_no_p() -> None:
    x, n = np.array(T1[0]), np.array(T1[1])
    found = stratified_trend(x, n, [0, 1, 3])
    mirrored = stratified_trend(x[:, ::-1], n[:, ::-1], [0, 2, 3])
    assert (mirrored.p_value, mirrored.direction) == (pytest.approx(found.p_value, rel=1e-12), -1)
    more = stratified_trend(np.vstack([x, [0, 0, 0]]), np.vstack([n, [5, 5, 5]]), [0, 1, 3])
    assert more.p_value == found.p_value


def test_without_information_p_is_one_and_says_why() -> None:
    found = stratified_trend([[0, 0], [3, 3]], [[3, 3], [3, 3]], [1, 2])
    assert (found.p_value, found.z, found.n_informative) == (1.0, None, 0)
    assert (found.reason or "").startswith("no informative stratum")


@pytest.mark.parametrize("doses", [[0, 1], [0, 2, 1], [0, 1, 1], [0, 0.5, 1]])
def test_doses_that_cannot_be_are_refused(doses: list[int]) -> None:
    with pytest.raises(ValueError, match="dose"):
        stratified_trend(*T1, doses)


def test_reference_of_the_slope() -> None:
    """T1 without its constant stratum: a logistic regression with task effects; its score test is not the exact
    test's Z², 9.454, by the factors N / (N − 1)."""
    found = dose_slope(*T1, [0, 1, 2])
    assert (found.slope, found.se) == pytest.approx((1.379801046, 0.468561481), abs=1e-6)
    x, n = (np.array(counts)[[0, 1, 3]] for counts in T1)
    dose = np.array([0, 1, 2])
    total, passed = n.sum(axis=1), x.sum(axis=1)
    spread = (n @ dose**2 - (n @ dose) ** 2 / total) * passed * (total - passed) / total**2
    score = ((x @ dose).sum() - (passed * (n @ dose) / total).sum()) ** 2 / spread.sum()
    assert score == pytest.approx(10.14600167, abs=1e-7)
    assert (stratified_trend(*T1, dose).z or 0) ** 2 == pytest.approx(9.454, abs=1e-3)


def test_the_score_of_the_slope_is_that_of_statsmodels() -> None:
    import statsmodels.api as sm

    x, n = (np.array(counts)[[0, 1, 3]] for counts in T1)
    outcomes = np.column_stack([x.ravel(), (n - x).ravel()])
    effects, dose = np.repeat(np.eye(3), 3, axis=0), np.tile([0.0, 1.0, 2.0], 3)
    null = sm.GLM(outcomes, effects, family=sm.families.Binomial()).fit()
    score, *_ = null.score_test(exog_extra=dose[:, None])
    assert np.ravel(score) == pytest.approx([10.14600167], abs=1e-6)


def test_the_unit_of_doses_scales_the_slope_alone() -> None:
    one, other = dose_slope(*T1, [0, 1, 3]), dose_slope(*T1, [300, 400, 600])
    assert (other.slope or 0) * 100 == pytest.approx(one.slope)
    assert other.odds_ratio.rounded(6) == one.odds_ratio.rounded(6)
    assert (one.low or 0) < (one.slope or 0) < (one.high or 0)


@pytest.mark.parametrize(
    ("passes", "reason"),
    [
        ([[0, 0, 5], [0, 2, 5]], "no finite slope"),
        ([[5, 1, 0]], "no finite slope"),
        ([[0, 0, 0]], "no informative"),
    ],
)
def test_a_slope_without_a_finite_value_says_why(passes: list[list[int]], reason: str) -> None:
    found = dose_slope(passes, [[5, 5, 5]] * len(passes), [0, 1, 2])
    assert (found.slope, found.odds_ratio.estimate) == (None, None)
    assert reason in (found.reason or "")


@pytest.mark.filterwarnings("error")
def test_one_task_under_two_doses_has_its_own_odds_ratio_and_no_warning() -> None:
    found = dose_slope([[1, 3]], [[5, 5]], [0, 1])
    assert found.odds_ratio.estimate == pytest.approx((3 / 2) / (1 / 4))


def test_opposite_ends_in_two_strata_have_a_slope() -> None:
    found = dose_slope([[0, 0, 5], [5, 0, 0]], [[5, 5, 5]] * 2, [0, 1, 2])
    assert found.slope == pytest.approx(0, abs=1e-6)


def test_simulated_power_decides_as_the_test_does() -> None:
    """The same draws, analysed one by one."""
    rates = dosed_rates(np.array([0.2, 0.5, 0.9]), np.array([0.6, 0.7, 0.95]), (0, 3, 7))
    found = trend_power(rates, 6, (0, 3, 7), simulations=150, seed=3)
    drawn = np.random.default_rng(3).binomial(6, rates, (150, 3, 3))
    ps = [stratified_trend(x, np.full((3, 3), 6), [300, 600, 1000]).p_value or 1 for x in drawn]
    assert 0.1 < found.power < 0.9
    assert found.power == sum(p <= 0.05 for p in ps) / 150


def test_rates_move_in_logits_with_the_dose() -> None:
    rates = dosed_rates(np.array([0.5]), np.array([0.9]), (0, 1, 2))
    assert rates[0] == pytest.approx([0.5, 0.75, 0.9])  # logits 0, ln 3, 2 ln 3


def test_no_effect_is_found_in_alpha_of_campaigns() -> None:
    rates = dosed_rates(np.array([0.3, 0.5, 0.6, 0.7]), np.array([0.3, 0.5, 0.6, 0.7]), (0, 1, 2))
    found = trend_power(rates, 10, (0, 1, 2), simulations=4000, seed=7)
    assert found.power == pytest.approx(0.05, abs=3 * 0.0035)
