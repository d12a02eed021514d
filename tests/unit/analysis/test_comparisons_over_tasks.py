"""Comparisons whose unit is the task: formulas spelled out, scipy, published values, and their limits."""

from __future__ import annotations

import math
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from trialfleet_statistics.comparisons import (
    breslow_day,
    equivalence,
    gail_simon,
    heterogeneity,
    linear_contrast,
    paired_t_on_tasks,
    variance_components,
)
from trialfleet_statistics.comparisons.heterogeneity import qualitative_p
from trialfleet_statistics.intervals import newcombe, pooled_random
from trialfleet_statistics.power.campaigns import Population, calibrated, drawn_rates

limits = attrgetter("low", "high")

rates = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=3, max_size=12)


@settings(max_examples=25, deadline=None)
@given(rates, st.sampled_from(["two-sided", "greater", "less"]), st.sampled_from([0.0, 0.1, -0.25]))
def test_paired_t_agrees_with_scipy(found: list[tuple[int, int]], alternative: str, null: float) -> None:
    a, b = np.array(found).T / 10
    ours = paired_t_on_tasks(a, b, null=null, alternative=alternative)  # type: ignore[arg-type]
    if np.ptp(np.array(found) @ [1, -1]) == 0:
        assert (ours.p_value, ours.statistic) == (None, None)
        assert ours.reason
        return
    expected = stats.ttest_1samp(a - b, null, alternative=alternative)
    assert (ours.statistic, ours.p_value, ours.df) == pytest.approx(
        (expected.statistic, expected.pvalue, len(found) - 1), rel=1e-9
    )
    both_sides = stats.ttest_1samp(a - b, 0).confidence_interval()
    assert limits(ours.interval) == pytest.approx((max(-1, both_sides.low), min(1, both_sides.high)), abs=1e-12)
    assert ours.interval.estimand == "tasks_like_these"
    means = [np.delete(a - b, t).mean() for t in range(len(found))]
    assert ours.leave_one_out == pytest.approx((min(means), max(means)))


def test_the_task_that_carries_the_effect() -> None:
    found = paired_t_on_tasks([1.0, 0.5, 0.5, 0.5], [0.2, 0.5, 0.4, 0.6])
    assert found.largest_share == pytest.approx(0.8 / 0.8)
    assert found.leave_one_out == pytest.approx((0.0, 0.9 / 3))
    negative = paired_t_on_tasks([0.2, 0.5], [1.0, 0.7])
    assert negative.largest_share == pytest.approx(0.8)
    assert paired_t_on_tasks([0.2, 0.8], [0.8, 0.2]).largest_share is None
    assert found.caveat == "assumes no rare strong task effects"
    assert paired_t_on_tasks(np.linspace(0, 1, 20), np.full(20, 0.5)).caveat is None


@pytest.mark.parametrize(
    ("tasks", "moving", "least"),
    [(4, 1, 0.391), (7, 1, 0.356), (7, 2, 0.172), (12, 3, 0.082), (12, 4, 0.039), (7, 4, 0.030)],
)
def test_paired_t_says_what_saturated_tasks_leave_it_to_reach(tasks: int, moving: int, least: float) -> None:
    """t ≤ √(k (T − 1) / (T − k)): two of seven or three of twelve moving tasks never reject."""
    a, b = np.array([1.0] * moving + [0.0] * (tasks - moving)), np.zeros(tasks)
    found = paired_t_on_tasks(a, b)
    assert found.attainable_p == pytest.approx(least, abs=5e-4)
    assert found.p_value == pytest.approx(found.attainable_p), "all that move differ alike: the bound is reached"
    assert paired_t_on_tasks(a, b, alternative="greater").attainable_p == pytest.approx(least / 2, abs=5e-4)
    assert paired_t_on_tasks(a, b, null=0.1).attainable_p is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=9))
def test_paired_t_is_never_below_what_it_can_reach(passes: list[tuple[int, int]]) -> None:
    found = paired_t_on_tasks([x / 5 for x, _ in passes], [y / 5 for _, y in passes])
    if found.p_value is not None:
        assert found.p_value >= (found.attainable_p or 0) * (1 - 1e-9)


