"""Shares over time, and rates over blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from xml.etree.ElementTree import Element

from trialfleet_analysis.process import BlockResult
from trialfleet_analysis.report.figures import percent
from trialfleet_analysis.report.html.markup import Node, h
from trialfleet_analysis.report.html.plots.scale import svg

TALL = 72


def incidence(at: Sequence[float], passed: Sequence[float], behind: Sequence[float] | None, label: str) -> Element:
    """One condition's curve from 0 to 100% of its height; `behind`: another one's, for comparison."""
    last = at[-1]
    x = [100 * time / last for time in at]
    lines: list[Node] = [h("path", d=f"M0 {y}H100", class_="rule") for y in (0.5, TALL / 2, TALL - 0.5)]
    if behind is not None:
        lines.append(h("path", d=_steps(x, behind), class_="behind"))
    lines.append(h("path", d=_steps(x, passed), class_="curve"))
    return h(
        "svg",
        lines,
        class_="plot",
        viewBox=f"0 0 100 {TALL}",
        height=TALL,
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def _steps(x: Sequence[float], shares: Sequence[float]) -> str:
    points = zip(x, shares, strict=True)
    return f"M0 {TALL - 0.5}" + "".join(f"L{at:.4g} {(TALL - 1) * (1 - share) + 0.5:.4g}" for at, share in points)


def blocks(results: Sequence[BlockResult], mean: float | None) -> Element:
    """Pass rate of each launch block, in launch order, with the overall rate as a line."""
    top, height = 16, 150
    rates = [(index, r.passes / r.valid) for index, r in enumerate(results) if r.valid]

    def y(rate: float) -> float:
        return round(top + (1 - rate) * (height - 2 * top), 2)

    def x(index: int) -> str:
        return f"{5 + 95 * (index + 0.5) / max(len(results), 1):.2f}%"

    rules = [h("line", x2="100%", y1=y(tick), y2=y(tick), class_="rule") for tick in (0, 0.25, 0.5, 0.75, 1)]
    ticks = [h("text", f"{100 * tick:.0f}%", y=y(tick) - 3, class_="tick") for tick in (0, 0.5, 1)]
    level = h("line", x2="100%", y1=y(mean), y2=y(mean), class_="mean") if mean is not None else None
    steps = [h("line", x1=x(a[0]), y1=y(a[1]), x2=x(b[0]), y2=y(b[1]), class_="step") for a, b in pairwise(rates)]
    radius = 4 if len(results) <= 60 else 2
    dots = [h("circle", cx=x(i), cy=y(rate), r=radius, class_="dot") for i, rate in rates]
    label = f"Pass rate of {len(results)} blocks in launch order; overall {percent(mean)}"
    return svg(height, label, rules, level, steps, dots, ticks)
