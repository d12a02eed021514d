"""A/A: how often the report's primary decision finds a difference where there is none, and what a large one
costs."""

from __future__ import annotations

import math
import time

import numpy as np

from tests.bench.figure import Figure
from tests.unit.analysis.columns_fixture import drawn, laid_out, scheme
from trialfleet_analysis.analysis_plan.analyse import analyse
from trialfleet_analysis.analysis_plan.measures import COMPARED
from trialfleet_designs.comparison.columns import Columns, Scheme, counted
from trialfleet_designs.comparison.contrast import all_contrasts, sides
from trialfleet_statistics.estimates import Estimand
from trialfleet_statistics.intervals import clopper_pearson

CAMPAIGNS, ALPHA = 2_000, 0.05
ERROR = 3 * math.sqrt(ALPHA * (1 - ALPHA) / CAMPAIGNS)
ESTIMANDS: tuple[Estimand, ...] = ("these_tasks", "tasks_like_these")


def measure() -> list[Figure]:
    return [*_campaigns(7, 5), *_campaigns(20, 10), *_halves(), _large()]


def _campaigns(tasks: int, reps: int) -> list[Figure]:
    """Same rates in both arms, tasks differing with an ICC near .4."""
    fixed = scheme(tasks, reps=reps)
    found = [
        _decisions(
            fixed,
            drawn(np.random.default_rng(10_000 + seed).beta(0.9, 0.6, (tasks, 1)) * np.ones(2), reps, seed=seed),
        )
        for seed in range(CAMPAIGNS)
    ]
    return _figures(f"A/A, {CAMPAIGNS:,} campaigns of {tasks} × {reps}", found)


def _halves() -> list[Figure]:
    """One condition of one campaign, its reps split at random into two arms."""
    rng = np.random.default_rng(3)
    passes = (rng.random((12, 20)) < rng.beta(0.9, 0.6, (12, 1))).astype(np.float64)
    fixed = scheme(12, reps=10)
    found = [
        _decisions(fixed, laid_out(rng.permuted(passes, axis=1).reshape(12, 2, 10))) for _ in range(CAMPAIGNS)
    ]
    return _figures(f"A/A, {CAMPAIGNS:,} random halves of one condition, 12 × 20", found)


def _decisions(fixed: Scheme, columns: Columns) -> tuple[bool, bool]:
    head = all_contrasts(fixed, columns, counted(columns, fixed), sides(fixed)).found[0]
    ps = (head.these_tasks.test.p_value, head.tasks_like_these.test.p_value)
    return ps[0] is not None and ps[0] <= ALPHA, ps[1] is not None and ps[1] <= ALPHA


def _figures(name: str, found: list[tuple[bool, bool]]) -> list[Figure]:
    rejected = np.array(found).sum(axis=0)
    return [
        Figure(
            f"{name}: rejected, {estimand.replace('_', ' ')}",
            int(count) / len(found),
            "",
            goal=ALPHA + ERROR,
            floor=ALPHA - ERROR,
            note=f"95 % limits {clopper_pearson(int(count), len(found)).rounded(4)}",
        )
        for estimand, count in zip(ESTIMANDS, rejected, strict=True)
    ]


def _large() -> Figure:
    """40 tasks × 10 conditions × 250 reps, with ten metrics, from columns."""
    rng = np.random.default_rng(1)
    shape = (40, 10, 250)
    passed = (rng.random(shape) < rng.beta(1, 1, (40, 1, 1))).astype(np.float64)
    passed[rng.random(shape) < 0.03] = np.nan
    columns = laid_out(passed, measures={key: rng.gamma(3, 10, shape) for key in COMPARED})
    fixed = scheme(40, [f"c{n}" for n in range(10)], reps=250, factors={"category": ["a", "b"] * 20})
    began = time.process_time()
    analyse(fixed, columns)
    return Figure("the plan of analysis over 100,000 trials", time.process_time() - began, "core s", goal=10)
