"""Rows of name, drawing and value under one scale: contrasts, tasks, scenarios, designs, first edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.forest import Forest, MarkedRow
from trialfleet_analysis.report.figures.planned_sizes import DetectableFigure, find_detectable
from trialfleet_analysis.report.figures.scales import Scale
from trialfleet_analysis.report.figures.timing import PHASES, PhaseFigure, find_first_edits, find_phases
from trialfleet_analysis.report.html.markup import Node, breakable, h
from trialfleet_analysis.report.html.plots import axis, dots, lengths, parts, row

TALL = 30  # rows above which a forest scrolls in its frame


@dataclass(frozen=True)
class ForestRow:
    """`tag`: one word next to the name."""

    name: str
    tag: str | None
    drawing: Element
    value: Element


def forest(
    found: PhaseFigure | DetectableFigure, rows: Sequence[ForestRow], *, keys: Sequence[tuple[str, str]]
) -> Element:
    """A figure with its legend and its caption."""
    return h(
        "figure",
        legend(keys),
        rows_of(found.title, rows, found.scale),
        h("figcaption", found.caption),
        id=f"figure-{found.anchor}",
    )


def rows_of(
    title: str,
    rows: Sequence[ForestRow],
    scale: Scale | None,
    *,
    zero: float | None = None,
    below: str = "",
    above: str = "",
) -> Element:
    """On a narrow screen the drawing moves below its name. Long ones scroll in a frame. `scale` None: no axis;
    `below`, `above`: what lies on either side of `zero`."""
    cells = [
        [
            h("span", breakable(one.name), h("small", one.tag, class_="tag") if one.tag else None, class_="name"),
            one.drawing,
            one.value,
        ]
        for one in rows
    ]
    under: list[Node] = []
    if scale is not None:
        middle = h("div", axis(scale, zero=zero, below=below, above=above), class_="under")
        under = [h("span", class_="side under"), middle, h("span", class_="side under")]
    grid = h("div", cells, under, class_="forest")
    if len(rows) > TALL:
        grid = h("div", grid, class_="frame tall", tabindex=0, role="region", aria_label=title)
    return grid


def legend(keys: Sequence[tuple[str, str]]) -> Element | None:
    """What the marks stand for: shapes, not colours alone."""
    if not keys:
        return None
    return h("div", [h("span", h("i", class_=f"key {kind}"), name) for kind, name in keys], class_="legend")


def lines(*pairs: tuple[str, str]) -> Element:
    """One line per mark of the row: the estimate, and what belongs to it."""
    return h(
        "span",
        [h("span", h("b", one), " ", h("span", other, class_="muted")) for one, other in pairs],
        class_="value",
    )


def show_forest(found: Forest | None, *, titled: bool = True) -> Node:
    """A figure of the report, or nothing."""
    if found is None:
        return None
    rows = [ForestRow(one.name, one.tag, _draw(found, one), lines(*one.values)) for one in found.rows]
    drawn = any(one.marks for one in found.rows)
    return h(
        "figure",
        h("h3", found.title) if titled else None,
        legend(found.keys),
        rows_of(
            found.title,
            rows,
            found.scale if drawn else None,
            zero=found.zero,
            below=found.below,
            above=found.above,
        ),
        h("figcaption", found.caption) if found.caption else None,
        id=f"figure-{found.anchor}",
    )


def _draw(found: Forest, one: MarkedRow) -> Element:
    if one.dots:
        return dots(one.dots, one.said)
    return row(found.scale, one.marks, one.said, band=one.band, zero=found.zero, margins=found.margins)


DESIGN_KEYS = (("bar", "these tasks"), ("bar like", "tasks like these"))


def show_detectable(report: Report) -> Node:
    found = find_detectable(report)
    if found is None:
        return None
    rows = [
        ForestRow(
            one.name,
            one.tag,
            lengths(found.scale, one.lengths, one.said, aim=found.aim),
            lines(*(("", value) for value in one.values)),
        )
        for one in found.rows
    ]
    return forest(found, rows, keys=DESIGN_KEYS)


PHASE_KEYS = tuple((f"phase {name}", name) for name in PHASES)


def show_timing(report: Report) -> Node:
    first, phases = find_first_edits(report), find_phases(report)
    return [show_forest(first, titled=False), _show_phases(phases)] if first or phases else None


def _show_phases(found: PhaseFigure | None) -> Node:
    if found is None:
        return None
    rows = [ForestRow(one.name, None, parts(one.shares, one.said), lines((one.said, ""))) for one in found.rows]
    return forest(found, rows, keys=PHASE_KEYS)
