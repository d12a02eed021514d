"""The whole page, from its name, state and answer down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.declared_result import report_context
from trialfleet_analysis.report.figures.comparisons import find_contrasts, find_scenarios, find_task_differences
from trialfleet_analysis.report.figures.conditions import find_rates
from trialfleet_analysis.report.figures.forest import Forest
from trialfleet_analysis.report.findings.record import declared_contrast
from trialfleet_analysis.report.findings.sections import sections
from trialfleet_analysis.report.html.assets import asset
from trialfleet_analysis.report.html.conditions import heat, trials
from trialfleet_analysis.report.html.first_screen import first_screen
from trialfleet_analysis.report.html.forests import show_detectable, show_forest, show_timing
from trialfleet_analysis.report.html.markup import Node, all_shown, breakable, fold, framed, h, page
from trialfleet_analysis.report.html.plots import svg
from trialfleet_analysis.report.html.process import effort, endings, over_blocks
from trialfleet_analysis.report.html.sentences import list_words
from trialfleet_analysis.report.methods_text import LEAD, TITLE, methods_text
from trialfleet_designs.document.tables import ReportSection
from trialfleet_ledger.plurals import plural


def heading(report: Report) -> Element:
    """Name, state and banner."""
    progress = report.progress
    chips = [
        h("li", report.state, class_="chip interim" if report.state == "interim" else "chip"),
        h("li", progress.counted_trials, class_="chip"),
    ]
    if progress.complete_blocks < progress.blocks:
        blocks = f"{progress.complete_blocks:,} of {plural(progress.blocks, 'block')} complete"
        chips.append(h("li", blocks, class_="chip"))
    if not report.verified:
        chips.append(h("li", "bundles not verified", class_="chip"))
    return h(
        "header",
        h("p", "trialfleet report", class_="kicker"),
        h("h1", breakable(report.title)),
        h("ul", chips, class_="chips"),
        h("p", report.banner, class_="banner", role="note") if report.banner else None,
    )


def _contrast(report: Report) -> Node:
    """The declared contrast in both estimands."""
    found = declared_contrast(report)
    return fold("declared", found.title, h("div", framed(found), class_="declared")) if found else None


def render_forest_of(find: Callable[[Report], Forest | None]) -> Callable[[Report], Node]:
    return lambda report: show_forest(find(report))


DRAWN: dict[str, Callable[[Report], Node]] = {
    "contrasts": render_forest_of(find_contrasts),
    "conditions": render_forest_of(find_rates),
    "cells": heat,
    "tasks": render_forest_of(find_task_differences),
    "losses": render_forest_of(find_scenarios),
    "endings": endings,
    "taken": effort,
    "timing": show_timing,
    "order": over_blocks,
    "outlook": show_detectable,
}


def list_repeated(report: Report) -> set[str]:
    """Tables whose numbers all stand in a drawing, or in the declared contrast's table."""
    alone = len(report.analysis.contrasts) == 1 and bool(report.summary)
    return {"Endings in numbers", *(("Contrasts in numbers",) if alone else ())}


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


@dataclass(frozen=True)
class EmbeddedPairs:
    """Trials side by side, of the `differing` pairs of the declared contrast. `style`: what their parts need."""

    shown: Sequence[Element]
    differing: int
    style: str


def _pairs(pairs: EmbeddedPairs | None) -> Node:
    if pairs is None or not pairs.shown:
        return None
    words = (
        f"{len(pairs.shown):,} of {plural(pairs.differing, 'pair')} in which one passed and the other did not, "
        "A under the treatment and B under the control: as many as this file has room for. "
        "`trialfleet view` shows all."
    )
    return fold("pairs", "Where do the two differ?", h("p", words, class_="muted"), list(pairs.shown))


def to_html(report: Report, pairs: EmbeddedPairs | None = None) -> str:
    """Self-contained: one file that opens without network. Same report, same bytes."""
    questions: Sequence[Node] = (
        _contrast(report),
        *(_drawn(found, report) for found in sections(report)),
        trials(report),
        _pairs(pairs),
        _methods(report),
        fold("words", "What do the words mean?", list_words()),
    )
    body = (
        h("a", "Skip to the result", href="#answer", class_="skip"),
        h("button", "Dark", id="theme", type="button", hidden="", aria_label="Switch between light and dark"),
        heading(report),
        h("main", first_screen(report), h("div", questions, class_="questions")),
    )
    title = f"{report.title} · trialfleet report"
    style = asset("style.css") + (pairs.style if pairs else "")
    return page(
        title=title, style=style, script=asset("theme.js") + asset("script.js") + asset("save.js"), body=body
    )


def _drawn(found: ReportSection, report: Report) -> Element | None:
    """A section of its drawing and its tables; None without either."""
    drawing = DRAWN.get(found.anchor, partial(drawing_of_design, found))(report)
    if drawing is None and not found.tables:
        return None
    lead = h("p", found.lead, class_="muted") if found.lead else None
    repeated = list_repeated(report)
    tables = [one for one in found.tables if one.title not in repeated]
    return fold(found.anchor, found.title, lead, drawing, list(all_shown(tables)))


def _methods(report: Report) -> Element:
    found = methods_text(report)
    entries = h("pre", tabindex=0, role="region", aria_label="BibTeX entries", class_="bibtex")
    entries.text = found.entries
    return fold("cite", TITLE, h("p", LEAD, class_="muted"), [h("p", one) for one in found.paragraphs], entries)
