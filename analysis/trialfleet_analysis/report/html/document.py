"""The whole page."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.html import conditions, contrasts, head, outlook, process, timing, trials
from trialfleet_analysis.report.html.markup import Node, h, page
from trialfleet_analysis.report.html.table import all_shown, section
from trialfleet_analysis.report.numbers import Section, sections

DRAWN: dict[str, Callable[[Report], Node]] = {
    "contrasts": contrasts.contrasts,
    "conditions": conditions.conditions,
    "cells": conditions.heat,
    "tasks": contrasts.tasks,
    "losses": contrasts.scenarios,
    "endings": process.endings,
    "taken": process.taken,
    "timing": timing.timing,
    "order": process.over_blocks,
    "outlook": outlook.more,
}
SHORT = {
    "tasks": "Tasks",
    "endings": "Endings",
    "taken": "Effort",
    "order": "Order",
    "outlook": "More",
    "repeats": "Tries",
    "manifest": "Record",
    "methods": "Methods",
}


def to_html(report: Report) -> str:
    """Self-contained: one file that opens without network. Same report, same bytes."""
    parts = [(found, drawn) for found in sections(report) if (drawn := _drawn(found, report)) is not None]
    anchors = [("answer", "Result"), *((found.anchor, SHORT.get(found.anchor, found.title)) for found, _ in parts)]
    contents = h(
        "nav",
        [h("a", name, href=f"#{anchor}") for anchor, name in (*anchors, ("trials", "Trials"))],
        aria_label="Contents",
    )
    body = (
        h("a", "Skip to the result", href="#answer", class_="skip"),
        h("button", "Dark", id="theme", type="button", hidden="", aria_label="Switch between light and dark"),
        head.heading(report),
        contents,
        h("main", head.answer(report), [drawn for _, drawn in parts], trials.trials(report)),
    )
    title = f"{report.campaign} · trialfleet report"
    return page(title=title, style=_asset("style.css"), script=_asset("script.js"), body=body)


def _drawn(found: Section, report: Report) -> Element | None:
    """A section of its drawing and its tables; None without either."""
    drawing = DRAWN[found.anchor](report) if found.anchor in DRAWN else None
    if drawing is None and not found.tables:
        return None
    lead = h("p", found.lead, class_="muted")
    return section(found.anchor, found.title, lead, drawing, list(all_shown(found.tables)))


@cache
def _asset(name: str) -> str:
    return files("trialfleet_analysis.report.html").joinpath(name).read_text(encoding="utf-8")
