"""The report's core for a terminal: rates with intervals, every loss, core seconds."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from trialfleet_analysis.process import CoreSeconds
from trialfleet_analysis.rates import CellResult
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.figures import limits, percent, plural, seconds
from trialfleet_analysis.report.hostile import plain
from trialfleet_analysis.report.words import estimand
from trialfleet_analysis.tables import Use


def show(report: Report, console: Console) -> None:
    """Print it; what others wrote is printed as plain text, never as markup."""
    for part in _parts(report):
        console.print(part)


def _parts(report: Report) -> Iterator[RenderableType]:
    if report.banner:
        yield Text(plain(report.banner), style="bold yellow")
    yield _title("pass rate per cell, with 95% intervals")
    yield _cells(report)
    yield _title(f"pass rate per condition on {estimand(report)}: mean of the tasks' rates")
    yield _conditions(report)
    yield _title("lost attempts: missing data, never failures")
    yield _losses(report) if report.losses else Text("no attempt was lost")
    yield Text("")
    for place, sentence in enumerate(report.answer):
        yield Text(plain(sentence), style="" if place else "bold")
    for caution in report.cautions:
        yield Text(f"! {plain(caution)}", style="yellow")
    yield Text(_core_seconds(report.core_seconds))


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="italic")


def _core_seconds(core: CoreSeconds) -> str:
    if core.median is None:
        return "core seconds per trial: not measured"
    return (
        f"core seconds per trial: median {seconds(core.median)}, mean {seconds(core.mean)} over "
        f"{plural(core.trials, 'trial')} (medians: overhead {seconds(core.overhead)}, "
        f"agent {seconds(core.agent)}, tests {seconds(core.tests)})"
    )


def _cells(report: Report) -> Table:
    """Tasks as headings, their conditions below: fits 80 columns with ordinary names."""
    table = _table("task")
    for column in ("passed", "lost", "rate", "Wilson", "Clopper-Pearson"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in report.tasks:
        apart = "" if row.use is Use.PRIMARY else f" (apart: {row.use.value.replace('_', ' ')})"
        table.add_row(Text(plain(row.task) + apart, style="bold"))
        for cell in report.cells:
            if cell.task == row.task:
                table.add_row(*_cell(cell))
    return table


def _cell(cell: CellResult) -> tuple[RenderableType, ...]:
    return (
        Text(f"  {plain(cell.condition)}{' ∅' if cell.coverage_none else ''}"),
        f"{cell.passes}/{cell.valid}",
        Text(str(cell.lost), style="red" if cell.lost else ""),
        percent(cell.wilson.estimate),
        limits(cell.wilson),
        limits(cell.clopper_pearson),
    )


def _conditions(report: Report) -> Table:
    table = _table("condition")
    for column in ("rate", "95% interval", "passed/valid", "lost", "bounds"):
        table.add_column(column, justify="right", no_wrap=True)
    for result in report.conditions:
        bounds = "–" if result.worst is None else f"{percent(result.worst)} to {percent(result.best)}"
        table.add_row(
            Text(plain(result.condition)),
            Text(percent(result.rate.estimate), style="bold"),
            limits(result.rate),
            f"{result.passes}/{result.valid}",
            Text(str(result.lost), style="red" if result.lost else ""),
            bounds,
        )
    return table


def _losses(report: Report) -> Table:
    table = _table("condition", "class", "stage")
    table.add_column("attempts", justify="right")
    for entry in report.losses:
        table.add_row(
            Text(plain(entry.condition)),
            entry.loss.value,
            entry.stage.value.replace("_", " "),
            str(entry.attempts),
        )
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name, overflow="fold")
    return table
