"""Pass rates: of each cell, and of each condition as the mean of its cells' rates on *these tasks*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trialfleet_analysis.intervals import (
    EffectiveInterval,
    Interval,
    clopper_pearson,
    effective_sample_wilson,
    wilson,
)
from trialfleet_analysis.tables import CellName, TaskRow, TrialRow, Use
from trialfleet_runner.contract import Coverage


@dataclass(frozen=True)
class CellResult:
    """One task under one condition, over the complete blocks. `lost`: trials without a verdict.

    `coverage_none`: trials in which the condition's inline text had nothing to say for this task: their prompt
    equals that of the condition without it.
    """

    task: str
    condition: str
    use: Use
    passes: int
    valid: int
    lost: int
    wilson: Interval
    clopper_pearson: Interval
    coverage_none: int
    trials: tuple[str, ...]


@dataclass(frozen=True)
class ConditionResult:
    """One condition over the compared tasks. Counts are sums for orientation: the rate is not made of them.

    `worst`, `best`: the mean rate over all primary tasks if every trial whose first started run gave nothing to
    count (`first_runs_missing`) had failed, or passed. None where a cell has no trial at all.
    """

    condition: str
    tasks: int
    passes: int
    valid: int
    lost: int
    rate: EffectiveInterval
    first_runs_missing: int
    worst: float | None
    best: float | None


@dataclass(frozen=True)
class LeftOut:
    """A primary task that the conditions' means leave out, in all conditions, so that they stay comparable."""

    task: str
    reason: str


@dataclass(frozen=True)
class Contrast:
    """The declared primary contrast, described and not tested: treatment − control, in rates."""

    treatment: str
    control: str
    estimand: str
    difference: float | None
    reason: str | None


def cell_results(
    cells: Sequence[CellName], tasks: Sequence[TaskRow], rows: Sequence[TrialRow]
) -> tuple[CellResult, ...]:
    """One result per planned cell, in the plan's order; also for cells without any trial yet."""
    uses = {row.task: row.use for row in tasks}
    by_cell: dict[CellName, list[TrialRow]] = {cell: [] for cell in cells}
    for row in rows:
        if row.in_blocks:
            by_cell[row.cell].append(row)
    return tuple(_cell(cell, uses[cell[0]], found) for cell, found in by_cell.items())


def compared_tasks(
    tasks: Sequence[TaskRow], cells: Sequence[CellResult]
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


def condition_results(
    conditions: Sequence[str],
    compared: Sequence[str],
    cells: Sequence[CellResult],
    rows: Sequence[TrialRow],
) -> tuple[ConditionResult, ...]:
    """One result per condition, in the plan's order."""
    return tuple(
        _condition(
            name,
            [cell for cell in cells if cell.condition == name and cell.task in set(compared)],
            _bounded(name, cells, rows),
        )
        for name in conditions
    )


def contrast(treatment: str, control: str, estimand: str, results: Mapping[str, ConditionResult]) -> Contrast:
    """The difference of the two mean rates; None, with the reason, when either is undefined."""
    a, b = results[treatment].rate, results[control].rate
    if a.estimate is None or b.estimate is None:
        return Contrast(treatment, control, estimand, None, a.reason or b.reason)
    return Contrast(treatment, control, estimand, a.estimate - b.estimate, None)


def _cell(name: CellName, use: Use, rows: Sequence[TrialRow]) -> CellResult:
    valid = [row for row in rows if row.verdict is not None]
    passes = sum(row.passed is True for row in valid)
    return CellResult(
        task=name[0],
        condition=name[1],
        use=use,
        passes=passes,
        valid=len(valid),
        lost=len(rows) - len(valid),
        wilson=wilson(passes, len(valid)),
        clopper_pearson=clopper_pearson(passes, len(valid)),
        coverage_none=sum(row.delivery is not None and row.delivery.coverage is Coverage.NONE for row in valid),
        trials=tuple(row.trial for row in rows),
    )


def _condition(
    name: str, cells: Sequence[CellResult], bounded: tuple[int, float | None, float | None]
) -> ConditionResult:
    missing, worst, best = bounded
    return ConditionResult(
        condition=name,
        tasks=len(cells),
        passes=sum(cell.passes for cell in cells),
        valid=sum(cell.valid for cell in cells),
        lost=sum(cell.lost for cell in cells),
        rate=effective_sample_wilson([cell.passes for cell in cells], [cell.valid for cell in cells]),
        first_runs_missing=missing,
        worst=worst,
        best=best,
    )


def _bounded(
    condition: str, cells: Sequence[CellResult], rows: Sequence[TrialRow]
) -> tuple[int, float | None, float | None]:
    """(missing first runs, worst mean rate, best mean rate) over all primary tasks."""
    names = [cell.task for cell in cells if cell.condition == condition and cell.use is Use.PRIMARY]
    groups: dict[str, list[TrialRow]] = {name: [] for name in names}
    for row in rows:
        if row.in_blocks and row.condition == condition and row.task in groups:
            groups[row.task].append(row)
    missing = sum(row.first_run_missing for group in groups.values() for row in group)
    if not groups or not all(groups.values()):
        return missing, None, None
    worst = [sum(r.passed is True and not r.first_run_missing for r in g) / len(g) for g in groups.values()]
    best = [sum(r.passed is True or r.first_run_missing for r in g) / len(g) for g in groups.values()]
    return missing, sum(worst) / len(worst), sum(best) / len(best)
