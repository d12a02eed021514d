"""Counts of each cell over the complete blocks, without statistics: the viewer's first screen needs no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trialfleet_analysis.tables.columns import among, codes, some, texts, truths
from trialfleet_analysis.tables.rows import CellName, TaskRow, Use
from trialfleet_analysis.tables.table import Table
from trialfleet_ledger.records.measurements import Coverage
from trialfleet_ledger.records.verdicts import Verdict

ENDINGS: dict[Verdict | None, str] = {
    Verdict.PASSED: "p",
    Verdict.FAILED: "f",
    Verdict.TIMED_OUT: "t",
    Verdict.EXHAUSTED: "e",
    Verdict.TESTS_TIMED_OUT: "s",
    Verdict.TESTS_EXHAUSTED: "x",
    Verdict.FORGED: "g",
    None: "-",  # lost
}


@dataclass(frozen=True)
class CellCount:
    """One task under one condition, over the complete blocks. `lost`: trials without a verdict.

    `coverage_none`: trials in which the condition's inline text had nothing to say for this task: their prompt
    equals that of the condition without it. `trials`, `endings`: ids in launch order, and a letter for each as in
    `ENDINGS`.
    """

    task: str
    condition: str
    use: Use
    passes: int
    valid: int
    lost: int
    coverage_none: int
    trials: tuple[str, ...]
    endings: str

    @property
    def rate(self) -> float | None:
        """None when nothing was measured."""
        return self.passes / self.valid if self.valid else None


def cell_counts(cells: Sequence[CellName], tasks: Sequence[TaskRow], trials: Table) -> tuple[CellCount, ...]:
    """One per planned cell, in the plan's order; also for cells without any trial yet."""
    uses = {row.task: row.use for row in tasks}
    used = some(trials, truths(trials, "in_blocks"))
    names, conditions = list(dict.fromkeys(c[0] for c in cells)), list(dict.fromkeys(c[1] for c in cells))
    cell = codes(used, "task", names) * len(conditions) + codes(used, "condition", conditions)
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], np.arange(len(names) * len(conditions) + 1))
    trial_ids = texts(used, "trial")
    ids = [trial_ids[int(n)] or "" for n in order]
    letters = np.array([*ENDINGS.values()])[codes(used, "verdict", list(Verdict))[order]]
    empty = among(used, "coverage", (Coverage.NONE,))[order]
    found: list[CellCount] = []
    for task, condition in cells:
        place = names.index(task) * len(conditions) + conditions.index(condition)
        mine = slice(starts[place], starts[place + 1])
        found.append(
            _cell((task, condition), uses[task], ids[mine], "".join(letters[mine]), int(empty[mine].sum()))
        )
    return tuple(found)


def _cell(name: CellName, use: Use, trials: Sequence[str], endings: str, coverage_none: int) -> CellCount:
    lost = endings.count(ENDINGS[None])
    return CellCount(
        task=name[0],
        condition=name[1],
        use=use,
        passes=endings.count(ENDINGS[Verdict.PASSED]),
        valid=len(endings) - lost,
        lost=lost,
        coverage_none=coverage_none,
        trials=tuple(trials),
        endings=endings,
    )
