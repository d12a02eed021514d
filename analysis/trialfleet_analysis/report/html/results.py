"""The answer, the conditions and the cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.rates import CellResult, ConditionResult
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.figures import NOTHING, limits, percent, plural, points, short_limits
from trialfleet_analysis.report.html import plots
from trialfleet_analysis.report.html.markup import Node, breakable, h
from trialfleet_analysis.report.html.table import scrolling, section
from trialfleet_analysis.report.words import estimand
from trialfleet_analysis.tables import TaskRow, Use

APART = {
    Use.NO_ORACLE: "Apart: no fail-to-pass test, so not part of any condition’s rate",
    Use.HALTED: "Apart: halted in every condition",
}


def heading(report: Report) -> Element:
    """Name, state, and the banner that nobody may overlook."""
    progress = report.progress
    state = "interim" if progress.interim else "final"
    chips = [
        h("li", state, class_=f"chip {state}"),
        h("li", f"{progress.terminal:,} of {plural(progress.planned, 'trial')}", class_="chip"),
        h("li", f"{progress.complete_blocks} of {plural(progress.blocks, 'block')} complete", class_="chip"),
        h("li", "bundles verified" if report.verified else "bundles not verified", class_="chip"),
    ]
    banner = h("p", report.banner, class_="banner", role="note") if report.banner else None
    return h(
        "header",
        h("p", "trialfleet report", class_="kicker"),
        h("h1", report.campaign),
        h("ul", chips, class_="chips"),
        banner,
    )


def answer(report: Report) -> Element:
    first, *rest = report.answer
    interim = ", interim" if report.progress.interim else ""
    primary = report.primary
    effect = None
    if primary and primary.difference is not None:
        effect = h(
            "p",
            h("span", points(primary.difference), class_="effect"),
            h("span", f"{primary.treatment} − {primary.control}, on {estimand(report)}{interim}", class_="muted"),
            class_="headline",
        )
    notes = h("ul", [h("li", caution) for caution in report.cautions], class_="cautions")
    return section(
        "answer",
        "What was found",
        effect,
        h("p", first, class_="lead"),
        [h("p", sentence) for sentence in rest],
        [h("h3", "Before you believe it"), notes] if report.cautions else None,
    )


def conditions(report: Report) -> Element:
    rows = [_condition_row(report, result) for result in report.conditions]
    figure = h(
        "figure",
        h(
            "div",
            rows,
            h("span", class_="name"),
            plots.axis(),
            h("span", class_="value"),
            class_="forest",
        ),
        h(
            "figcaption",
            f"Pass rate of each condition on {estimand(report)}: the mean of the tasks’ rates (dot) with its 95% "
            "interval (line; Wilson at the effective sample size, counts not pooled). Pale band: where the rate "
            "would lie if every trial whose first started run was lost had failed, or passed.",
        ),
    )
    return section("conditions", "Conditions", figure, _conditions_table(report.conditions))


def _condition_row(report: Report, result: ConditionResult) -> Node:
    band = (result.worst, result.best) if result.worst is not None and result.best is not None else None
    value: Node = [h("b", percent(result.rate.estimate)), " ", h("span", limits(result.rate), class_="muted")]
    return [
        h("span", breakable(result.condition), _role(report, result.condition), class_="name"),
        plots.interval(result.rate, band=band, height=30),
        h("span", value, class_="value"),
    ]


def _role(report: Report, condition: str) -> Node:
    primary = report.primary
    if primary is None or condition not in (primary.treatment, primary.control):
        return None
    return [" ", h("small", "treatment" if condition == primary.treatment else "control", class_="tag")]


def _conditions_table(results: Sequence[ConditionResult]) -> Element:
    columns = ("Condition", "Mean rate", "95% interval", "Passed / valid", "Lost", "Bounds", "First runs missing")
    body = [
        h(
            "tr",
            h("th", breakable(r.condition), scope="row"),
            h("td", percent(r.rate.estimate), title=r.rate.reason),
            h("td", limits(r.rate)),
            h("td", f"{r.passes} / {r.valid}"),
            h("td", r.lost, class_="bad" if r.lost else None),
            h("td", NOTHING if r.worst is None else f"{percent(r.worst)} to {percent(r.best)}"),
            h("td", r.first_runs_missing),
        )
        for r in results
    ]
    return scrolling("Conditions in numbers", columns, body)


def cells(report: Report) -> Element:
    head = ("Task", *report.condition_names)
    by_task: dict[str, list[CellResult]] = {}
    for cell in report.cells:
        by_task.setdefault(cell.task, []).append(cell)
    compared = [row for row in report.tasks if row.use is Use.PRIMARY]
    body: list[Element] = [_task_row(row, by_task[row.task], report) for row in compared]
    for use, title in APART.items():
        apart = [row for row in report.tasks if row.use is use]
        if apart:
            body.append(h("tr", h("th", title, colspan=len(head), class_="apart", scope="colgroup")))
            body += [_task_row(row, by_task[row.task], report) for row in apart]
    return section(
        "cells",
        "Cells",
        h(
            "p",
            "Passed of valid trials in each task × condition, with the 95% Wilson interval in per cent. "
            "Deeper colour: higher rate. ∅: no context node covers the task, so the inline text was empty.",
            class_="muted",
        ),
        scrolling("Pass rate per cell", head, body, class_="heat"),
        h("details", h("summary", "All cells in numbers, with exact intervals"), _cells_table(report.cells)),
    )


def _task_row(row: TaskRow, found: Sequence[CellResult], report: Report) -> Element:
    left_out = {left.task: left.reason for left in report.left_out}
    note = left_out.get(row.task) or row.reason
    name: Node = [breakable(row.task), h("small", f" {note}", class_="muted") if note else None]
    return h("tr", h("th", name, scope="row"), [_heat(cell) for cell in found])


def _heat(cell: CellResult) -> Element:
    rate = cell.wilson.estimate
    marks = [
        h("abbr", " ∅", title=f"inline text empty in {plural(cell.coverage_none, 'trial')}")
        if cell.coverage_none
        else None,
        h("span", f" {cell.lost} lost", class_="bad") if cell.lost else None,
    ]
    return h(
        "td",
        h("span", f"{cell.passes}/{cell.valid}" if cell.valid else NOTHING, class_="count"),
        marks,
        h("span", short_limits(cell.wilson), class_="range") if cell.valid else None,
        plots.interval(cell.wilson, height=10, grid=False) if cell.valid else None,
        style=None if rate is None else f"--rate:{100 * rate:.1f}%",
        class_="cell" if rate is not None else "cell empty",
        title=cell.wilson.reason,
    )


def _cells_table(found: Sequence[CellResult]) -> Element:
    columns = ("Task", "Condition", "Passed", "Valid", "Lost", "Rate", "Wilson", "Clopper–Pearson")
    return scrolling("Cells in numbers", columns, list(_cell_rows(found)))


def _cell_rows(found: Sequence[CellResult]) -> Iterator[Element]:
    for cell in found:
        yield h(
            "tr",
            h("th", breakable(cell.task), scope="row"),
            h("td", cell.condition, class_="text"),
            h("td", cell.passes),
            h("td", cell.valid),
            h("td", cell.lost, class_="bad" if cell.lost else None),
            h("td", percent(cell.wilson.estimate), title=cell.wilson.reason),
            h("td", limits(cell.wilson)),
            h("td", limits(cell.clopper_pearson)),
        )
