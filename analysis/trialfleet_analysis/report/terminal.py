"""The report's core for a terminal of 80 columns: the answer, what it rests on, and what to doubt."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.text import Text

from trialfleet_analysis.losses import LossCount
from trialfleet_analysis.rates import CellResult
from trialfleet_analysis.report.answer import estimand
from trialfleet_analysis.report.arrivals import arrival_line
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.findings.effort import core_seconds
from trialfleet_analysis.report.findings.record import declared_contrast
from trialfleet_analysis.report.html.sentences import NEXT
from trialfleet_analysis.report.terminal_document import (
    LONGEST,
    MOST,
    lay_out_table,
    print_cautions,
    print_sentences,
    print_table,
)
from trialfleet_designs.comparison.contrast import Contrast, OnTheseTasks
from trialfleet_designs.comparison.tasks_like_these import OnTasksLikeThese
from trialfleet_designs.document.figures import (
    NOTHING,
    bare_p,
    bare_points,
    limits,
    percent,
    point_limits,
    short_limits,
)
from trialfleet_designs.document.tables import ReportTable, Value, crossed, failures, number, spaced, table, text
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.plurals import plural

WIDEST = 5  # conditions whose cells stand side by side in 80 columns


def show(report: Report, console: Console) -> None:
    """Print it; what others wrote is printed as plain text, never as markup."""
    for part in _parts(report):
        console.print(part)


def _parts(report: Report) -> Iterator[RenderableType]:
    if report.banner:
        yield Text(one_line(report.banner, longest=LONGEST), style="bold yellow")
    yield from print_sentences(report.answer)
    if report.next_step:
        yield Text(f"{NEXT} {one_line(report.next_step, longest=LONGEST)}")
    if line := arrival_line(report):
        yield Text(one_line(line, longest=LONGEST), style="dim")
    yield from _summary(report)
    yield from print_table(_conditions(report))
    yield from _cells(report)
    if report.analysis.contrasts:
        yield from _contrasts(report)
    yield from print_table(_losses(report)) if report.losses else [Text("\nno attempt was lost")]
    if report.cautions:
        yield Text("")
    yield from print_cautions(report.cautions)
    yield Text(core_seconds(report), style="dim")


def _summary(report: Report) -> Iterator[RenderableType]:
    """One row per fact and one column per estimand; a note is printed below its value."""
    found = declared_contrast(report)
    if found is not None:
        yield Text("")
        yield lay_out_table(found)


def _conditions(report: Report) -> ReportTable:
    return table(
        f"pass rates on {estimand(report)}: mean of the tasks' rates",
        report.conditions,
        text("condition", lambda one: one.condition),
        number("rate", lambda one: percent(one.these_tasks.estimate)),
        number("95% interval", lambda one: limits(one.these_tasks)),
        number("passed/valid", lambda one: f"{one.passes}/{one.valid}"),
        number("lost", lambda one: failures(one.lost)),
        number(
            "bounds", lambda one: NOTHING if one.worst is None else f"{100 * one.worst:.1f} to {percent(one.best)}"
        ),
    )


def _cells(report: Report) -> Iterator[RenderableType]:
    """Tasks down, conditions across: passed/valid with the interval in whole per cent, and what was lost."""
    if len(report.conditions) > WIDEST:
        yield Text(f"{plural(len(report.cells), 'cell')}: in the files", style="dim")
        return
    found = {(cell.task, cell.condition): cell for cell in report.cells}
    cells = crossed(
        "cells: passed/valid, Wilson's 95% interval in per cent",
        "task",
        [row.task for row in report.tasks],
        {one.condition: one.condition for one in report.conditions},
        lambda task, condition: _describe_cell(found.get((task, condition))),
    )
    yield from print_table(cells, elsewhere="the files", rows="task", folds=True)


def _describe_cell(cell: CellResult | None) -> Value:
    if cell is None:
        return Value(NOTHING)
    lost = f" {cell.lost} lost" if cell.lost else ""
    return Value(f"{cell.passes}/{cell.valid} {short_limits(cell.wilson)}{lost}", alarm=bool(cell.lost))


def _contrasts(report: Report) -> Iterator[RenderableType]:
    """Named by the treatment alone where all have the same control."""
    found = report.analysis.contrasts
    controls = {one.control for one in found}
    against = f" with {found[0].control}" if len(controls) == 1 else ""
    valid = ": only p-values on these tasks allow for looks" if report.design.allows_for_looks else ""
    monitored = (valid or ": no p is valid yet") if report.analysis.monitored else ""
    yield from print_table(
        table(
            f"contrasts{against}, in points{monitored}",
            [(one, on) for one in found[:MOST] for on in ("these", "like these")],
            text("treatment" if against else "contrast", lambda row: _name_contrast(*row, alone=bool(against))),
            text("on", lambda row: row[1]),
            number("points", lambda row: bare_points(_part(*row).difference.estimate)),
            number("interval", lambda row: point_limits(_part(*row).difference) or NOTHING),
            number("p", lambda row: bare_p(_part(*row).test.p_value)),
            number("corrected", lambda row: _correct(_part(*row))),
        )
    )
    if len(found) > MOST:
        yield Text(f"and {len(found) - MOST} more in the files", style="dim")


def _part(contrast: Contrast, on: str) -> OnTheseTasks | OnTasksLikeThese:
    return contrast.these_tasks if on == "these" else contrast.tasks_like_these


def _name_contrast(contrast: Contrast, on: str, *, alone: bool) -> str:
    if on == "these":
        return contrast.treatment if alone else contrast.name
    return "(primary)" if contrast.role == "primary" else ""


def _correct(part: OnTheseTasks | OnTasksLikeThese) -> str:
    """Nothing where the p stands alone: the declared contrast in its declared estimand."""
    return NOTHING if part.adjusted is None else bare_p(part.adjusted.p_value)


def _losses(report: Report) -> ReportTable:
    """One row per class and stage, with the conditions that had any."""
    groups: dict[tuple[str, str], list[LossCount]] = {}
    for entry in report.losses:
        groups.setdefault((entry.loss.words, spaced(entry.stage.value)), []).append(entry)
    return table(
        "lost attempts: missing data, never failures",
        sorted(groups.items()),
        text("class", lambda one: one[0][0]),
        text("stage", lambda one: one[0][1]),
        number("attempts", lambda one: sum(entry.attempts for entry in one[1])),
        text("by condition", lambda one: ", ".join(f"{entry.condition} {entry.attempts}" for entry in one[1])),
    )
