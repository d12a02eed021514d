"""The heat map of the cells, and every trial behind a cell."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from trialfleet_analysis.cells import ENDINGS
from trialfleet_analysis.rates import CellResult
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.cells import HeatRow, find_heat
from trialfleet_analysis.report.figures.forest import Mark
from trialfleet_analysis.report.figures.scales import rates
from trialfleet_analysis.report.findings.conditions import VERDICTS
from trialfleet_analysis.report.html.markup import Node, breakable, fold, frame, h, listing
from trialfleet_analysis.report.html.plots import cell
from trialfleet_designs.document.figures import NOTHING, short_limits
from trialfleet_ledger.plurals import plural

DENSE = 8  # conditions above which cells show their counts alone
STEPS = 20  # of colour


def heat(report: Report) -> Node:
    """Task × condition: counts, and a deeper colour for a higher rate. Every count leads to its trials."""
    found = find_heat(report)
    if found is None:
        return None
    dense = len(found.conditions) > DENSE
    place = {name: n for n, name in enumerate(_by_task(report))}
    width = len(found.conditions) + 1
    body: list[Element] = []
    for group in found.groups:
        if group.title:
            title = h("th", h("span", group.title), colspan=width, class_="apart", scope="colgroup")
            body.append(h("tr", title))
        body += [_task(row, place.get(row.task, 0), dense) for row in group.rows]
    names = [h("th", h("span", breakable(name)), scope="col") for name in found.conditions]
    head = h("tr", h("th", "Task", scope="col"), names)
    kinds = f"heat wide{' dense' if dense else ''}{' tall' if len(body) > 14 else ''}"
    return h(
        "figure",
        frame(found.title, head, body, class_=kinds),
        h("figcaption", _caption(dense)),
        id=f"figure-{found.anchor}",
    )


def _by_task(report: Report) -> dict[str, list[CellResult]]:
    found: dict[str, list[CellResult]] = {}
    for one in report.cells:
        found.setdefault(one.task, []).append(one)
    return found


def _caption(dense: bool) -> str:
    interval = "" if dense else " with Wilson’s 95% interval in per cent"
    return (
        f"Passed/valid trials{interval}; each count leads to its trials. Deeper colour: higher rate. ∅: no "
        "context node covers the task, so that the inline text was empty."
    )


def _task(row: HeatRow, place: int, dense: bool) -> Element:
    note = h("small", f" {row.note}", class_="muted") if row.note else None
    cells = [_cell(found, f"#t{place}-{n}", dense) for n, found in enumerate(row.cells)]
    return h("tr", h("th", breakable(row.task), note, scope="row"), cells)


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


def trials(report: Report) -> Element:
    command = f"trialfleet show {report.campaign}"
    intro = h(
        "p",
        "Prompt, patch, tests and trajectory of a trial: ",
        h("code", f"{command} TRIAL"),
        ", run where the campaign file is, or with --store. The first letters of an id are enough. Choosing an id "
        "shows its command, and copies it where the browser allows that.",
        class_="muted",
    )
    folds = [_trials_of(place, task, cells) for place, (task, cells) in enumerate(_by_task(report).items())]
    said = h(
        "p",
        h("code", id="command", data_start=f"{command} "),
        h("span", "copied", class_="muted"),
        id="said",
        role="status",
        hidden="",
    )
    return fold("trials", "Which trials were these?", intro, folds, said)


def _trials_of(place: int, task: str, cells: list[CellResult]) -> Element:
    number = sum(len(cell.trials) for cell in cells)
    groups = [
        h("div", h("h3", f"{task} × {cell.condition}"), list(_endings(cell)), id=f"t{place}-{n}")
        for n, cell in enumerate(cells)
        if cell.trials
    ]
    return h("details", h("summary", task, h("small", f" {plural(number, 'trial')}")), groups)


def _endings(cell: CellResult) -> Iterator[Element]:
    """In launch order within each ending."""
    for verdict, letter in ENDINGS.items():
        ids = [trial for trial, ending in zip(cell.trials, cell.endings, strict=True) if ending == letter]
        if ids:
            yield h("p", h("b", f"{VERDICTS[verdict]} {len(ids):,}"), class_="ending")
            yield listing("p", ids, class_="ids")
