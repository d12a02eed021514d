"""SVG plots from numbers. Positions are per cent of the width: a plot narrows and its text stays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from xml.etree.ElementTree import Element

from trialfleet_analysis.intervals import Interval
from trialfleet_analysis.process import BlockResult
from trialfleet_analysis.report.figures import limits, percent
from trialfleet_analysis.report.html.markup import Node, h

TICKS = (0, 25, 50, 75, 100)


def svg(height: int, label: str, *shapes: Node, class_: str = "") -> Element:
    """A drawing as wide as its place; `label` is what a screen reader says of it."""
    return h("svg", shapes, class_=f"plot {class_}".strip(), height=height, role="img", aria_label=label)


def interval(
    value: Interval, *, band: tuple[float, float] | None = None, height: int = 26, grid: bool = True
) -> Element:
    """Dot and interval of a rate on a scale from 0 to 100%; `band`: bounds, drawn pale behind it."""
    middle = height / 2
    label = f"{percent(value.estimate)}, interval {limits(value)}"
    shapes: list[Node] = [_grid(height) if grid else None]
    if band is not None:
        shapes.append(
            h(
                "rect",
                x=_at(band[0]),
                y=middle - 7,
                width=_at(max(band[1] - band[0], 0)),
                height=14,
                class_="band",
            )
        )
    if value.estimate is None or value.low is None or value.high is None:
        label = value.reason or "undefined"
    else:
        shapes += [
            h("line", x1=_at(value.low), x2=_at(value.high), y1=middle, y2=middle, class_="whisker"),
            h("circle", cx=_at(value.estimate), cy=middle, r=5 if grid else 3.5, class_="dot"),
        ]
    return svg(height, label, *shapes)


def axis() -> Element:
    """The scale below a column of intervals."""
    anchors = {0: "start", 100: "end"}
    ticks = [
        h(
            "text",
            f"{tick}%" if tick == 100 else str(tick),
            x=f"{tick}%",
            y=12,
            text_anchor=anchors.get(tick, "middle"),
        )
        for tick in TICKS
    ]
    return h("svg", ticks, class_="plot axis", height=16, aria_hidden="true")


def bar(parts: Sequence[tuple[str, str, int]]) -> Element:
    """A stacked bar; parts are (class, name, count). Empty parts are left out."""
    total = sum(count for _, _, count in parts)
    shapes: list[Node] = []
    start = 0.0
    for kind, name, count in parts:
        if not count or not total:
            continue
        share = count / total
        title = h("title", f"{name}: {count} of {total}")
        shapes.append(h("rect", title, x=_at(start), y=0, width=_at(share), height=22, class_=f"part {kind}"))
        if share >= 0.08:
            shapes.append(
                h("text", count, x=_at(start + share / 2), y=15.5, text_anchor="middle", class_=f"on {kind}")
            )
        start += share
    label = ", ".join(f"{name} {count}" for _, name, count in parts if count)
    return svg(22, label or "no trials", *shapes, class_="bar")


def blocks(results: Sequence[BlockResult], mean: float | None) -> Element:
    """Pass rate of each launch block, in launch order, with the overall rate as a line."""
    top, height = 16, 150
    rates = [(index, r.passes / r.valid) for index, r in enumerate(results) if r.valid]

    def y(rate: float) -> float:
        return round(top + (1 - rate) * (height - 2 * top), 2)

    def x(index: int) -> str:
        return f"{5 + 95 * (index + 0.5) / max(len(results), 1):.3f}%"

    rules = [h("line", x1="0%", x2="100%", y1=y(tick / 100), y2=y(tick / 100), class_="rule") for tick in TICKS]
    ticks = [
        h("text", f"{tick}%", x="0%", y=y(tick / 100) - 3, class_="tick") for tick in TICKS if tick in (0, 50, 100)
    ]
    level = h("line", x1="0%", x2="100%", y1=y(mean), y2=y(mean), class_="mean") if mean is not None else None
    steps = [h("line", x1=x(a[0]), y1=y(a[1]), x2=x(b[0]), y2=y(b[1]), class_="step") for a, b in pairwise(rates)]
    dots = [
        h(
            "circle",
            h("title", f"block {results[i].block}: {results[i].passes} of {results[i].valid}"),
            cx=x(i),
            cy=y(rate),
            r=4 if len(results) <= 60 else 2,
            class_="dot",
        )
        for i, rate in rates
    ]
    label = f"Pass rate of {len(results)} blocks in launch order; overall {percent(mean)}"
    return svg(height, label, rules, ticks, level, steps, dots)


def _grid(height: int) -> list[Element]:
    return [h("line", x1=f"{tick}%", x2=f"{tick}%", y1=0, y2=height, class_="rule") for tick in TICKS]


def _at(rate: float) -> str:
    return f"{100 * rate:.3f}%"
