"""The report's core for a terminal of 80 columns: the answer, what it rests on, and what to doubt."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from trialfleet_analysis.losses import LossCount
from trialfleet_analysis.rates import CellResult
from trialfleet_analysis.report.answer import estimand
from trialfleet_analysis.report.arrivals import arrival_line
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.findings.effort import core_seconds
from trialfleet_analysis.report.findings.record import declared_contrast
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
from trialfleet_designs.document.tables import Value
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.plurals import plural

MOST = 12  # contrasts, cautions, and tasks of the cells that are printed; the files hold the others
WIDEST = 5  # conditions whose cells stand side by side in 80 columns


def show(report: Report, console: Console) -> None:
    """Print it; what others wrote is printed as plain text, never as markup."""
    for part in _parts(report):
        console.print(part)


def _parts(report: Report) -> Iterator[RenderableType]:
    if report.banner:
        yield Text(one_line(report.banner, longest=2000), style="bold yellow")
    yield from _answer(report)
    if line := arrival_line(report):
        yield Text(one_line(line, longest=2000), style="dim")
    yield from _summary(report)
    yield _title(f"pass rates on {estimand(report)}: mean of the tasks' rates")
    yield _conditions(report)
    yield from _cells(report)
    if report.analysis.contrasts:
        yield from _contrasts(report)
    yield _title("lost attempts: missing data, never failures")
    yield _losses(report) if report.losses else Text("no attempt was lost")
    yield from _cautions(report)
    yield Text(core_seconds(report), style="dim")


def _answer(report: Report) -> Iterator[Text]:
    first, *rest = report.answer
    yield Text(one_line(first, longest=2000), style="bold")
    for sentence in rest:
        yield Text(one_line(sentence, longest=2000))


def _summary(report: Report) -> Iterator[RenderableType]:
    """One row per fact and one column per estimand; a note is printed below its value."""
    found = declared_contrast(report)
    if found is None:
        return
    table = _table(*found.columns)
    for name, *values in found.rows:
        table.add_row(Text(name.text), *(_noted(value) for value in values))
    yield Text("")
    yield table


def _noted(value: Value) -> Text:
    text = Text(one_line(value.text))
    return text.append(f"\n{one_line(value.note)}", style="dim") if value.note else text


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="italic")


def _conditions(report: Report) -> Table:
    table = _table("condition")
    for column in ("rate", "95% interval", "passed/valid", "lost", "bounds"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in report.conditions:
        table.add_row(
            Text(one_line(one.condition)),
            Text(percent(one.these_tasks.estimate), style="bold"),
            limits(one.these_tasks),
            f"{one.passes}/{one.valid}",
            Text(str(one.lost), style="red" if one.lost else ""),
            NOTHING if one.worst is None else f"{100 * one.worst:.1f} to {percent(one.best)}",
        )
    return table


def _cells(report: Report) -> Iterator[RenderableType]:
    """Tasks down, conditions across: passed/valid with the interval in whole per cent, and what was lost."""
    if len(report.conditions) > WIDEST:
        yield Text(f"{plural(len(report.cells), 'cell')}: in the files", style="dim")
        return
    yield _title("cells: passed/valid, Wilson's 95% interval in per cent")
    table = _table("task")
    for one in report.conditions:
        table.add_column(Text(one_line(one.condition)), justify="right", overflow="fold")
    for row in report.tasks[:MOST]:
        found = {cell.condition: cell for cell in report.cells if cell.task == row.task}
        table.add_row(Text(one_line(row.task)), *(_cell(found.get(one.condition)) for one in report.conditions))
    yield table
    if len(report.tasks) > MOST:
        yield Text(f"and {plural(len(report.tasks) - MOST, 'more task')} in the files", style="dim")


def _cell(cell: CellResult | None) -> Text:
    if cell is None:
        return Text(NOTHING)
    text = Text(f"{cell.passes}/{cell.valid} {short_limits(cell.wilson)}", no_wrap=True)
    return text.append(f" {cell.lost} lost", style="red") if cell.lost else text


def _contrasts(report: Report) -> Iterator[RenderableType]:
    """Named by the treatment alone where all have the same control."""
    found = report.analysis.contrasts
    controls = {one.control for one in found}
    against = f" with {one_line(found[0].control)}" if len(controls) == 1 else ""
    valid = ": only p on these tasks allow for looks" if report.design.allows_for_looks else ""
    monitored = (valid or ": no p is valid yet") if report.analysis.monitored else ""
    yield _title(f"contrasts{against}, in points{monitored}")
    table = _table("treatment" if against else "contrast")
    for column in ("on", "points", "interval", "p", "corrected"):
        table.add_column(column, justify="left" if column == "on" else "right", no_wrap=True)
    for one in found[:MOST]:
        name = Text(one_line(one.treatment if against else one.name))
        table.add_row(name, *_part("these", one, one.these_tasks))
        role = Text("  (primary)" if one.role == "primary" else "", style="dim")
        table.add_row(role, *_part("like these", one, one.tasks_like_these))
    yield table
    if len(found) > MOST:
        yield Text(f"and {len(found) - MOST} more in the files", style="dim")


def _part(on: str, contrast: Contrast, part: OnTheseTasks | OnTasksLikeThese) -> Iterator[RenderableType]:
    """Bold where the p stands alone: the declared contrast in its declared estimand."""
    alone = contrast.role == "primary" and part.adjusted is None
    yield on
    yield Text(bare_points(part.difference.estimate), style="bold" if alone else "")
    yield point_limits(part.difference) or NOTHING
    yield bare_p(part.test.p_value)
    yield NOTHING if part.adjusted is None else bare_p(part.adjusted.p_value)


def _losses(report: Report) -> Table:
    """One row per class and stage, with the conditions that had any."""
    table = _table("class", "stage")
    table.add_column("attempts", justify="right")
    table.add_column("by condition", overflow="fold")
    groups: dict[tuple[str, str], list[LossCount]] = {}
    for entry in report.losses:
        groups.setdefault((entry.loss.words, entry.stage.value.replace("_", " ")), []).append(entry)
    for (loss, stage), found in sorted(groups.items()):
        by_condition = ", ".join(f"{one_line(entry.condition)} {entry.attempts}" for entry in found)
        table.add_row(loss, stage, str(sum(entry.attempts for entry in found)), Text(by_condition))
    return table


def _cautions(report: Report) -> Iterator[Text]:
    if report.cautions:
        yield Text("")
    for caution in report.cautions[:MOST]:
        yield Text(f"! {one_line(caution)}", style="yellow")
    if len(report.cautions) > MOST:
        yield Text(f"! and {plural(len(report.cautions) - MOST, 'more caution')} in the files", style="yellow")


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name, overflow="fold")
    return table
