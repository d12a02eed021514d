"""Several campaigns of one contrast: reference values, and what must not change a pooled number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from trialfleet_statistics.comparisons import conditional_odds_ratio, stratified_exact
from trialfleet_statistics.intervals import stratified_miettinen_nurminen
from trialfleet_statistics.pooling import difference_variance, random_effects, strata_weights

EFFECTS, VARIANCES = (0.12, 0.05, 0.18, 0.02), (0.0025, 0.0016, 0.0049, 0.0009)

FIVE = [5] * 4
ONE = ([5, 3, 4, 2], FIVE, [2, 3, 1, 0], FIVE)
TWO = ([4, 5, 2, 1], FIVE, [3, 2, 2, 0], FIVE)
BOTH = tuple([*one, *two] for one, two in zip(ONE, TWO, strict=True))

numbers = st.lists(
    st.tuples(st.integers(-900, 900).map(lambda effect: effect / 1000), st.floats(1e-4, 0.05)),
    min_size=3,
    max_size=8,
    unique_by=lambda pair: pair[0],
)


@pytest.mark.parametrize(
    ("four", "p", "odds", "odds_limits", "difference", "limits"),
    [
        (ONE, 0.011267882, 6.416101619, (1.478941607, 35.713617962), 0.40, (0.106031001, 0.637037393)),
        (TWO, 0.095982143, 3.573798877, (0.808512769, 19.513862841), 0.25, (-0.036051597, 0.503234589)),
        (BOTH, 0.002229055, 4.850286917, (1.718837229, 15.187794574), 0.325, (0.126118809, 0.505324086)),
    ],
    ids=["one", "two", "both"],
)
def test_strata_of_campaign_and_task_give_the_reference(
    four: tuple[list[int], ...],
    p: float,
    odds: float,
    odds_limits: tuple[float, float],
    difference: float,
    limits: tuple[float, float],
) -> None:
    weights = strata_weights([4] * (len(four[0]) // 4), weighing="campaigns")
    x_a, n_a, x_b, n_b = four
    assert stratified_exact(x_a, n_a, x_b, n_b, weights=weights).p_value == pytest.approx(p, abs=1e-9)
    ratio = conditional_odds_ratio(x_a, n_a, x_b, n_b, weights=weights)
    assert (ratio.estimate, ratio.low, ratio.high) == pytest.approx((odds, *odds_limits), rel=1e-6)
    mean = stratified_miettinen_nurminen(x_a, n_a, x_b, n_b, weights=weights)
    assert (mean.estimate, mean.low, mean.high) == pytest.approx((difference, *limits), abs=1e-6)


def test_random_effects_give_the_reference() -> None:
    found = random_effects(EFFECTS, VARIANCES)
    assert found.homogeneity.statistic == pytest.approx(6.216976333, abs=1e-6)
    assert found.homogeneity.p_value == pytest.approx(0.101518034, abs=1e-6)
    fixed = found.fixed
    assert (fixed.estimate, fixed.low, fixed.high) == pytest.approx(
        (0.059057920, 0.018542320, 0.099573520), abs=1e-6
    )
    assert found.tau2 == pytest.approx(0.002393447, abs=1e-6)
    assert found.se == pytest.approx(0.033416836, abs=1e-6)
    mean = found.mean
    assert (mean.estimate, mean.low, mean.high) == pytest.approx(
        (0.075706161, -0.030641124, 0.182053446), abs=1e-6
    )
    weights = 1 / (np.array(VARIANCES) + found.tau2)
    assert weights @ (np.array(EFFECTS) - mean.estimate) ** 2 == pytest.approx(3, abs=1e-5)
    assert np.array(found.weights) == pytest.approx(weights / weights.sum())


def test_prediction_is_the_mean_with_both_variances() -> None:
    found = random_effects(EFFECTS, VARIANCES)
    assert found.tau2 is not None
    assert found.se is not None
    reach = special.stdtrit(3, 0.975) * np.sqrt(found.tau2 + found.se**2)
    assert found.prediction.high == pytest.approx(found.mean.estimate + reach)
    assert found.prediction.low == pytest.approx(found.mean.estimate - reach)


@pytest.mark.filterwarnings("ignore:.use_t=True. requires")
def test_the_row_of_statsmodels_is_hartung_and_knapp_s_as_in_metafor() -> None:
    """For DerSimonian and Laird, where metafor agrees to 1e-9: another release must not change the row's sense."""
    from statsmodels.stats.meta_analysis import combine_effects

    found = combine_effects(np.array(EFFECTS), np.array(VARIANCES), method_re="chi2", use_t=True)
    row = found.summary_frame().loc["random effect wls"]
    assert found.tau2 == pytest.approx(0.002062752, abs=1e-9)
    told = [row[name] for name in ("eff", "sd_eff", "ci_low", "ci_upp")]
    assert told == pytest.approx([0.074541187, 0.033200766, -0.031118469, 0.180200844], abs=1e-9)
    assert 2 * special.stdtr(3, -row["eff"] / row["sd_eff"]) == pytest.approx(0.110431556, abs=1e-8)
    unscaled = found.summary_frame().loc["random effect"]
    assert unscaled["sd_eff"] == pytest.approx(0.032053093, abs=1e-8)
    fixed = (
        combine_effects(np.array(EFFECTS), np.array(VARIANCES), use_t=False).summary_frame().loc["fixed effect"]
    )
    assert fixed["sd_eff"] == pytest.approx(0.020671604, abs=1e-8)


