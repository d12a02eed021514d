"""The heat map of the cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trialfleet_analysis.rates import CellResult
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.data import DataValue, FigureData
from trialfleet_analysis.tables.rows import Use

APART = {
    Use.NO_ORACLE: "Apart: not part of any condition’s rate",
    Use.HALTED: "Apart: halted in every condition",
}


@dataclass(frozen=True)
class HeatRow:
    """`note`: why the task is in no mean, or None."""

    task: str
    note: str | None
    cells: tuple[CellResult, ...]


@dataclass(frozen=True)
class HeatGroup:
    """`title` empty: the tasks that conditions are compared over."""

    title: str
    rows: tuple[HeatRow, ...]


@dataclass(frozen=True)
class HeatMap:
    """Task × condition, a deeper colour for a higher rate."""

    anchor: str
    title: str
    axis: str
    conditions: tuple[str, ...]
    groups: tuple[HeatGroup, ...]
    caption: str

    def list_data(self) -> FigureData:
        """One row a cell, with Wilson's interval."""
        return FigureData(
            ("task", "condition", "passes", "valid", "lost", "rate", "low", "high"), tuple(self._cells())
        )

    def _cells(self) -> Iterator[tuple[DataValue, ...]]:
        for row in (row for group in self.groups for row in group.rows):
            for one in row.cells:
                of = one.wilson
                yield row.task, one.condition, one.passes, one.valid, one.lost, of.estimate, of.low, of.high


def find_heat(report: Report) -> HeatMap | None:
    """None without a cell."""
    if not report.cells:
        return None
    cells: dict[str, list[CellResult]] = {}
    for one in report.cells:
        cells.setdefault(one.task, []).append(one)
    reasons = {left.task: left.reason for left in report.left_out}

    def rows(use: Use) -> tuple[HeatRow, ...]:
        return tuple(
            HeatRow(row.task, reasons.get(row.task) or row.reason, tuple(cells.get(row.task, ())))
            for row in report.tasks
            if row.use is use
        )

    apart = (HeatGroup(title, rows(use)) for use, title in APART.items())
    return HeatMap(
        anchor="cells",
        title="Passed of valid trials per task and condition",
        axis="pass rate",
        conditions=report.condition_names,
        groups=(HeatGroup("", rows(Use.PRIMARY)), *(one for one in apart if one.rows)),
        caption="Passed / valid trials. Deeper colour: higher rate.",
    )
