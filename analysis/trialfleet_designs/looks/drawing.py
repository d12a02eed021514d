"""The looks as a drawing: what was seen against what would have decided."""

from __future__ import annotations

from trialfleet_designs.document.drawing import Drawing, DrawnShape, make_shape
from trialfleet_designs.looks.finding import LookFinding, LooksFinding
from trialfleet_ledger.plurals import plural

HEIGHT, MARGIN = 170, 20  # pixels


def draw_bounds(found: LooksFinding) -> Drawing | None:
    """Passes above those expected, by block; bars are the totals at which a look rejects."""
    if not found.taken:
        return None
    reach = max([1.0, *(abs(value) for one in found.taken for value in _values(one))])

    def x(block: int, beside: float = 0.0) -> str:
        return f"{4 + 92 * block / found.planned[-1] + beside:.2f}%"

    def y(value: float) -> float:
        return round(HEIGHT / 2 - (HEIGHT / 2 - MARGIN) * value / reach, 2)

    taken = {one.blocks for one in found.taken}
    shapes: list[DrawnShape] = [make_shape("line", x2="100%", y1=y(0), y2=y(0), class_="mean")]
    for block in found.planned:
        shapes.append(make_shape("line", x1=x(block), x2=x(block), y1=MARGIN, y2=HEIGHT - MARGIN, class_="rule"))
        shapes.append(
            make_shape(
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
                shapes.append(
                    make_shape("line", x1=x(one.blocks, -2), x2=x(one.blocks, 2), y1=at, y2=at, class_="whisker")
                )
        shapes.append(
            make_shape("line", x1=x(before[0]), y1=y(before[1]), x2=x(one.blocks), y2=y(seen), class_="step")
        )
        shapes.append(make_shape("circle", cx=x(one.blocks), cy=y(seen), r=4, class_="dot"))
        before = (one.blocks, seen)
    label = f"{plural(len(found.taken), 'look')}: passes of the treatment above those expected, and the bounds"
    rows = tuple((one.blocks, one.total, one.mean, one.lower, one.upper) for one in found.taken)
    return Drawing(HEIGHT, label, tuple(shapes), ("blocks", "passes", "expected", "lower", "upper"), rows)


def _values(one: LookFinding) -> list[float]:
    return [value - one.mean for value in (one.total, one.lower, one.upper) if value is not None]
