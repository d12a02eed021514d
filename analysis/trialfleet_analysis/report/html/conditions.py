"""Forest plot of the conditions, and the heat map of the cells."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from trialfleet_analysis.rates import CellResult, ConditionResult
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.figures import NOTHING, limits, percent, plural, short_limits
from trialfleet_analysis.report.html.forest import Row, forest, lines
from trialfleet_analysis.report.html.markup import Node, breakable, h
from trialfleet_analysis.report.html.plots.forest import Band, Mark, cell, row
from trialfleet_analysis.report.html.plots.scale import rates
from trialfleet_analysis.report.html.table import frame
from trialfleet_analysis.report.words import estimand
from trialfleet_analysis.tables import TaskRow, Use

KEYS = (
    ("these", "these tasks"),
    ("like", "tasks like these"),
    ("band", "bounds: lost first runs all failed, or all passed"),
)
DENSE = 8  # conditions above which cells show their counts alone
STEPS = 20  # of colour
APART = {
    Use.NO_ORACLE: "Apart: not part of any condition’s rate",
    Use.HALTED: "Apart: halted in every condition",
}


def conditions(report: Report) -> Node:
    if all(one.these_tasks.estimate is None for one in report.conditions):
        return None
    rows = [
        Row(one.condition, _role(report, one.condition), _drawing(one), _value(one)) for one in report.conditions
    ]
    caption = f"Pass rate of each condition on {estimand(report)} and on tasks like these, with 95% intervals."
    return forest("Conditions", rows, rates(), caption, keys=KEYS)


def _drawing(one: ConditionResult) -> Element:
    these, like = one.these_tasks, one.tasks_like_these
    band = None if one.worst is None or one.best is None else Band(one.worst, one.best)
    marks = [
        Mark("these", these.estimate, these.low, these.high),
        Mark("like", like.estimate, like.low, like.high),
    ]
    label = (
        f"{one.condition}: these tasks {percent(these.estimate)}, interval {limits(these)}; tasks like these "
        f"{percent(like.estimate)}, interval {limits(like)}"
    )
    return row(rates(), marks, label, band=band)


def _value(one: ConditionResult) -> Element:
    return lines(*((percent(found.estimate), limits(found)) for found in (one.these_tasks, one.tasks_like_these)))


def _role(report: Report, condition: str) -> str | None:
    primary = report.headline
    if primary is None or condition not in (primary.treatment, primary.control):
        return None
    return "treatment" if condition == primary.treatment else "control"


def heat(report: Report) -> Node:
    """Task × condition: counts, and a deeper colour for a higher rate. Every count leads to its trials."""
    if not report.cells:
        return None
    dense = len(report.condition_names) > DENSE
    by_task: dict[str, list[CellResult]] = {}
    for found in report.cells:
        by_task.setdefault(found.task, []).append(found)
    place = {name: n for n, name in enumerate(by_task)}
    width = len(report.condition_names) + 1
    body = [_task(row, by_task, place, report, dense) for row in report.tasks if row.use is Use.PRIMARY]
    for use, title in APART.items():
        apart = [row for row in report.tasks if row.use is use]
        if apart:
            body.append(h("tr", h("th", h("span", title), colspan=width, class_="apart", scope="colgroup")))
            body += [_task(row, by_task, place, report, dense) for row in apart]
    names = [h("th", h("span", breakable(name)), scope="col") for name in report.condition_names]
    head = h("tr", h("th", "Task", scope="col"), names)
    caption = "Passed of valid trials per task and condition"
    return h(
        "figure",
        frame(
            caption, head, body, class_=f"heat wide{' dense' if dense else ''}{' tall' if len(body) > 14 else ''}"
        ),
        h("figcaption", _caption(dense)),
    )


def _caption(dense: bool) -> str:
    interval = "" if dense else " with Wilson’s 95% interval in per cent"
    return (
        f"Passed / valid trials{interval}; each count leads to its trials. Deeper colour: higher rate. ∅: no "
        "context node covers the task, so that the inline text was empty."
    )


def _task(
    row: TaskRow, by_task: dict[str, list[CellResult]], place: dict[str, int], report: Report, dense: bool
) -> Element:
    left_out = {left.task: left.reason for left in report.left_out}
    note = left_out.get(row.task) or row.reason
    name: Node = [breakable(row.task), h("small", f" {note}", class_="muted") if note else None]
    cells = [_cell(found, f"#t{place[row.task]}-{n}", dense) for n, found in enumerate(by_task.get(row.task, ()))]
    return h("tr", h("th", name, scope="row"), cells)


def _cell(found: CellResult, trials: str, dense: bool) -> Element:
    rate = found.wilson.estimate
    kind = "cell empty" if rate is None else f"cell r{round(STEPS * rate)}"
    count: Node = f"{found.passes}/{found.valid}" if found.valid else NOTHING
    return h(
        "td",
        h("a", count, href=trials, class_="count") if found.trials else h("span", count, class_="count"),
        _marks(found),
        None if dense or not found.valid else _interval(found),
        class_=kind,
    )


def _marks(found: CellResult) -> Node:
    empty = f"inline text empty in {plural(found.coverage_none, 'trial')}"
    marks: list[Node] = [
        h("abbr", "∅", title=empty) if found.coverage_none else None,
        h("small", f"{found.lost} lost", class_="bad") if found.lost else None,
    ]
    return h("span", marks, class_="marks") if any(mark is not None for mark in marks) else None


def _interval(found: CellResult) -> Node:
    mark = Mark("these", found.wilson.estimate, found.wilson.low, found.wilson.high)
    return [h("span", short_limits(found.wilson), class_="range"), cell(rates(), mark)]
