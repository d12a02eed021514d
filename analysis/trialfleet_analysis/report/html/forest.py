"""Rows of name, drawing and value under one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import breakable, h
from trialfleet_analysis.report.html.plots.scale import Scale, axis

TALL = 30  # rows above which a forest scrolls in its frame


@dataclass(frozen=True)
class Row:
    """`tag`: one word beside the name."""

    name: str
    tag: str | None
    drawing: Element
    value: Element


def forest(
    title: str, rows: Sequence[Row], scale: Scale, caption: str, *, keys: Sequence[tuple[str, str]] = ()
) -> Element:
    """A figure; on a narrow screen the drawing moves below its name. Long ones scroll in a frame."""
    cells = [
        [
            h("span", breakable(one.name), h("small", one.tag, class_="tag") if one.tag else None, class_="name"),
            one.drawing,
            one.value,
        ]
        for one in rows
    ]
    under = [h("span", class_="side under"), h("div", axis(scale), class_="under"), h("span", class_="side under")]
    grid = h("div", cells, under, class_="forest")
    if len(rows) > TALL:
        grid = h("div", grid, class_="frame tall", tabindex=0, role="region", aria_label=title)
    return h("figure", legend(keys), grid, h("figcaption", caption))


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