def test_paired_t_undefined() -> None:
    one = paired_t_on_tasks([0.8], [0.4])
    assert (one.p_value, one.df, one.leave_one_out, one.n_informative) == (None, None, None, 1)
    assert one.reason
    assert one.interval.estimate == pytest.approx(0.4)
    assert (one.interval.low, one.interval.high) == (None, None)
    # .3 − .1 and .4 − .2 differ in the last bit only
    same = paired_t_on_tasks([0.3, 0.4, 0.8], [0.1, 0.2, 0.6])
    assert (same.p_value, same.statistic) == (None, None)
    assert same.reason
    assert paired_t_on_tasks([], []).reason == "no tasks"
    for wrong in (([5, 3], [2, 1]), ([0.5, float("nan")], [0.1, 0.2]), ([0.5], [0.1, 0.2])):
        with pytest.raises(ValueError, match="rates_"):
            paired_t_on_tasks(*wrong)
    with pytest.raises(ValueError, match="null"):
        paired_t_on_tasks([0.5, 0.4], [0.1, 0.2], null=float("nan"))


def test_heterogeneity_spelled_out() -> None:
    x_a, x_b, n = np.array([9, 2, 6, 5]), np.array([3, 4, 5, 1]), 10
    p_a, p_b = x_a / n, x_b / n
    observed = np.var(p_a - p_b, ddof=1)
    noise = np.mean(p_a * (1 - p_a) / 9 + p_b * (1 - p_b) / 9)
    sigma = math.sqrt(observed - noise)
    half = stats.t.ppf(0.975, 3) * math.sqrt(observed * (1 + 1 / 4))
    found = heterogeneity(x_a, [n] * 4, x_b, [n] * 4)
    assert found.sigma_int == pytest.approx(sigma)
    centre = float(np.mean(p_a - p_b))
    assert found.prediction.estimate == pytest.approx(centre)
    assert limits(found.prediction) == pytest.approx((max(-1, centre - half), min(1, centre + half)))
    assert found.test == breslow_day(x_a, [n] * 4, x_b, [n] * 4)
    assert found.qualitative == gail_simon(x_a, [n] * 4, x_b, [n] * 4)


@pytest.mark.parametrize(("tasks", "reps", "sigma_int"), [(4, 10, 0.1), (8, 25, 0.15), (20, 10, 0.1)])
def test_a_prediction_covers_another_task_s_effect(tasks: int, reps: int, sigma_int: float) -> None:
    """N = 400, an error of .011: at least .94, and .83 to .90 with sigma_int alone."""
    population = Population(0.45, 0.55, 0.4, sigma_int)
    found, rng = calibrated(population), np.random.default_rng(tasks)
    a, b = drawn_rates(population, found, tasks=tasks + 1, simulations=400, seed=tasks)
    half, n = rng.normal(0, found.sigma_logit / 2, a.shape), np.full(tasks, reps)
    p_a, p_b = special.expit(special.logit(a) + half), special.expit(special.logit(b) - half)
    covered = []
    for of_a, of_b in zip(p_a, p_b, strict=True):
        passes = (rng.binomial(reps, of[:tasks]) for of in (of_a, of_b))
        found_here = heterogeneity(next(passes), n, next(passes), n).prediction
        if found_here.low is not None and found_here.high is not None:  # not all differences are equal
            covered.append(found_here.low <= of_a[-1] - of_b[-1] <= found_here.high)
    assert len(covered) > 390
    assert np.mean(covered) >= 0.94 - 2 * 0.011


def test_a_spread_that_is_rounding_is_none() -> None:
    """The variance of the differences is that of the noise, 1/18: it was above it by 2e-17."""
    assert heterogeneity([0, 2], [3, 3], [0, 3], [5, 3]).sigma_int == 0


