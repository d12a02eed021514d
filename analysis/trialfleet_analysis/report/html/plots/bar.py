"""Lengths: shares of a whole, and what designs would detect."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, h
from trialfleet_analysis.report.html.plots.scale import Scale, grid, rates, svg


def share(part: int, whole: int) -> Element:
    """A thin bar; the number stands beside it."""
    width = f"{100 * part / whole:.2f}%" if whole else "0%"
    track = h("rect", width="100%", height=6, rx=3, class_="track")
    return h(
        "svg",
        track,
        h("rect", width=width, height=6, rx=3, class_="bar"),
        class_="plot",
        height=6,
        aria_hidden="true",
    )


def lengths(scale: Scale, values: tuple[float | None, float | None], label: str, *, aim: float | None) -> Element:
    """Two lengths from 0: these tasks as a full bar, tasks like these as an outlined one; `aim` as a line."""
    height = 34
    shapes: list[Node] = [grid(scale, height)]
    for value, y, kind in zip(values, (5, 19), ("bar", "bar like"), strict=True):
        if value is not None:
            shapes.append(h("rect", y=y, width=scale.at(value), height=10, class_=kind))
    if aim is not None and scale.holds(aim):
        shapes.append(h("line", x1=scale.at(aim), x2=scale.at(aim), y2=height, class_="aim"))
    return svg(height, label, *shapes)


def parts(shares: Sequence[float | None], label: str) -> Element:
    """Shares of one whole, side by side; each kind has its own filling, and a gap before the next."""
    scale, before = rates(), 0.0
    shapes: list[Node] = []
    for share, kind in zip(shares, ("exploration", "edit", "tail"), strict=True):
        if share:
            shapes.append(
                h("rect", x=scale.at(before), y=5, width=scale.at(share), height=14, class_=f"phase {kind}")
            )
        before += share or 0.0
    return svg(24, label, *shapes)
