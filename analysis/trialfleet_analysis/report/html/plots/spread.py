"""How values spread: counts per bin, with the quartiles below."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, h
from trialfleet_analysis.report.html.plots.scale import Scale, svg

TALL, GAP = 26, 8  # pixels: of the counts, and of the quartiles below them


def histogram(
    scale: Scale,
    edges: Sequence[float],
    counts: Sequence[int],
    quartiles: tuple[float, float, float] | None,
    label: str,
) -> Element:
    """Shares of its own trials: conditions with unequally many trials stay comparable."""
    shapes: list[Node] = [h("line", x2="100%", y1=TALL, y2=TALL, class_="rule")]
    if sum(counts):
        shapes.append(_steps(scale, edges, counts))
    if quartiles is not None:
        low, middle, high = (scale.at(value) for value in quartiles)
        y = TALL + GAP / 2
        shapes += [
            h("line", x1=low, x2=high, y1=y, y2=y, class_="whisker"),
            h("circle", cx=middle, cy=y, r=3.5, class_="dot"),
        ]
    return svg(TALL + GAP, label, *shapes, class_="spread")


def _steps(scale: Scale, edges: Sequence[float], counts: Sequence[int]) -> Element:
    """One outline, stretched to the width of its place."""
    most = max(counts)
    x = [round(100 * scale.share(edge), 2) for edge in edges]
    y = [round(TALL * (1 - count / most), 2) for count in counts]
    path = f"M{x[0]:g} {TALL}" + "".join(f"V{top:g}H{right:g}" for top, right in zip(y, x[1:], strict=True))
    shape = h("path", d=f"{path}V{TALL}Z", class_="area")
    return h("svg", shape, viewBox=f"0 0 100 {TALL}", height=TALL, preserveAspectRatio="none")
