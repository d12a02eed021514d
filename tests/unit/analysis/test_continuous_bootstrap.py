"""Bootstraps against naive loops that draw the same thing, and against all resamples of tiny samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from trialfleet_statistics.continuous import (
    BootstrapInterval,
    cliffs_delta,
    cost_per_pass,
    hierarchical_bootstrap,
)
from trialfleet_statistics.continuous.bootstrap import Statistic
from trialfleet_statistics.estimates import Estimand

Floats = NDArray[np.float64]
Cell = tuple[Floats, Floats]
ESTIMANDS: tuple[Estimand, ...] = ("these_tasks", "tasks_like_these")


def campaign(seed: int = 3) -> tuple[Floats, Floats, Floats]:
    """Five tasks, four to eight reps, skewed values, an effect that differs between tasks."""
    rng = np.random.default_rng(seed)
    values, arm, task = [], [], []
    for t in range(5):
        for side in (1, 0):
            reps = int(rng.integers(4, 9))
            values.append(rng.lognormal(0.5 * t, 0.6, reps) * (1 + 0.3 * side * t))
            arm.append(np.full(reps, side))
            task.append(np.full(reps, t))
    return np.concatenate(values), np.concatenate(arm), np.concatenate(task)


def naive(
    estimand: Estimand, effect: Callable[[list[tuple[NDArray[np.int64], NDArray[np.int64]]]], float], times: int
) -> Floats:
    """`effect` of resampled row numbers, one campaign at a time."""
    _, arm, task = campaign()
    rows = [(np.flatnonzero((task == t) & (arm == 1)), np.flatnonzero((task == t) & (arm == 0))) for t in range(5)]
    rng, found = np.random.default_rng(99), []
    for _ in range(times):
        drawn = rng.integers(0, 5, 5) if estimand == "tasks_like_these" else range(5)
        found.append(
            effect(
                [(rng.choice(rows[t][0], rows[t][0].size), rng.choice(rows[t][1], rows[t][1].size)) for t in drawn]
            )
        )
    return np.array(found)


def assert_close(found: BootstrapInterval, resampled: Floats, scale: tuple[float, float] = (1.0, 1.0)) -> None:
    """The limits agree within four standard errors of both."""
    more = np.sqrt(1 + found.resamples / resampled.size)
    assert abs(found.low - np.quantile(resampled, 0.025)) < 4 * more * found.monte_carlo_se[0] * scale[0]
    assert abs(found.high - np.quantile(resampled, 0.975)) < 4 * more * found.monte_carlo_se[1] * scale[1]


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_draws_what_a_loop_draws(estimand: Estimand, statistic: Statistic) -> None:
    values, arm, task = campaign()
    of = np.mean if statistic == "mean" else np.median
    resampled = naive(
        estimand, lambda rows: float(np.mean([of(values[a]) - of(values[b]) for a, b in rows])), 1_500
    )
    found = hierarchical_bootstrap(
        values, arm, task, estimand=estimand, statistic=statistic, resamples=20_000, seed=1
    )
    assert_close(found, resampled)
    expected = np.mean(
        [of(values[(task == t) & (arm == 1)]) - of(values[(task == t) & (arm == 0)]) for t in range(5)]
    )
    assert found.estimate == pytest.approx(expected, rel=1e-12)
    assert (found.estimand, found.n, found.undefined_share) == (estimand, values.size, 0)


@pytest.mark.parametrize("statistic", ["mean", "median"])
@pytest.mark.parametrize("a", [[1.0, 2.0, 7.0], [1.0, 4.0, 5.0, 11.0]])
def test_every_resample(statistic: Statistic, a: list[float]) -> None:
    """Quantiles of the resampled statistic against all n^n resamples of one cell beside a constant one."""
    of = np.mean if statistic == "mean" else np.median
    every = np.sort([float(of(drawn)) for drawn in product(a, repeat=len(a))])
    for level in (0.3, 0.5, 0.8):
        found = hierarchical_bootstrap(
            [*a, 0, 0],
            [1] * len(a) + [0, 0],
            ["t"] * (len(a) + 2),
            estimand="these_tasks",
            statistic=statistic,
            resamples=40_000,
            seed=2,
            level=level,
        )
        for limit, tail in ((found.low, (1 - level) / 2), (found.high, (1 + level) / 2)):
            around = every[
                [int(len(every) * tail - 0.02 * len(every)), int(len(every) * tail + 0.02 * len(every))]
            ]
            assert around[0] - 1e-9 <= limit <= around[1] + 1e-9


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_passes_by_binomial_draws_agree_with_gathers(estimand: Estimand) -> None:
    values, arm, task = campaign()
    passed = (values > np.median(values)).astype(float)
    quick = hierarchical_bootstrap(passed, arm, task, estimand=estimand, resamples=20_000, seed=1)
    slow = hierarchical_bootstrap(2 * passed, arm, task, estimand=estimand, resamples=20_000, seed=1)
    assert slow.estimate == pytest.approx(2 * (quick.estimate or 0))
    assert slow.low == pytest.approx(2 * (quick.low or 0), abs=0.03)
    assert slow.high == pytest.approx(2 * (quick.high or 0), abs=0.03)


def test_same_seed_same_answer_whatever_the_rows_order() -> None:
    values, arm, task = campaign()
    order = np.random.default_rng(0).permutation(values.size)
    moved = values[order], arm[order], task[order]
    passed = (values > np.median(values)).astype(int)
    for estimand in ESTIMANDS:
        first = hierarchical_bootstrap(values, arm, task, estimand=estimand, seed=1)
        second = hierarchical_bootstrap(*moved, estimand=estimand, seed=1)
        assert replace(first, estimate=second.estimate) == second  # a mean's last bit follows the rows
        assert first.low != hierarchical_bootstrap(values, arm, task, estimand=estimand, seed=2).low
        money = cost_per_pass(values, passed, arm, task, estimand=estimand, seed=1)
        again = cost_per_pass(values[order], passed[order], arm[order], task[order], estimand=estimand, seed=1)
        assert again.low == pytest.approx(money.low, rel=1e-12)
    assert cliffs_delta(values, arm, task, seed=1) == cliffs_delta(*moved, seed=1)


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_cost_per_pass_draws_what_a_loop_draws(estimand: Estimand) -> None:
    cost, arm, task = campaign()
    passed = np.arange(cost.size) % 3 > 0

    def log_ratio(rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> float:
        a, b = np.concatenate([of[0] for of in rows]), np.concatenate([of[1] for of in rows])
        return float(np.log(cost[a].sum() / passed[a].sum()) - np.log(cost[b].sum() / passed[b].sum()))

    found = cost_per_pass(cost, passed, arm, task, estimand=estimand, resamples=20_000, seed=1)
    assert_close(found, np.exp(naive(estimand, log_ratio, 400)))
    a, b = arm == 1, arm == 0
    assert found.estimate == pytest.approx(cost[a].sum() / passed[a].sum() / (cost[b].sum() / passed[b].sum()))
    assert found.undefined_share == 0


def test_cost_per_pass_with_resamples_without_a_pass() -> None:
    """One pass of five in a: (4/5)⁵ = 33 % of the resamples have none, and the upper limit is infinite."""
    cost, passed, arm = [1.0, 2, 3, 4, 5, 1, 2, 3, 4, 5], [1, 0, 0, 0, 0, 1, 1, 1, 1, 1], [1] * 5 + [0] * 5
    found = cost_per_pass(cost, passed, arm, ["t"] * 10, estimand="these_tasks", seed=1)
    assert found.estimate == pytest.approx(5)
    assert found.undefined_share == pytest.approx(0.8**5, abs=0.02)
    assert found.low is not None
    assert (found.high, found.monte_carlo_se) == (None, None)
    assert "of the resamples have an arm without a pass" in found.reason
    mirrored = cost_per_pass(cost, passed, [1 - side for side in arm], ["t"] * 10, estimand="these_tasks", seed=1)
    assert mirrored.low is None
    assert mirrored.high == pytest.approx(1 / found.low, rel=0.1)
    both = cost_per_pass(cost, [1, 0, 0, 0, 0] * 2, arm, ["t"] * 10, estimand="these_tasks", seed=1)
    assert (both.low, both.high, round(both.estimate or 0, 12)) == (None, None, 1)


def test_cost_per_pass_undefined() -> None:
    arm, task = [1, 1, 0, 0], ["t"] * 4
    for cost, passed in (([1, 1, 1, 1], [0, 0, 1, 1]), ([0, 0, 1, 1], [1, 1, 1, 1])):
        found = cost_per_pass(cost, passed, arm, task, estimand="these_tasks", seed=1)
        assert (found.estimate, found.low, found.reason) == (
            None,
            None,
            "an arm without a pass, or without a cost",
        )
    single = cost_per_pass([1] * 4, [1] * 4, arm, task, estimand="tasks_like_these", seed=1)
    assert single.reason == "one task says nothing about other tasks"
    equal = cost_per_pass([1] * 4, [1] * 4, arm, task, estimand="these_tasks", seed=1)
    assert (equal.estimate, equal.low, equal.high) == (1, None, None)
    assert equal.reason == "every resample gives the same value: the spread is unknown, not 0"
    with pytest.raises(ValueError, match="cost: 1 of 4 are negative"):
        cost_per_pass([1, -1, 1, 1], [1] * 4, arm, task, estimand="these_tasks", seed=1)
    with pytest.raises(ValueError, match="passed"):
        cost_per_pass([1] * 4, [1, 2, 1, 1], arm, task, estimand="these_tasks", seed=1)


def test_undefined() -> None:
    arm, task = [1, 1, 0, 0, 1], ["x"] * 4 + ["y"]
    for found in (
        hierarchical_bootstrap([1, 2, 3, 4, 5], arm, task, estimand="these_tasks", seed=1),
        hierarchical_bootstrap([1, 2, 3, 4, 5], arm, task, estimand="tasks_like_these", seed=1),
        cliffs_delta([1, 2, 3, 4, 5], arm, task, seed=1),
        cost_per_pass([1, 2, 3, 4, 5], [1] * 5, arm, task, estimand="these_tasks", seed=1),
    ):
        assert (found.estimate, found.low, found.high) == (None, None, None)
        assert found.reason == "1 of 2 strata has no value in one arm"
    nothing = hierarchical_bootstrap([], [], [], estimand="these_tasks", seed=1)
    assert (nothing.estimate, nothing.reason, nothing.n) == (None, "nothing was measured", 0)
    lonely = hierarchical_bootstrap([1, 2, 3], [1, 1, 0], ["x"] * 3, estimand="these_tasks", seed=1)
    assert (lonely.estimate, lonely.low, lonely.reason) == (-1.5, None, "the only task has one rep in an arm")
    same = hierarchical_bootstrap(
        [0.1] * 12, [1, 0] * 6, [0, 0, 1, 1, 2, 2] * 2, estimand="tasks_like_these", seed=1
    )
    assert (same.estimate, same.low, same.high) == (0, None, None)
    one_rep_each = hierarchical_bootstrap(
        [1, 2, 3, 5, 2, 9], [1, 0] * 3, [0, 0, 1, 1, 2, 2], estimand="tasks_like_these", seed=1
    )
    assert (one_rep_each.low, one_rep_each.high) == (-7, -1)


def test_cliffs_delta_by_counting_pairs() -> None:
    rng = np.random.default_rng(5)
    values, arm, task = rng.integers(0, 6, 60).astype(float), rng.integers(0, 2, 60), np.repeat([0, 1, 2], 20)
    deltas = []
    for t in range(3):
        a, b = values[(task == t) & (arm == 1)], values[(task == t) & (arm == 0)]
        deltas.append(np.mean([np.sign(x - y) for x in a for y in b]))
    found = cliffs_delta(values, arm, task, seed=1)
    assert found.estimate == pytest.approx(np.mean(deltas))
    assert found.estimand == "these_tasks"
    swapped = cliffs_delta(values, 1 - arm, task, seed=1)
    assert swapped.estimate == pytest.approx(-np.mean(deltas))
    assert swapped.low == pytest.approx(-(found.high or 0), abs=0.03)


def test_cliffs_delta_draws_what_a_loop_draws() -> None:
    values, arm, task = campaign()
    coarse = np.round(values)

    def delta(rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> float:
        return float(np.mean([np.sign(coarse[a][:, None] - coarse[b]).mean() for a, b in rows]))

    assert_close(cliffs_delta(coarse, arm, task, resamples=20_000, seed=1), naive("these_tasks", delta, 400))


def test_cliffs_delta_without_overlap_has_no_limits() -> None:
    found = cliffs_delta([5, 6, 7, 1, 2, 3], [1, 1, 1, 0, 0, 0], seed=1)
    assert (found.estimate, found.low, found.high, found.estimand) == (1, None, None, None)
    assert found.reason == "every resample gives the same value: the spread is unknown, not 0"
    assert cliffs_delta([1, 2], [1, 0], seed=1).reason == "the only stratum has one rep in an arm"
