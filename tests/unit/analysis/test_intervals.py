"""Published values, an independent library, and what must hold for every count."""

from __future__ import annotations

import math
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from trialfleet_statistics.estimates import Intervals
from trialfleet_statistics.intervals import clopper_pearson, effective_sample_wilson, wilson

limits = attrgetter("low", "high")

counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


# Newcombe 1998 (Statist. Med. 17:857-872), table I: four cases, methods 3 (Wilson) and 5 (Clopper-Pearson).
@pytest.mark.parametrize(
    ("passes", "trials", "score", "exact"),
    [
        (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
        (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
        (0, 20, (0.0000, 0.1611), (0.0000, 0.1684)),
        (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
    ],
)
def test_published_limits(
    passes: int, trials: int, score: tuple[float, float], exact: tuple[float, float]
) -> None:
    assert wilson(passes, trials).rounded(4) == score
    assert clopper_pearson(passes, trials).rounded(4) == exact


@settings(max_examples=50)
@given(counts, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_agrees_with_scipy(count: tuple[int, int], level: float) -> None:
    passes, trials = count
    score = stats.binomtest(passes, trials).proportion_ci(level, "wilson")
    assert limits(wilson(passes, trials, level=level)) == pytest.approx((score.low, score.high), abs=1e-12)
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, passes, trials - passes + 1) if passes else 0.0
    high = stats.beta.ppf(1 - tail, passes + 1, trials - passes) if passes < trials else 1.0
    assert limits(clopper_pearson(passes, trials, level=level)) == pytest.approx((low, high), abs=1e-12)


@settings(max_examples=50)
@given(counts)
def test_contains_its_estimate_and_stays_a_rate(count: tuple[int, int]) -> None:
    passes, trials = count
    for method in (wilson, clopper_pearson):
        interval = method(passes, trials)
        low, high = limits(interval)
        assert interval.estimate == passes / trials
        assert 0 <= low <= passes / trials <= high <= 1
        assert (low == 0) == (passes == 0)
        assert (high == 1) == (passes == trials)
        narrow = limits(method(passes, trials, level=0.5))
        assert low <= narrow[0]
        assert narrow[1] <= high


def test_worst_coverage_is_what_the_literature_says() -> None:
    """Brown, Cai & DasGupta 2001: Wilson can fall to about .83 near the edges, Clopper-Pearson never below."""
    trials, rates = 5, np.linspace(0.001, 0.999, 999)
    passes = np.arange(trials + 1)
    worst = {}
    for method in (wilson, clopper_pearson):
        interval = method(passes, np.full(trials + 1, trials))
        mass = stats.binom.pmf(passes[:, None], trials, rates[None, :])
        covered = (interval.low[:, None] <= rates) & (rates <= interval.high[:, None])
        worst[method.__name__] = float(np.min(np.sum(mass * covered, axis=0)))
    assert worst["wilson"] == pytest.approx(0.832, abs=0.002)
    assert worst["clopper_pearson"] >= 0.95


@pytest.mark.parametrize("method", [wilson, clopper_pearson])
def test_nothing_measured_is_no_number(method: object) -> None:
    assert callable(method)
    interval = method(0, 0)
    assert (interval.estimate, interval.low, interval.high) == (None, None, None)
    assert interval.reason == "no valid trial"
    assert interval.rounded(3) is None
    many = method([0, 3], [0, 5])
    assert isinstance(many, Intervals)
    assert [math.isnan(value) for value in many.low] == [True, False]
    assert many.reason.dtype == object
    assert list(many.reason) == ["no valid trial", None]
    assert list(many.n) == [0, 5]


# --- one condition over its tasks ---------------------------------------------------------------------

strata = st.lists(counts, min_size=1, max_size=30)


def test_effective_sample_by_hand() -> None:
    """p = (1 + .6 + 0) / 3. V = (.6 × .4 / 4) / 9 = .00667 is less than with rates of 11/12, 7/12 and 1/12."""
    interval = effective_sample_wilson([5, 3, 0], [5, 5, 5])
    rate = 1.6 / 3
    n = rate * (1 - rate) / ((2 * 11 + 35) / 144 / 5 / 9)
    assert interval.estimate == pytest.approx(rate)
    assert interval.n_effective == pytest.approx(n)
    centre, z = rate, 1.959963984540054
    for limit in limits(interval):
        assert abs(limit - centre) == pytest.approx(z * math.sqrt(limit * (1 - limit) / n))
    assert (interval.n, interval.estimand) == (15, "these_tasks")


def test_varied_tasks_have_the_unbiased_variance() -> None:
    """Rates .4 and .6: .24 / 4 each, above (2.5 / 6) (3.5 / 6) / 5."""
    interval = effective_sample_wilson([2, 3, 5], [5, 5, 5])
    rate = 2 / 3
    assert interval.n_effective == pytest.approx(rate * (1 - rate) / (2 * 0.24 / 4 / 9))


def test_fewer_varied_tasks_do_not_widen_it() -> None:
    """With one pass less no task varies any more: 21.3 to 40.5 % were followed by 11.2 to 46.9 %."""
    widths = [high - low for low, high in (limits(effective_sample_wilson([0, 5, x, 0], [5] * 4)) for x in (0, 1))]
    assert widths[0] < widths[1] < 1.2 * widths[0]
    one = limits(effective_sample_wilson([0, 5, 0, 0], [5] * 4))
    assert one == pytest.approx((0.150, 0.387), abs=1e-3)


# Expected: 20,000 runs each. The rule before it, which had no least variance, covered .927, .939, .948 and .833 in
# the third, sixth, seventh and last.
@pytest.mark.parametrize(
    ("rates", "reps", "expected"),
    [
        ([0.5] * 4, [5] * 4, 0.957),
        ([0.6] * 7, [5] * 7, 0.943),
        ([1, 1, 0.8, 0.6, 0.4, 0.1, 0], [5] * 7, 0.970),
        ([0.9] * 7, [5] * 7, 0.918),
        ([0.5] * 50, [5] * 50, 0.948),
        ([0] * 5 + [1] * 5 + [0.5, 0.3], [25] * 12, 0.975),
        ([0.02] * 5 + [0.98] * 5 + [0.5, 0.3], [25] * 12, 0.970),
        ([0.5] * 100, [1] * 100, 0.944),
        ([0.3, 0.5, 0.7, 0.9] * 2, [25] * 4 + [2] * 4, 0.964),
    ],
)
def test_coverage_over_settings(rates: list[float], reps: list[int], expected: float) -> None:
    draws = np.random.default_rng(8).binomial(reps, rates, size=(1500, len(rates)))
    truth = float(np.mean(rates))
    covered = [low <= truth <= high for low, high in (limits(effective_sample_wilson(d, reps)) for d in draws)]
    assert float(np.mean(covered)) == pytest.approx(
        expected, abs=3.5 * math.sqrt(expected * (1 - expected) / 1500)
    )


def test_homogeneous_tasks_are_wilson_at_the_floor() -> None:
    """Where each task passed 3 of 5: V = p (1 − p) / (T (n − 1)) asks for T (n − 1), the floor is T n."""
    interval = effective_sample_wilson([3] * 7, [5] * 7)
    assert interval.n_effective == pytest.approx(35)
    assert limits(interval) == pytest.approx(limits(wilson(21, 35)))


def test_one_task_is_wilson() -> None:
    assert limits(effective_sample_wilson([3], [5])) == pytest.approx(limits(wilson(3, 5)))
    assert limits(effective_sample_wilson(3, 5)) == pytest.approx(limits(wilson(3, 5)))


@pytest.mark.parametrize("passes", [0, 1])
def test_all_or_nothing_uses_the_floor(passes: int) -> None:
    interval = effective_sample_wilson([5 * passes, 10 * passes], [5, 10])
    assert interval.n_effective == pytest.approx(4 / (1 / 5 + 1 / 10))
    low, high = limits(interval)
    assert (low, high)[passes] == float(passes)
    assert low < high


def test_single_reps_have_a_variance() -> None:
    """n_t = 1: p (1 − p) / n_t stands in, so n_e = T."""
    interval = effective_sample_wilson([1, 0, 1, 0], [1, 1, 1, 1])
    assert interval.n_effective == pytest.approx(4)
    assert limits(interval) == pytest.approx(limits(wilson(2, 4)))


def test_rates_are_averaged_not_counts() -> None:
    """Simpson: 9 of 10 and 0 of 1 are .45 on these tasks, not 9 of 11."""
    assert effective_sample_wilson([9, 0], [10, 1]).estimate == pytest.approx(0.45)


@pytest.mark.parametrize(
    ("passes", "trials", "reason"),
    [([], [], "no tasks"), ([1, 0], [5, 0], "1 of 2 tasks has no valid trial"), (0, 0, "the only task has")],
)
def test_a_missing_task_has_no_mean(passes: list[int], trials: list[int], reason: str) -> None:
    interval = effective_sample_wilson(passes, trials)
    assert (interval.estimate, interval.low, interval.high, interval.n_effective) == (None,) * 4
    assert reason in interval.reason


@settings(max_examples=50)
@given(strata)
def test_effective_sample_properties(cells: list[tuple[int, int]]) -> None:
    passes, trials = [x for x, _ in cells], [n for _, n in cells]
    interval = effective_sample_wilson(passes, trials)
    low, high = limits(interval)
    assert 0 <= low <= interval.estimate <= high <= 1
    floor = len(cells) ** 2 / sum(1 / n for n in trials)
    assert interval.n_effective >= floor * (1 - 1e-12)
    mirrored = limits(effective_sample_wilson([n - x for x, n in cells], trials))
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)
    turned = effective_sample_wilson(passes[::-1], trials[::-1])
    assert limits(turned) == pytest.approx((low, high), abs=1e-9)
