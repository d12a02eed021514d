"""Pass rates: of each cell, and of each condition for *these tasks* and for *tasks like these*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trialfleet_analysis.cells import CellCount, cell_counts
from trialfleet_analysis.tables.columns import among, codes, some, truths
from trialfleet_analysis.tables.rows import CellName, TaskRow, Use
from trialfleet_analysis.tables.table import Table
from trialfleet_designs.comparison.columns import CellCounts, Scheme
from trialfleet_designs.comparison.compared import ComparedTasks
from trialfleet_statistics.estimates import Bools, EffectiveInterval, Integers, Interval
from trialfleet_statistics.intervals import (
    PooledInterval,
    clopper_pearson,
    effective_sample_wilson,
    pooled_random,
    wilson,
)


@dataclass(frozen=True)
class CellResult(CellCount):
    """A cell's counts with the intervals of its rate."""

    wilson: Interval
    clopper_pearson: Interval


@dataclass(frozen=True)
class ConditionResult:
    """One condition over the compared tasks, `tasks` of which have a valid trial under it: only conditions that
    have all of them compare with each other. Counts are sums for orientation: the rate is not made of them.

    `tasks_like_these`: for the population that the tasks stand for, with `icc`: how far tasks differ within this
    condition; None with the reason below two tasks.

    `worst`, `best`: the mean rate over all primary tasks if every trial whose first started run gave nothing to
    count (`first_runs_missing`) had failed, or passed. None where a cell has no trial at all.
    """

    condition: str
    tasks: int
    passes: int
    valid: int
    lost: int
    these_tasks: EffectiveInterval
    tasks_like_these: PooledInterval
    first_runs_missing: int
    worst: float | None
    best: float | None


class Bounded(NamedTuple):
    """Trials whose first started run gave nothing to count, and the mean rates that they leave possible."""

    missing: int
    worst: float | None
    best: float | None


@dataclass(frozen=True)
class LeftOut:
    """A primary task that the conditions' means leave out, in all conditions, so that they stay comparable."""

    task: str
    reason: str


def cell_results(cells: Sequence[CellName], tasks: Sequence[TaskRow], trials: Table) -> tuple[CellResult, ...]:
    """One result per planned cell, in the plan's order; also for cells without any trial yet."""
    return tuple(
        CellResult(
            **vars(cell),
            wilson=wilson(cell.passes, cell.valid),
            clopper_pearson=clopper_pearson(cell.passes, cell.valid),
        )
        for cell in cell_counts(cells, tasks, trials)
    )


def compared_tasks(
    tasks: Sequence[TaskRow], cells: Sequence[CellCount]
) -> tuple[tuple[str, ...], tuple[LeftOut, ...]]:
    """Primary tasks measured in every condition that measured anything; the others with the reason.

    A mean over different tasks in different conditions would compare tasks, not conditions.
    """
    primary = [cell for cell in cells if cell.use is Use.PRIMARY]
    alive = {cell.condition for cell in primary if cell.valid}
    gaps: dict[str, list[str]] = {}
    for cell in primary:
        if cell.condition in alive and not cell.valid:
            gaps.setdefault(cell.task, []).append(cell.condition)
    names = [row.task for row in tasks if row.use is Use.PRIMARY]
    kept = tuple(name for name in names if name not in gaps) if alive else ()
    left_out = tuple(
        LeftOut(name, "no valid trial under " + ", ".join(gaps[name])) for name in names if name in gaps
    )
    return kept, left_out


def list_left_out(compared: ComparedTasks, cells: Sequence[CellCount]) -> tuple[LeftOut, ...]:
    """The primary tasks that a comparison is not made of, with the reason."""
    measured = {(cell.task, cell.condition): cell.valid for cell in cells}
    alive = dict.fromkeys(name for (_, name), valid in measured.items() if valid)
    found = [LeftOut(task, "too few valid trials, by losses") for task in compared.thin]
    for task in compared.empty:
        gaps = [name for name in alive if measured.get((task, name)) == 0]
        if gaps:
            found.append(LeftOut(task, "no valid trial under " + ", ".join(gaps)))
    return tuple(found)


def condition_results(
    scheme: Scheme, counts: CellCounts, lost: Integers, bounded: Mapping[str, Bounded]
) -> tuple[ConditionResult, ...]:
    """One result per condition, in the plan's order, over its tasks with a valid trial. `lost`: trials without a
    verdict per cell, as `counts`."""
    found: list[ConditionResult] = []
    for place, name in enumerate(scheme.conditions):
        some = counts.valid[:, place] > 0
        passes, valid = counts.passes[some, place], counts.valid[some, place]
        found.append(_condition(name, passes, valid, lost[:, place], bounded[name]))
    return tuple(found)


def bounds(conditions: Sequence[str], tasks: Sequence[TaskRow], trials: Table) -> dict[str, Bounded]:
    """Over all primary tasks, also those that the means leave out; undefined where one has no trial."""
    names = [row.task for row in tasks if row.use is Use.PRIMARY]
    used = some(trials, truths(trials, "in_blocks") & among(trials, "task", names))
    cell = codes(used, "condition", conditions) * len(names) + codes(used, "task", names)
    missing, passed = truths(used, "first_run_missing"), truths(used, "passed")

    def per_cell(which: Bools) -> Integers:
        return np.bincount(cell[which], minlength=len(conditions) * len(names)).reshape(
            len(conditions), len(names)
        )

    every = per_cell(np.ones(cell.shape, np.bool_))
    lost, worst, best = per_cell(missing), per_cell(passed & ~missing), per_cell(passed | missing)
    return {
        name: Bounded(int(lost[n].sum()), *(_mean_rate(passes[n], every[n]) for passes in (worst, best)))
        for n, name in enumerate(conditions)
    }


def _mean_rate(passes: Integers, trials: Integers) -> float | None:
    return float(np.mean(passes / trials)) if trials.size and trials.all() else None


def _condition(name: str, passes: Integers, valid: Integers, lost: Integers, bounded: Bounded) -> ConditionResult:
    like_these = pooled_random(passes, valid)
    return ConditionResult(
        condition=name,
        tasks=int(passes.size),
        passes=int(passes.sum()),
        valid=int(valid.sum()),
        lost=int(lost.sum()),
        these_tasks=effective_sample_wilson(passes, valid),
        tasks_like_these=like_these,
        first_runs_missing=bounded.missing,
        worst=bounded.worst,
        best=bounded.best,
    )
