"""What bets have won, as a drawing."""

from __future__ import annotations

import math
from itertools import pairwise

from trialfleet_designs.anytime.finding import AnytimeFinding
from trialfleet_designs.document.drawing import Drawing, DrawnShape, make_shape
from trialfleet_ledger.plurals import plural

HEIGHT, MARGIN = 170, 20  # pixels


def draw_wealth(found: AnytimeFinding, alpha: float) -> Drawing | None:
    """The logarithm of what the bets have won, by block, and the line that decides."""
    if not found.taken:
        return None
    line, last, values = math.log(1 / alpha), found.taken[-1].blocks, [0.0, *(o.log_evidence for o in found.taken)]
    low, high = min(values), max(line, *values)

    def x(block: int) -> str:
        return f"{4 + 92 * block / last:.2f}%"

    def y(value: float) -> float:
        return round(MARGIN + (HEIGHT - 2 * MARGIN) * (high - value) / (high - low), 2)

    shapes: list[DrawnShape] = [
        make_shape("line", x2="100%", y1=y(0), y2=y(0), class_="mean"),
        make_shape("line", x2="100%", y1=y(line), y2=y(line), class_="whisker"),
        make_shape("text", f"decides: E {1 / alpha:g}", x="4%", y=y(line) - 4, class_="tick"),
        make_shape("circle", cx=x(last), cy=y(values[-1]), r=4, class_="dot"),
        make_shape("text", f"after block {last}", x=x(last), y=HEIGHT - 4, class_="tick"),
    ]
    for block, (before, after) in enumerate(pairwise(values), start=1):
        shapes.append(make_shape("line", x1=x(block - 1), y1=y(before), x2=x(block), y2=y(after), class_="step"))
    return Drawing(
        HEIGHT,
        f"what the bets have won after each of {plural(last, 'block')}, on a log scale",
        tuple(shapes),
        ("blocks", "log_evidence", "decides_at"),
        tuple((one.blocks, one.log_evidence, line) for one in found.taken),
    )