def test_heterogeneity_undefined() -> None:
    single = heterogeneity([1, 3, 2], [1, 5, 5], [0, 1, 4], [5, 5, 5])
    assert (single.sigma_int, single.prediction.low) == (None, None)
    assert single.reason == "1 of 3 tasks has fewer than two trials in an arm"
    assert single.prediction.reason == single.reason
    assert heterogeneity(3, 5, 1, 5).sigma_int is None
    missing = heterogeneity([0, 3], [0, 5], [1, 1], [5, 5])
    assert missing.sigma_int is None
    flat = heterogeneity([3, 4], [5, 5], [1, 2], [5, 5])
    assert (flat.sigma_int, flat.prediction.low) == (0.0, None)
    assert flat.prediction.reason


# Gail & Simon 1985 (Biometrics 41:361), table 1: critical values at .05 for K = 2 … 5 groups.
@pytest.mark.parametrize(("count", "critical"), [(2, 2.71), (3, 4.23), (4, 5.43), (5, 6.50)])
def test_gail_simon_critical_values(count: int, critical: float) -> None:
    assert qualitative_p(critical, count) == pytest.approx(0.05, abs=2e-4)


def test_gail_simon() -> None:
    crossed = gail_simon([9, 1], [10, 10], [1, 9], [10, 10])
    # both strata have the same z², whose hypergeometric variance is 10 · 10 · 10 · 10 / (20² · 19)
    assert crossed.statistic == pytest.approx(4**2 / (10_000 / (400 * 19)))
    assert crossed.p_value == pytest.approx(stats.chi2.sf(crossed.statistic, 1) / 2)
    assert gail_simon([9, 8, 5], [10] * 3, [1, 2, 5], [10] * 3).p_value == 1.0
    assert gail_simon([9, 5], [10, 5], [1, 5], [10, 5]).p_value is None
    swapped = gail_simon([1, 9, 3], [10] * 3, [9, 1, 2], [10] * 3)
    assert swapped.p_value == pytest.approx(gail_simon([9, 1, 2], [10] * 3, [1, 9, 3], [10] * 3).p_value)


def test_variance_components() -> None:
    passes, trials = [5, 5, 4, 3, 2, 1, 0], [5] * 7
    found, mean = variance_components(passes, trials, level=0.9), pooled_random(passes, trials, level=0.9)
    assert found.icc == mean.icc
    assert found.mean == mean
    assert found.between + found.within == pytest.approx(mean.estimate * (1 - mean.estimate))
    one = variance_components([3], [5])
    assert (one.icc.estimate, one.between, one.within) == (None, None, None)
    assert one.icc.reason


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_a_contrast_of_two_in_one_task_is_newcombes(n_a: int, n_b: int, data: st.DataObject) -> None:
    x_a, x_b = data.draw(st.integers(0, n_a)), data.draw(st.integers(0, n_b))
    found = linear_contrast([[x_a, x_b]], [[n_a, n_b]], [1, -1], estimand="these_tasks")
    assert limits(found) == pytest.approx(limits(newcombe(x_a, n_a, x_b, n_b)), abs=1e-12)
    swapped = linear_contrast([[x_a, x_b]], [[n_a, n_b]], [-1, 1], estimand="these_tasks")
    assert limits(swapped) == pytest.approx(tuple(-limit for limit in limits(found)[::-1]), abs=1e-12)


def test_a_contrast_over_tasks_is_a_t_interval() -> None:
    rng = np.random.default_rng(6)
    x, factors = rng.binomial(8, 0.5, (9, 4)), np.array([1, -1, -1, 1])
    found = linear_contrast(x, np.full((9, 4), 8), factors, estimand="tasks_like_these")
    expected = stats.ttest_1samp(x / 8 @ factors, 0)
    assert limits(found) == pytest.approx(tuple(expected.confidence_interval()))
    assert found.estimate == pytest.approx(np.mean(x / 8 @ factors))
    assert (found.estimand, found.n) == ("tasks_like_these", 288)
    shuffled = linear_contrast(x[::-1], np.full((9, 4), 8), factors, estimand="tasks_like_these")
    assert limits(shuffled) == pytest.approx(limits(found))


