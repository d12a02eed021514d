"""Bootstrap and permutation over a campaign's trials, and the coverage of the intervals that they give."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tests.bench.figure import Figure
from trialfleet_statistics.continuous import (
    cliffs_delta,
    cost_per_pass,
    hierarchical_bootstrap,
    restricted_mean_difference,
    stratified_permutation,
)

Columns = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]
CAMPAIGNS = 1_000


def measure() -> list[Figure]:
    twenty, seven = design(20, 25), design(7, 25)
    passed = twenty[0] > 1
    return [
        figure(
            "bootstrap of means, tasks and reps, 20 x 25 x 2, 1e4",
            lambda: hierarchical_bootstrap(*twenty, estimand="tasks_like_these", seed=1),
            0.5,
        ),
        figure("  reps alone", lambda: hierarchical_bootstrap(*twenty, estimand="these_tasks", seed=1), 0.5),
        figure(
            "  of medians",
            lambda: hierarchical_bootstrap(*twenty, estimand="tasks_like_these", statistic="median", seed=1),
            0.5,
        ),
        figure(
            "  of pass rates",
            lambda: hierarchical_bootstrap(
                (twenty[0] > 1).astype(float), *twenty[1:], estimand="tasks_like_these", seed=1
            ),
            0.5,
        ),
        figure(
            "  of cost per pass",
            lambda: cost_per_pass(twenty[0], passed, *twenty[1:], estimand="tasks_like_these", seed=1),
            0.5,
        ),
        figure("  of Cliff's delta", lambda: cliffs_delta(*twenty, seed=1)),
        figure("permutation of ranks, 7 x 25 x 2, 1e5", lambda: stratified_permutation(*seven, seed=1), 1.0),
        figure("  of means", lambda: stratified_permutation(*seven, statistic="mean", seed=1), 1.0),
        *coverage(),
    ]


def design(tasks: int, reps: int, seed: int = 0, effect_sd: float = 0.0) -> Columns:
    """Log-normal times around each task's own centre; `effect_sd`: of the tasks' effects, mean 0, in log units."""
    rng = np.random.default_rng(seed)
    task, arm = np.repeat(np.arange(tasks), 2 * reps), np.tile(np.repeat([1, 0], reps), tasks)
    centre, effect = rng.normal(0, 1, tasks), rng.normal(0, effect_sd, tasks)
    return np.exp(centre[task] + arm * effect[task] + rng.normal(0, 0.5, task.size)), arm, task


def figure(name: str, call: Callable[[], object], goal: float | None = None) -> Figure:
    """Median of 5, after one run that warms the caches."""
    walls: list[float] = []
    for _ in range(6):
        began = time.perf_counter()
        call()
        walls.append(time.perf_counter() - began)
    return Figure(name, statistics.median(walls[1:]), "s", goal, "median of 5")


def coverage() -> list[Figure]:
    """How often nominal 95 % intervals of the mean log difference hold the truth, 0."""
    found: list[Figure] = []
    for tasks, reps in ((7, 5), (7, 25), (20, 5)):
        held = [0, 0, 0]
        for seed in range(CAMPAIGNS):
            values, arm, task = design(tasks, reps, seed)
            these = hierarchical_bootstrap(
                np.log(values), arm, task, estimand="these_tasks", resamples=999, seed=seed
            )
            held[0] += (these.low or 0) <= 0 <= (these.high or 0)
            fixed = np.repeat(np.random.default_rng(seed).normal(0, 0.3, tasks), 2 * reps) * arm
            like = hierarchical_bootstrap(
                np.log(values) + fixed, arm, task, estimand="tasks_like_these", resamples=999, seed=seed
            )
            held[1] += (like.low or 0) <= 0 <= (like.high or 0)
            time_s = np.random.default_rng(seed).exponential(20, task.size)
            mean = restricted_mean_difference(time_s, time_s < 30, arm, task, limit=30)
            held[2] += (mean.low or 0) <= 0 <= (mean.high or 0)
        names = "bootstrap, these tasks", "bootstrap, tasks like these", "restricted mean"
        found += [
            Figure(
                f"coverage of {name}, {tasks} x {reps}",
                times / CAMPAIGNS,
                "",
                note=f"of .95, {CAMPAIGNS} campaigns",
            )
            for name, times in zip(names, held, strict=True)
        ]
    return found
