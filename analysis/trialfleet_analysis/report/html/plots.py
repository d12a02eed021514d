"""Drawings as SVG from numbers. Positions are per cent of the width: a drawing narrows and its text stays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from xml.etree.ElementTree import Element

from trialfleet_analysis.process import BlockResult
from trialfleet_analysis.report.figures.forest import MOST_DOTS, Band, Mark, RepDots
from trialfleet_analysis.report.figures.scales import Scale, rates
from trialfleet_analysis.report.html.markup import Node, h


def grid(scale: Scale, height: int, *, zero: float | None = None) -> list[Element]:
    """The marks as fine lines; `zero` as a strong one."""
    lines = [h("line", x1=scale.at(tick), x2=scale.at(tick), y2=height, class_="rule") for tick in scale.ticks]
    if zero is not None and scale.holds(zero):
        lines.append(h("line", x1=scale.at(zero), x2=scale.at(zero), y2=height, class_="zero"))
    return lines


def axis(scale: Scale, *, zero: float | None = None, below: str = "", above: str = "") -> Element:
    """The scale below a column of drawings. `below`, `above`: what lies on either side of `zero`, said where that
    side is wide enough."""
    ticks = [h("text", scale.text(tick), x=scale.at(tick), y=12, text_anchor="middle") for tick in scale.ticks]
    sides: list[Element] = []
    if zero is not None and below:
        at = scale.share(zero)
        left = h("text", f"← {below}", x=scale.at(zero), dx=-8, y=27, text_anchor="end")
        right = h("text", f"{above} →", x=scale.at(zero), dx=8, y=27)
        sides = [text for text, room in ((left, at), (right, 1 - at)) if room >= LEAST_ROOM]
    return h("svg", ticks, sides, class_="plot axis", height=31 if sides else 16, aria_hidden="true")


def svg(height: int, label: str, *shapes: Node, class_: str = "") -> Element:
    """A drawing as wide as its place; `label` is what a screen reader says of it."""
    return h("svg", shapes, class_=f"plot {class_}".strip(), height=height, role="img", aria_label=label)


LEAST_ROOM = 0.1  # of the width, for words at one side of zero
LANE = 16  # pixels from one mark of a row to the next


def row(
    scale: Scale,
    marks: Sequence[Mark],
    label: str,
    *,
    band: Band | None = None,
    zero: float | None = None,
    margins: Sequence[float] = (),
) -> Element:
    """One row: its marks in lanes below each other."""
    height = LANE * len(marks) + 12
    shapes: list[Node] = [grid(scale, height, zero=zero)]
    for end in margins:
        shapes.append(h("line", x1=scale.at(end), x2=scale.at(end), y2=height, class_="aim"))
    if band is not None:
        shapes.append(_band(scale, band, LANE // 2 + 6))
    for lane, mark in enumerate(marks):
        shapes += _mark(scale, mark, LANE * lane + LANE // 2 + 6)
    return svg(height, label, *shapes)


def cell(scale: Scale, mark: Mark) -> Element:
    """A small mark alone: for cells that print its numbers."""
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


STEPS = (12, 9)  # pixels from one dot to the next, where there are at most 20, and where there are more


def dots(rows: Sequence[RepDots], label: str) -> Element:
    """One row of dots a condition; where these are many, a bar of the share that passed."""
    shapes: list[Node] = []
    for lane, one in enumerate(rows):
        y = LANE * lane + LANE // 2
        step = STEPS[len(one.passed) > MOST_DOTS // 2]
        if len(one.passed) <= MOST_DOTS:
            shapes += [_dot(passed, step * n + 5, y) for n, passed in enumerate(one.passed)]
        else:
            shapes += _share_bar(one.passed, y)
    longest = max(len(one.passed) for one in rows)
    if longest > MOST_DOTS:
        return svg(LANE * len(rows), label, *shapes, class_="reps")
    drawn = svg(LANE * len(rows), label, *shapes, class_="reps few")
    drawn.set("width", str(STEPS[longest > MOST_DOTS // 2] * longest))
    return drawn


def _dot(passed: bool | None, x: int, y: int) -> Element:
    if passed is None:
        return h("line", x1=x - 3, x2=x + 3, y1=y, y2=y, class_="lost")
    return h("circle", cx=x, cy=y, r=3.6, class_="rep passed" if passed else "rep")


def _share_bar(passed: Sequence[bool | None], y: int) -> list[Node]:
    valid = [one for one in passed if one is not None]
    width = f"{100 * sum(valid) / len(valid):.2f}%" if valid else "0%"
    bars = (("100%", "track"), (width, "bar"))
    return [h("rect", y=y - 3, width=wide, height=6, rx=3, class_=kind) for wide, kind in bars]


def share(part: int, whole: int) -> Element:
    """A thin bar; its number is printed next to it."""
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


HIGH, GAP = 26, 8  # pixels: of the counts, and of the quartiles below them


def histogram(
    scale: Scale,
    edges: Sequence[float],
    counts: Sequence[int],
    quartiles: tuple[float, float, float] | None,
    label: str,
) -> Element:
    """Shares of a condition's own trials, so that conditions with different numbers of trials can be compared."""
    shapes: list[Node] = [h("line", x2="100%", y1=HIGH, y2=HIGH, class_="rule")]
    if sum(counts):
        shapes.append(_outline(scale, edges, counts))
    if quartiles is not None:
        low, middle, high = (scale.at(value) for value in quartiles)
        y = HIGH + GAP / 2
        shapes += [
            h("line", x1=low, x2=high, y1=y, y2=y, class_="whisker"),
            h("circle", cx=middle, cy=y, r=3.5, class_="dot"),
        ]
    return svg(HIGH + GAP, label, *shapes, class_="spread")


def _outline(scale: Scale, edges: Sequence[float], counts: Sequence[int]) -> Element:
    """One outline, stretched to the width of its place."""
    most = max(counts)
    x = [round(100 * scale.share(edge), 2) for edge in edges]
    y = [round(HIGH * (1 - count / most), 2) for count in counts]
    path = f"M{x[0]:g} {HIGH}" + "".join(f"V{top:g}H{right:g}" for top, right in zip(y, x[1:], strict=True))
    shape = h("path", d=f"{path}V{HIGH}Z", class_="area")
    return h("svg", shape, viewBox=f"0 0 100 {HIGH}", height=HIGH, preserveAspectRatio="none")


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


def blocks(results: Sequence[BlockResult], mean: float | None, label: str) -> Element:
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
    return svg(height, label, rules, level, steps, dots, ticks)
