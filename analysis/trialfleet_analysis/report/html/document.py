"""The whole page."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.html import provenance, results, runs
from trialfleet_analysis.report.html.markup import h, page

CONTENTS = (
    ("answer", "Result"),
    ("conditions", "Conditions"),
    ("cells", "Cells"),
    ("endings", "Endings"),
    ("losses", "Losses"),
    ("metrics", "Metrics"),
    ("order", "Order"),
    ("delivery", "Delivery"),
    ("trials", "Trials"),
    ("manifest", "Manifest"),
    ("methods", "Methods"),
)


def to_html(report: Report) -> str:
    """Self-contained: one file that opens without network. Same report, same bytes."""
    contents = h("nav", [h("a", name, href=f"#{anchor}") for anchor, name in CONTENTS], aria_label="Contents")
    main = h(
        "main",
        results.answer(report),
        results.conditions(report),
        results.cells(report),
        runs.endings(report),
        runs.losses(report),
        runs.metrics(report),
        runs.order(report),
        runs.delivery(report),
        provenance.trials(report),
        provenance.manifest(report),
        provenance.methods(),
    )
    return page(
        title=f"{report.campaign} · trialfleet report",
        style=_style(),
        body=[results.heading(report), contents, main],
    )


@cache
def _style() -> str:
    return files("trialfleet_analysis.report.html").joinpath("style.css").read_text(encoding="utf-8")
