"""The looks as a drawing: what was seen against what would have decided."""

from __future__ import annotations

import math
from itertools import pairwise
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.html.markup import Node, h
from trialfleet_analysis.report.html.plots import svg
from trialfleet_designs.anytime.finding import AnytimeFinding
from trialfleet_designs.looks.finding import LookFinding
from trialfleet_ledger.plurals import plural

HEIGHT, MARGIN = 170, 20  # pixels


def boundary(report: Report) -> Element | None:
    """Passes above those expected, by block; bars are the totals at which a look rejects."""
    if report.analysis.anytime is not None and report.analysis.declared is not None:
        return wealth(report.analysis.anytime, report.analysis.declared.alpha)
    found = report.analysis.looks
    if found is None or not found.taken:
        return None
    reach = max([1.0, *(abs(value) for one in found.taken for value in _values(one))])

    def x(block: int, beside: float = 0.0) -> str:
        return f"{4 + 92 * block / found.planned[-1] + beside:.2f}%"

    def y(value: float) -> float:
        return round(HEIGHT / 2 - (HEIGHT / 2 - MARGIN) * value / reach, 2)

    taken = {one.blocks for one in found.taken}
    shapes: list[Node] = [h("line", x2="100%", y1=y(0), y2=y(0), class_="mean")]
    for block in found.planned:
        shapes.append(h("line", x1=x(block), x2=x(block), y1=MARGIN, y2=HEIGHT - MARGIN, class_="rule"))
        shapes.append(
            h(
                "text",
                f"{block}{'' if block in taken else ' (not taken)'}",
                x=x(block),
                y=HEIGHT - 4,
                class_="tick",
            )
        )
    before = (0, 0.0)
    for one in found.taken:
        seen = one.total - one.mean
        for bound in (one.lower, one.upper):
            if bound is not None:
                at = y(bound - one.mean)
                shapes.append(h("line", x1=x(one.blocks, -2), x2=x(one.blocks, 2), y1=at, y2=at, class_="whisker"))
        shapes.append(h("line", x1=x(before[0]), y1=y(before[1]), x2=x(one.blocks), y2=y(seen), class_="step"))
        shapes.append(h("circle", cx=x(one.blocks), cy=y(seen), r=4, class_="dot"))
        before = (one.blocks, seen)
    label = f"{plural(len(found.taken), 'look')}: passes of the treatment above those expected, and the bounds"
    return svg(HEIGHT, label, *shapes)


def _values(one: LookFinding) -> list[float]:
    return [value - one.mean for value in (one.total, one.lower, one.upper) if value is not None]


def wealth(found: AnytimeFinding, alpha: float) -> Element | None:
    """The logarithm of what the bets have won, by block, and the line that decides."""
    if not found.taken:
        return None
    line, last, values = math.log(1 / alpha), found.taken[-1].blocks, [0.0, *(o.log_evidence for o in found.taken)]
    low, high = min(values), max(line, *values)

    def x(block: int) -> str:
        return f"{4 + 92 * block / last:.2f}%"

    def y(value: float) -> float:
        return round(MARGIN + (HEIGHT - 2 * MARGIN) * (high - value) / (high - low), 2)

    shapes: list[Node] = [
        h("line", x2="100%", y1=y(0), y2=y(0), class_="mean"),
        h("line", x2="100%", y1=y(line), y2=y(line), class_="whisker"),
        h("text", f"decides: E {1 / alpha:g}", x="4%", y=y(line) - 4, class_="tick"),
        h("circle", cx=x(last), cy=y(values[-1]), r=4, class_="dot"),
        h("text", f"after block {last}", x=x(last), y=HEIGHT - 4, class_="tick"),
    ]
    for block, (before, after) in enumerate(pairwise(values), start=1):
        shapes.append(h("line", x1=x(block - 1), y1=y(before), x2=x(block), y2=y(after), class_="step"))
    return svg(HEIGHT, f"what the bets have won after each of {plural(last, 'block')}, on a log scale", *shapes)
