"""The whole page, from its name, state and answer down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.arrivals import arrival_line
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.declared_result import report_context
from trialfleet_analysis.report.findings.record import declared_contrast
from trialfleet_analysis.report.findings.sections import sections
from trialfleet_analysis.report.html.assets import asset
from trialfleet_analysis.report.html.conditions import conditions, heat, trials
from trialfleet_analysis.report.html.forests import contrasts, designs, scenarios, strip, tasks, timing
from trialfleet_analysis.report.html.markup import Node, all_shown, breakable, framed, h, page, section
from trialfleet_analysis.report.html.plots import svg
from trialfleet_analysis.report.html.process import effort, endings, over_blocks
from trialfleet_analysis.report.html.sentences import cautions_list, in_one_minute
from trialfleet_analysis.report.methods_text import LEAD, TITLE, methods_text
from trialfleet_designs.document.tables import ReportSection
from trialfleet_ledger.plurals import plural


def heading(report: Report) -> Element:
    """Name, state and banner."""
    progress = report.progress
    chips = [
        h("li", report.state, class_=f"chip {'interim' if report.state == 'interim' else 'final'}"),
        h("li", f"{progress.terminal:,} of {plural(progress.planned, 'trial')}", class_="chip"),
        h("li", f"{progress.complete_blocks:,} of {plural(progress.blocks, 'block')} complete", class_="chip"),
        h("li", "bundles verified" if report.verified else "bundles not verified", class_="chip"),
    ]
    return h(
        "header",
        h("p", "trialfleet report", class_="kicker"),
        h("h1", breakable(report.title)),
        h("ul", chips, class_="chips"),
        h("p", report.banner, class_="banner", role="note") if report.banner else None,
    )


def answer(report: Report) -> Element:
    """The decision, its size and its cost in two lines; the difference drawn; what to doubt."""
    drawing = strip(report.headline) if report.headline and declared_contrast(report) else None
    arrived = arrival_line(report)
    line = h("p", arrived, class_="size") if arrived else None
    return in_one_minute(report.answer, line, drawing, cautions_list(report.cautions))


def _contrast(report: Report) -> Node:
    """The declared contrast in both estimands."""
    found = declared_contrast(report)
    return section("declared", found.title, h("div", framed(found), class_="declared")) if found else None


DRAWN: dict[str, Callable[[Report], Node]] = {
    "contrasts": contrasts,
    "conditions": conditions,
    "cells": heat,
    "tasks": tasks,
    "losses": scenarios,
    "endings": endings,
    "taken": effort,
    "timing": timing,
    "order": over_blocks,
    "outlook": designs,
}


def drawing_of_design(section: ReportSection, report: Report) -> Node:
    """Above the tables of the declared design's own section."""
    design, found, context = report.design, report.analysis.found, report_context(report)
    if section != design.section(found, context):
        return None
    drawing = design.draw(found, context)
    if drawing is None:
        return None
    shapes = (h(one.tag, one.text, **one.attributes) for one in drawing.shapes)
    return svg(drawing.height, drawing.label, *shapes)


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


@dataclass(frozen=True)
class EmbeddedPairs:
    """Trials side by side, of the `differing` pairs of the declared contrast. `style`: what their parts need."""

    shown: Sequence[Element]
    differing: int
    style: str


def _last(pairs: EmbeddedPairs | None) -> tuple[tuple[str, str], ...]:
    middle = (("pairs", "Pairs"),) if pairs and pairs.shown else ()
    return ("trials", "Trials"), *middle, ("cite", "Cite")


def _pairs(pairs: EmbeddedPairs | None) -> Node:
    if pairs is None or not pairs.shown:
        return None
    words = (
        f"{len(pairs.shown):,} of {plural(pairs.differing, 'pair')} in which one passed and the other did not, "
        "A under the treatment and B under the control: as many as this file has room for. "
        "`trialfleet view` shows all."
    )
    return section("pairs", "Where the two differ", h("p", words, class_="muted"), list(pairs.shown))


def to_html(report: Report, pairs: EmbeddedPairs | None = None) -> str:
    """Self-contained: one file that opens without network. Same report, same bytes."""
    parts = [(found, drawn) for found in sections(report) if (drawn := _drawn(found, report)) is not None]
    first = [("answer", "Result"), *([("declared", "Declared")] if declared_contrast(report) else [])]
    anchors = [*first, *((found.anchor, SHORT.get(found.anchor, found.title)) for found, _ in parts)]
    contents = h(
        "nav",
        [h("a", name, href=f"#{anchor}") for anchor, name in (*anchors, *_last(pairs))],
        aria_label="Contents",
    )
    body = (
        h("a", "Skip to the result", href="#answer", class_="skip"),
        h("button", "Dark", id="theme", type="button", hidden="", aria_label="Switch between light and dark"),
        heading(report),
        contents,
        h(
            "main",
            answer(report),
            _contrast(report),
            [drawn for _, drawn in parts],
            trials(report),
            _pairs(pairs),
            _methods(report),
        ),
    )
    title = f"{report.title} · trialfleet report"
    style = asset("style.css") + (pairs.style if pairs else "")
    return page(title=title, style=style, script=asset("theme.js") + asset("script.js"), body=body)


def _drawn(found: ReportSection, report: Report) -> Element | None:
    """A section of its drawing and its tables; None without either."""
    drawing = DRAWN.get(found.anchor, partial(drawing_of_design, found))(report)
    if drawing is None and not found.tables:
        return None
    lead = h("p", found.lead, class_="muted")
    return section(found.anchor, found.title, lead, drawing, list(all_shown(found.tables)))


def _methods(report: Report) -> Element:
    found = methods_text(report)
    entries = h("pre", tabindex=0, role="region", aria_label="BibTeX entries", class_="bibtex")
    entries.text = found.entries
    return section("cite", TITLE, h("p", LEAD, class_="muted"), [h("p", one) for one in found.paragraphs], entries)