@settings(max_examples=50)
@given(numbers, st.randoms(use_true_random=False))
def test_the_order_of_campaigns_changes_nothing(pairs: list[tuple[float, float]], draw: object) -> None:
    one = random_effects(*zip(*pairs, strict=True))
    draw.shuffle(pairs)  # type: ignore[attr-defined]
    other = random_effects(*zip(*pairs, strict=True))
    assert (one.tau2, one.se) == pytest.approx((other.tau2, other.se), rel=1e-6, abs=1e-9)
    assert one.mean.rounded(7) == pytest.approx(other.mean.rounded(7), abs=2e-7)


@settings(max_examples=50)
@given(numbers)
def test_swapping_the_arms_mirrors_the_mean(pairs: list[tuple[float, float]]) -> None:
    y, v = zip(*pairs, strict=True)
    one, other = random_effects(y, v), random_effects([-value for value in y], v)
    assert other.test.p_value == pytest.approx(one.test.p_value, rel=1e-6)
    assert other.mean.estimate == pytest.approx(-one.mean.estimate, abs=1e-9)
    assert (other.mean.low, other.mean.high) == pytest.approx((-one.mean.high, -one.mean.low), abs=1e-9)


@settings(max_examples=50)
@given(numbers)
def test_the_variance_between_campaigns_solves_its_equation(pairs: list[tuple[float, float]]) -> None:
    y, v = (np.array(column) for column in zip(*pairs, strict=True))
    found = random_effects(y, v)
    assert found.tau2 is not None
    weights = 1 / (v + found.tau2)
    excess = weights @ (y - weights @ y / weights.sum()) ** 2 - (y.size - 1)
    assert abs(excess) < 1e-3 if found.tau2 > 0 else excess < 1e-3


def test_few_campaigns_have_no_interval() -> None:
    two = random_effects(EFFECTS[:2], VARIANCES[:2])
    assert two.mean.estimate is not None
    assert (two.mean.low, two.test.p_value, two.prediction.high) == (None, None, None)
    assert two.mean.reason == "2 campaigns: an interval needs 3"
    one = random_effects(EFFECTS[:1], VARIANCES[:1])
    assert (one.mean.estimate, one.tau2, one.homogeneity.p_value, one.weights) == (None, None, None, ())
    assert one.mean.reason == "1 campaign with a variance; a mean of campaigns needs two"


def test_equal_differences_leave_no_spread() -> None:
    found = random_effects([0.1] * 4, [0.002] * 4)
    assert (found.tau2, found.test.p_value, found.mean.low) == (0, None, None)
    assert "equal" in (found.mean.reason or "")


def test_no_numbers_are_refused() -> None:
    for effects, variances in (([0.1, 0.2], [0.1]), ([0.1, 0.2], [0.1, 0.0]), ([0.1, float("nan")], [0.1, 0.1])):
        with pytest.raises(ValueError, match="positive variance"):
            random_effects(effects, variances)


def test_the_variance_of_one_campaign() -> None:
    rates = ((1.0, 0.4), (0.6, 0.6), (0.8, 0.2), (0.4, 0.0))
    by_hand = sum(p * (1 - p) / 4 for pair in rates for p in pair) / 16
    assert difference_variance(*ONE).variance == pytest.approx(by_hand)


def test_saturated_rates_take_the_constrained_variance() -> None:
    found = difference_variance([5, 0, 5], [5] * 3, [0, 0, 5], [5] * 3)
    assert found.constrained
    assert found.variance is not None
    assert found.variance > 0
    none = difference_variance([0, 5], [5, 5], [0, 5], [5, 5])
    assert (none.variance, none.constrained) == (None, False)


@pytest.mark.parametrize(
    ("four", "reason"),
    [
        (([], [], [], []), "no task"),
        (([1], [2], [0], [0]), "no valid trial"),
        (([1, 1], [2, 1], [0, 0], [2, 1]), "single valid trial"),
    ],
)
def test_what_has_no_variance_says_why(four: tuple[list[int], ...], reason: str) -> None:
    found = difference_variance(*four)
    assert found.variance is None
    assert reason in (found.reason or "")


def test_weights_count_every_campaign_or_every_task_the_same() -> None:
    assert strata_weights([2, 1, 0]).tolist() == [1, 1, 1]
    assert strata_weights([4, 2], weighing="campaigns").tolist() == [0.5] * 4 + [1] * 2
    assert strata_weights([3], weighing="campaigns").tolist() == strata_weights([3]).tolist() == [1] * 3