def test_a_contrasts_coverage() -> None:
    rng = np.random.default_rng(7)
    p = np.array([[0.9, 0.7, 0.8, 0.5], [0.5, 0.4, 0.3, 0.1], [1.0, 0.9, 0.9, 0.6], [0.2, 0.0, 0.1, 0.05]] * 2)
    factors, trials = np.array([0.5, -0.5, 0.5, -0.5]), np.full(p.shape, 5)
    truth, inside = float((p @ factors).mean()), 0
    for _ in range(400):
        low, high = limits(linear_contrast(rng.binomial(5, p), trials, factors, estimand="these_tasks"))
        inside += low <= truth <= high
    assert 0.93 <= inside / 400 <= 1


def test_contrasts_refused_or_undefined() -> None:
    x, n = [[3, 2, 4], [1, 5, 2]], [[5, 5, 5], [5, 5, 5]]
    for wrong in ([1, 1, -1], [0, 0, 0], [1, -1], [1, -1, float("nan")]):
        with pytest.raises(ValueError, match="coefficients"):
            linear_contrast(x, n, wrong, estimand="these_tasks")
    with pytest.raises(ValueError, match="estimand"):
        linear_contrast(x, n, [1, -1, 0], estimand="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="passes"):
        linear_contrast([3, 2], [5, 5], [1, -1], estimand="these_tasks")
    gap = [[5, 5, 0], [5, 5, 5]]
    unused = linear_contrast([[3, 2, 0], [1, 5, 2]], gap, [1, -1, 0], estimand="these_tasks")
    assert unused.estimate == pytest.approx(-0.3)
    assert unused.n == 20
    missing = linear_contrast([[3, 2, 0], [1, 5, 2]], gap, [1, 0, -1], estimand="these_tasks")
    assert (missing.estimate, missing.low, missing.reason) == (None, None, "1 of 4 cells has no valid trial")
    single = linear_contrast([[3, 2]], [[5, 5]], [1, -1], estimand="tasks_like_these")
    assert (single.estimate, single.low) == (pytest.approx(0.2), None)
    assert single.reason
    third = linear_contrast(x, n, [1 / 3, 1 / 3, -2 / 3], estimand="tasks_like_these")
    assert third.estimate is not None


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=2, max_size=6), st.sampled_from([0.05, 0.1, 0.3]), st.data())
def test_equivalence_is_the_interval_inside_the_margin(x_a: list[int], margin: float, data: st.DataObject) -> None:
    n = [20] * len(x_a)
    x_b = data.draw(st.lists(st.integers(0, 20), min_size=len(x_a), max_size=len(x_a)))
    found = equivalence(x_a, n, x_b, n, margin=margin)
    low, high = limits(found.interval)
    assert found.p_value == max(found.p_lower, found.p_upper)
    for p, inside in ((found.p_lower, low > -margin), (found.p_upper, high < margin)):
        if abs(p - 0.05) > 1e-6:
            assert (p < 0.05) == inside
    swapped = equivalence(x_b, n, x_a, n, margin=margin)
    assert (swapped.p_lower, swapped.p_upper) == pytest.approx((found.p_upper, found.p_lower), rel=1e-6)


def test_equivalence_refused_or_undefined() -> None:
    for margin in (0, 1, -0.1, float("nan")):
        with pytest.raises(ValueError, match="margin"):
            equivalence(3, 5, 3, 5, margin=margin)
    with pytest.raises(ValueError, match="alpha"):
        equivalence(3, 5, 3, 5, margin=0.1, alpha=0.5)
    missing = equivalence([3, 0], [5, 0], [2, 2], [5, 5], margin=0.2)
    assert (missing.p_value, missing.p_lower, missing.n_informative) == (None, None, 1)
    assert missing.reason


def test_equivalence_keeps_its_size_at_the_margin() -> None:
    n, p_a, p_b = 12, 0.5, 0.7
    weight = np.outer(stats.binom.pmf(range(n + 1), n, p_a), stats.binom.pmf(range(n + 1), n, p_b))
    rejected = sum(
        weight[a, b]
        for a in range(n + 1)
        for b in range(n + 1)
        if weight[a, b] > 1e-4 and (equivalence(a, n, b, n, margin=0.2).p_lower or 1) <= 0.05
    )
    assert rejected == pytest.approx(0.05, abs=0.015)
