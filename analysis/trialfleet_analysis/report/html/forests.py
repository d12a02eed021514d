"""Rows of name, drawing and value under one scale: contrasts, tasks, scenarios, designs, first edits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from trialfleet_analysis.analysis_plan.power_summary import More
from trialfleet_analysis.analysis_plan.timing import EditTiming
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.forest import Forest, Mark, MarkedRow
from trialfleet_analysis.report.figures.scales import Scale, nice, rates
from trialfleet_analysis.report.findings.reliability import against, design
from trialfleet_analysis.report.html.markup import Node, breakable, h
from trialfleet_analysis.report.html.plots import axis, dots, lengths, parts, row
from trialfleet_designs.document.figures import NOTHING, brief, decimals, percent, quantity

TALL = 30  # rows above which a forest scrolls in its frame


@dataclass(frozen=True)
class ForestRow:
    """`tag`: one word next to the name."""

    name: str
    tag: str | None
    drawing: Element
    value: Element


def forest(
    title: str, rows: Sequence[ForestRow], scale: Scale, caption: str, *, keys: Sequence[tuple[str, str]] = ()
) -> Element:
    """A figure with its legend and its caption."""
    return h("figure", legend(keys), rows_of(title, rows, scale), h("figcaption", caption))


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


def show_forest(found: Forest | None) -> Node:
    """A figure of the report, or nothing."""
    if found is None:
        return None
    rows = [ForestRow(one.name, one.tag, _draw(found, one), lines(*one.values)) for one in found.rows]
    drawn = any(one.marks for one in found.rows)
    return h(
        "figure",
        h("h3", found.title),
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


def designs(report: Report) -> Node:
    found = report.analysis.outlook.more
    known = [
        value for one in found for value in (one.mde_these_tasks, one.mde_tasks_like_these) if value is not None
    ]
    if not known:
        return None
    declared = report.analysis.declared
    aim = abs(declared.effect) if declared and declared.effect is not None else None
    scale = nice(0.0, max([*known, aim or 0.0]), lambda value: decimals(100 * value, 0))
    rows = [
        ForestRow(
            design(one),
            "as run" if n == 0 else against(one, found[0]),
            lengths(scale, (one.mde_these_tasks, one.mde_tasks_like_these), _design_said(one), aim=aim),
            lines(("", _points(one.mde_these_tasks)), ("", _points(one.mde_tasks_like_these))),
        )
        for n, one in enumerate(found)
    ]
    caption = "The least true difference, in points, that each design would detect: shorter is better."
    if aim is not None:
        caption += f" Line: the declared effect, {decimals(100 * aim, 1)} points."
    return forest("What designs would detect", rows, scale, caption, keys=DESIGN_KEYS)


def _points(value: float | None) -> str:
    return "not known, or above 100" if value is None else f"{decimals(100 * value, 1)} points"


def _design_said(one: More) -> str:
    return (
        f"{design(one)}: these tasks {_points(one.mde_these_tasks)}, tasks like these "
        f"{_points(one.mde_tasks_like_these)}"
    )


PHASES = (("phase exploration", "exploration"), ("phase edit", "edit"), ("phase tail", "tail"))


def timing(report: Report) -> Node:
    found = report.analysis.timing.conditions
    return [_first(found), _phases(found)] if found else None


def _first(found: Sequence[EditTiming]) -> Node:
    known = [end for one in found for end in _ends(one) if end is not None]
    if not known:
        return None
    scale = nice(0.0, max(known), lambda tick: brief(tick, "count"))
    rows = [ForestRow(one.condition, None, _drawing(one, scale), _first_value(one)) for one in found]
    caption = (
        "Turn of the first edit: the median over tasks of each task’s median, these tasks, with its interval. A "
        "line to the right end: the limit lies beyond every trial that edited."
    )
    return forest("First edits", rows, scale, caption)


def _ends(one: EditTiming) -> tuple[float | None, ...]:
    return one.first_edit_turn.estimate, one.first_edit_turn.high, one.first_edit_turn.low


def _drawing(one: EditTiming, scale: Scale) -> Element:
    of = one.first_edit_turn
    high = math.inf if of.low is not None and of.high is None else of.high
    label = f"{one.condition}: first edit at turn {quantity(of.estimate, 'count')}, interval {_limits(one)}"
    return row(scale, [Mark("these", of.estimate, of.low, None if high is None else min(high, scale.high))], label)


def _first_value(one: EditTiming) -> Element:
    return lines((quantity(one.first_edit_turn.estimate, "count"), _limits(one)))


def _limits(one: EditTiming) -> str:
    of = one.first_edit_turn
    if of.low is None:
        return NOTHING
    low = quantity(of.low, "count")
    return f"{low} or more" if of.high is None else f"{low} to {quantity(of.high, 'count')}"


def _phases(found: Sequence[EditTiming]) -> Node:
    rows = [
        ForestRow(one.condition, None, parts(_shares(one), _shares_said(one)), lines((_shares_said(one), "")))
        for one in found
        if all(share is not None for share in _shares(one))
    ]
    caption = "Mean share of a trial’s turns in each phase, these tasks, in this order from the left."
    return forest("Exploration, edit, tail", rows, rates(), caption, keys=PHASES) if rows else None


def _shares(one: EditTiming) -> tuple[float | None, ...]:
    return tuple(phase.share.estimate for phase in one.phases)


def _shares_said(one: EditTiming) -> str:
    return " · ".join(percent(share) for share in _shares(one))
