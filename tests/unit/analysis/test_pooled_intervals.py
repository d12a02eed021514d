"""One condition over its tasks: these tasks by hand, tasks like these against the posterior summed another way."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from trialfleet_statistics.estimates import Interval
from trialfleet_statistics.intervals import effective_sample_wilson, pooled_fixed, pooled_random, wilson

limits = attrgetter("low", "high")

counts = st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
POOLED = [pooled_fixed, pooled_random]


def test_equal_reps_are_wilson_of_the_sum() -> None:
    found = pooled_fixed([5, 3, 0], [5, 5, 5])
    assert limits(found) == pytest.approx(limits(wilson(8, 15)))
    assert (found.estimate, found.n, found.estimand) == (pytest.approx(8 / 15), 15, "these_tasks")


def test_rates_are_averaged_not_counts() -> None:
    """Simpson: 9 of 10 and 0 of 1 are .45 on these tasks, worth 4 / (1/10 + 1/1) trials."""
    found = pooled_fixed([9, 0], [10, 1])
    assert found.estimate == pytest.approx(0.45)
    size, z = 4 / 1.1, 1.959963984540054
    for limit in limits(found):
        assert abs(limit - 0.45) == pytest.approx(z * math.sqrt(limit * (1 - limit) / size))


# Exact coverage of the fixed rates on 7 tasks × 5 reps, by the distribution of the sum.
@pytest.mark.parametrize(("rates", "expected"), [([3.9 / 7] * 7, 0.960), ([1, 1, 0.8, 0.6, 0.4, 0.1, 0], 0.999)])
def test_exact_coverage_for_these_tasks(rates: list[float], expected: float) -> None:
    chance = np.ones(1)
    for rate in rates:
        chance = np.convolve(chance, [math.comb(5, x) * rate**x * (1 - rate) ** (5 - x) for x in range(6)])
    every = wilson(np.arange(36), np.full(36, 35))
    truth = float(np.mean(rates))
    covered = float(chance[(every.low <= truth) & (truth <= every.high)].sum())
    assert covered == pytest.approx(expected, abs=0.001)
    spread = pooled_fixed([5, 5, 4, 3, 2, 1, 0], [5] * 7)
    assert limits(spread) == pytest.approx((every.low[20], every.high[20]))


# --- tasks like these -----------------------------------------------------------------------------------


def likelihood(mu: float, icc: float, passes: list[int], trials: list[int]) -> float:
    size = 1 / icc - 1
    a, b = mu * size, (1 - mu) * size
    logs = [special.betaln(a + x, b + n - x) - special.betaln(a, b) for x, n in zip(passes, trials, strict=True)]
    return math.exp(sum(logs))


@pytest.mark.parametrize(
    ("passes", "trials"), [([5, 5, 4, 3, 2, 1, 0], [5] * 7), ([3, 9, 1], [5, 10, 8]), ([5, 5, 5], [5, 5, 5])]
)
def test_limits_are_the_posteriors_quantiles(passes: list[int], trials: list[int]) -> None:
    """Gauss-Legendre in place of the grid: the mass below each limit of mu."""
    found = pooled_random(passes, trials)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    within = (nodes + 1) / 2

    def mass(top: float) -> float:
        """Both coordinates cubed away from 0, where the posterior may be steep."""
        rows = [
            wm * top * wi * 3 * i**2 * likelihood(float(top * m), float(i**3), passes, trials)
            for m, wm in zip(within, weights / 2, strict=True)
            for i, wi in zip(within, weights / 2, strict=True)
        ]
        return float(sum(rows))

    whole = mass(1.0)
    for limit, below in zip((*limits(found), found.estimate), (0.025, 0.975, 0.5), strict=True):
        assert mass(limit) / whole == pytest.approx(below, abs=1e-3)


def test_one_rep_per_task_is_a_beta_posterior() -> None:
    """With n_t = 1 the correlation drops out: mu is Beta(x + 1, T − x + 1), icc stays at its flat prior."""
    found = pooled_random([1, 1, 0, 1, 0, 1], [1] * 6)
    assert limits(found) == pytest.approx(special.betaincinv(5, 3, [0.025, 0.975]), abs=2e-4)
    assert limits(found.icc) == pytest.approx((0.025, 0.975), abs=2e-4)


def test_a_concentrated_posterior_is_resolved() -> None:
    """40 tasks of 250 reps at .9 without spread: near the binomial width; one coarse grid is twice as wide."""
    found = pooled_random([225] * 40, [250] * 40)
    low, high = limits(found)
    assert (low, high) == pytest.approx((0.8937, 0.9058), abs=1e-4)
    assert limits(found.icc)[1] < 0.002
    draws = np.random.default_rng(4).binomial(250, 0.9, 40)
    low, high = limits(pooled_random(draws, [250] * 40))
    assert low < float(draws.mean()) / 250 < high
    assert 0.011 < high - low < 0.016


def test_a_ridge_beside_a_long_tail_is_resolved() -> None:
    """Two tasks of 10,000 nearly equal rates: most of icc's posterior lies near 0, its tail reaches 1, so the box
    stays whole. Quantiles of an independent integration, over log-spaced icc."""
    passes, trials = [9000, 9010], [10_000, 10_000]
    found = pooled_random(passes, trials)
    mu, log_icc = np.linspace(0.0, 1.0, 2001)[1:-1], np.linspace(math.log(1e-8), math.log(0.999999), 500)
    icc = np.exp(log_icc)
    size = 1 / icc - 1
    a, b = mu[:, None] * size, (1 - mu)[:, None] * size
    logs = sum(
        special.betaln(a + x, b + n - x) - special.betaln(a, b) for x, n in zip(passes, trials, strict=True)
    )
    by_mu = integrate.trapezoid(np.exp(logs - np.max(logs)) * icc, log_icc, axis=1)
    cumulated = np.cumsum(by_mu) / by_mu.sum()
    assert limits(found) == pytest.approx(np.interp([0.025, 0.975], cumulated, mu), abs=5e-4)


def test_more_reps_of_the_same_tasks_hardly_narrow_it() -> None:
    few, many = pooled_random([5, 4, 2, 0], [5] * 4), pooled_random([250, 200, 100, 0], [250] * 4)
    width_few, width_many = (high - low for low, high in (limits(few), limits(many)))
    assert width_many > 0.8 * width_few


@settings(max_examples=8, deadline=None)
@given(st.lists(counts, min_size=2, max_size=6))
def test_random_properties(cells: list[tuple[int, int]]) -> None:
    passes, trials = [x for x, _ in cells], [n for _, n in cells]
    found = pooled_random(passes, trials)
    low, high = limits(found)
    assert 0 < low < found.estimate < high < 1
    mirrored = limits(pooled_random([n - x for x, n in cells], trials))
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=2e-4)
    assert limits(pooled_random(passes[::-1], trials[::-1])) == pytest.approx((low, high), abs=1e-9)
    narrow = limits(pooled_random(passes, trials, level=0.5))
    assert low < narrow[0] < narrow[1] < high
    assert 0 < limits(found.icc)[0] < limits(found.icc)[1] < 1
    assert (found.n, found.estimand) == (sum(trials), "tasks_like_these")


def test_below_two_tasks_is_undefined() -> None:
    for passes, trials in ((3, 5), ([3], [5])):
        found = pooled_random(passes, trials)
        assert (found.estimate, found.low, found.high, found.icc) == (None,) * 4
        assert found.reason == "one task says nothing about others"


@pytest.mark.parametrize("method", POOLED)
@pytest.mark.parametrize(
    ("passes", "trials", "reason"),
    [([], [], "no tasks"), ([1, 0, 0], [5, 0, 0], "2 of 3 tasks have no valid trial")],
)
def test_a_missing_task_has_no_mean(
    method: Callable[..., Interval], passes: list[int], trials: list[int], reason: str
) -> None:
    found = method(passes, trials)
    assert (found.estimate, found.low, found.high, found.reason) == (None, None, None, reason)


def test_exact_coverage_for_tasks_like_these() -> None:
    """Four tasks × 3 reps, mu .6, icc .3, over all 35 outcomes up to order; the pooled interval for these tasks is
    narrower and covers less."""
    size = 1 / 0.3 - 1
    of_task = stats.betabinom.pmf(np.arange(4), 3, 0.6 * size, 0.4 * size)
    covered = {"pooled_fixed": 0.0, "pooled_random": 0.0}
    for outcome in itertools.combinations_with_replacement(range(4), 4):
        orders = math.factorial(4) / math.prod(math.factorial(outcome.count(x)) for x in range(4))
        chance = orders * math.prod(of_task[x] for x in outcome)
        for method in POOLED:
            low, high = limits(method(list(outcome), [3] * 4))
            covered[method.__name__] += chance * (low <= 0.6 <= high)
    assert 0.94 <= covered["pooled_random"] <= 0.99
    assert covered["pooled_fixed"] < covered["pooled_random"]


def test_pooling_wastes_the_spread_between_tasks() -> None:
    mixed = [25, 20, 5, 0], [25] * 4
    wide, sharp = limits(pooled_fixed(*mixed)), limits(effective_sample_wilson(*mixed))
    assert wide[0] < sharp[0] < sharp[1] < wide[1]
