"""What the intervals of first edits, phases and slopes cover, simulated, beside what their docstrings say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.bench.figure import Figure
from trialfleet_statistics.estimates import Estimand, Interval
from trialfleet_statistics.timing import mean_share, median_over_tasks, slope_after_first_edit

CAMPAIGNS = 2_000
WITHIN = 0.018  # three standard errors of a coverage of .93
SLOPE = 0.4


def measure() -> list[Figure]:
    return [
        _covers("median_over_tasks, 7 × 5", lambda seed: _median(7, 5, seed), 0.93),
        _covers("median_over_tasks, 7 × 25", lambda seed: _median(7, 25, seed), 0.94),
        _covers("mean_share, these tasks, 7 × 5", lambda seed: _share("these_tasks", seed), 0.95),
        _covers("mean_share, tasks like these, 7 × 5", lambda seed: _share("tasks_like_these", seed), 0.94),
        _covers(
            "slope_after_first_edit, these tasks, 7 × 2 × 5", lambda seed: _slope(7, "these_tasks", seed), 0.96
        ),
        _covers(
            "slope_after_first_edit, tasks like these, 7", lambda seed: _slope(7, "tasks_like_these", seed), 0.93
        ),
        _covers(
            "slope_after_first_edit, tasks like these, 20", lambda seed: _slope(20, "tasks_like_these", seed), 0.94
        ),
    ]


def _covers(name: str, one: Callable[[int], bool], expected: float) -> Figure:
    share = sum(map(one, range(CAMPAIGNS))) / CAMPAIGNS
    note = f"{CAMPAIGNS:,} campaigns; expected {expected:g}"
    return Figure(name, share, "", goal=expected + WITHIN, floor=expected - WITHIN, note=note)


def _holds(found: Interval, truth: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


def _median(tasks: int, reps: int, seed: int) -> bool:
    """Normal values of spread 1 around fixed task medians of spread 1."""
    centres, task = np.random.default_rng(9).normal(size=tasks), np.repeat(np.arange(tasks), reps)
    values = centres[task] + np.random.default_rng([1, seed]).normal(size=task.size)
    return _holds(median_over_tasks(values, task, resamples=999, seed=seed), float(np.median(centres)))


def _share(estimand: Estimand, seed: int) -> bool:
    """Beta shares around task means that are Beta(4, 6), fixed for these tasks."""
    rng, task = np.random.default_rng([2, seed]), np.repeat(np.arange(7), 5)
    fixed = np.random.default_rng(3).beta(4, 6, 7)
    means = fixed if estimand == "these_tasks" else rng.beta(4, 6, 7)
    truth = float(fixed.mean()) if estimand == "these_tasks" else 0.4
    shares = rng.beta(5 * means[task], 5 * (1 - means[task]))
    return _holds(mean_share(shares, np.ones(task.size), task, estimand=estimand), truth)


def _slope(tasks: int, estimand: Estimand, seed: int) -> bool:
    """Counts before, normal noise after, tasks far apart; for tasks like these their slopes vary by .3."""
    rng = np.random.default_rng([3, seed])
    task, condition = np.repeat(np.arange(tasks), 10), np.tile(np.repeat([0, 1], 5), tasks)
    first = rng.poisson(rng.uniform(3, 15, tasks)[task]) + 1.0
    slopes = SLOPE + (0.3 if estimand == "tasks_like_these" else 0.0) * rng.normal(size=tasks)
    after = rng.normal(0, 8, tasks)[task] + 2 * condition + slopes[task] * first + rng.normal(0, 5, task.size)
    return _holds(slope_after_first_edit(first, after, task, condition, estimand=estimand), SLOPE)
