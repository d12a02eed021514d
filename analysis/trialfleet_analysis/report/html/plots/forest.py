"""Rows of estimates with their intervals on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, h
from trialfleet_analysis.report.html.plots.scale import Scale, grid, svg

LANE = 16  # pixels from one mark of a row to the next


@dataclass(frozen=True)
class Mark:
    """One estimate. `kind`: `these` is a filled dot, `like` a hollow diamond, `plain` a small dot."""

    kind: str
    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Band:
    """A range behind the marks."""

    low: float
    high: float


def row(
    scale: Scale, marks: Sequence[Mark], label: str, *, band: Band | None = None, zero: float | None = None
) -> Element:
    """One row: its marks in lanes below each other."""
    height = LANE * len(marks) + 12
    shapes: list[Node] = [grid(scale, height, zero=zero)]
    if band is not None:
        shapes.append(_band(scale, band, LANE // 2 + 6))
    for lane, mark in enumerate(marks):
        shapes += _mark(scale, mark, LANE * lane + LANE // 2 + 6)
    return svg(height, label, *shapes)


def cell(scale: Scale, mark: Mark) -> Element:
    """A mark alone, small: for places where the words stand beside it."""
    return h("svg", _mark(scale, mark, 5, radius=3.5), class_="plot", height=10, aria_hidden="true")


def _band(scale: Scale, band: Band, y: int) -> Element:
    left, right = scale.share(band.low), scale.share(band.high)
    return h("rect", x=scale.at(band.low), y=y - 6, width=f"{100 * (right - left):.2f}%", height=12, class_="band")


def _mark(scale: Scale, mark: Mark, y: float, *, radius: float = 5) -> list[Node]:
    shapes: list[Node] = []
    if mark.low is not None and mark.high is not None:
        x1, x2 = scale.at(mark.low), scale.at(mark.high)
        shapes.append(h("line", x1=x1, x2=x2, y1=y, y2=y, class_=f"whisker {mark.kind}"))
    if mark.estimate is not None:
        shapes.append(_point(mark.kind, scale.at(mark.estimate), y, radius))
    return shapes


def _point(kind: str, x: str, y: float, radius: float) -> Element:
    if kind == "like":
        diamond = h("path", d="M0-6L6 0L0 6L-6 0Z", class_="dot like")
        return h("svg", diamond, x=x, y=y, overflow="visible")
    return h("circle", cx=x, cy=y, r=radius, class_="dot")
