"""Every trial behind a cell, and the command that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from trialfleet_analysis.rates import ENDINGS, CellResult
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.html.markup import h, listing
from trialfleet_analysis.report.html.table import section
from trialfleet_analysis.report.numbers.process import VERDICTS


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
    by_task: dict[str, list[CellResult]] = {}
    for cell in report.cells:
        by_task.setdefault(cell.task, []).append(cell)
    folds = [_task(place, task, cells) for place, (task, cells) in enumerate(by_task.items())]
    said = h(
        "p",
        h("code", id="command", data_start=f"{command} "),
        h("span", "copied", class_="muted"),
        id="said",
        role="status",
        hidden="",
    )
    return section("trials", "Trials", intro, folds, said)


def _task(place: int, task: str, cells: list[CellResult]) -> Element:
    number = sum(len(cell.trials) for cell in cells)
    groups = [
        h("div", h("h3", f"{task} × {cell.condition}"), list(_endings(cell)), id=f"t{place}-{n}")
        for n, cell in enumerate(cells)
        if cell.trials
    ]
    return h("details", h("summary", task, h("small", f" {number:,} trials")), groups)


def _endings(cell: CellResult) -> Iterator[Element]:
    """In launch order within each ending."""
    for verdict, letter in ENDINGS.items():
        ids = [trial for trial, ending in zip(cell.trials, cell.endings, strict=True) if ending == letter]
        if ids:
            yield h("p", h("b", f"{VERDICTS[verdict]} {len(ids):,}"), class_="ending")
            yield listing("p", ids, class_="ids")
