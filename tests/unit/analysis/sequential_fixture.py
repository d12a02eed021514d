"""The group-sequential test once more, with rational numbers and nothing shared: what the product must agree
with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

Row = tuple[int, int, int, int]  # passes a, valid a, passes b, valid b
Chances = dict[int, Fraction]


@dataclass(frozen=True)
class RationalLook:
    p_up: Fraction
    p_down: Fraction
    spent_up: Fraction
    spent_down: Fraction
    total: int


def rational_looks(stages: Sequence[Sequence[Row]], levels: Sequence[float], *, midp: bool) -> list[RationalLook]:
    """Each look's tails, every pass weighing 1; `levels`: per side and look. Goes on after a crossing."""
    own_share = Fraction(1, 2) if midp else Fraction(1)
    going: Chances = {0: Fraction(1)}
    up_spent = down_spent = Fraction(0)
    total = 0
    found: list[RationalLook] = []
    for rows, level in zip(stages, levels, strict=False):
        for row in rows:
            going = _added(going, row)
            total += row[0]
        up = {s: up_spent + _above(going, s) + own_share * own for s, own in going.items()}
        down = {s: down_spent + _below(going, s) + own_share * own for s, own in going.items()}
        most = Fraction(level) * (1 + Fraction(1, 10**7))
        for_a, for_b = {s for s in going if up[s] <= most}, {s for s in going if down[s] <= most}
        up_spent += sum((going[s] for s in for_a), Fraction(0))
        down_spent += sum((going[s] for s in for_b), Fraction(0))
        found.append(RationalLook(up.get(total, _far()), down.get(total, _far()), up_spent, down_spent, total))
        going = {s: own for s, own in going.items() if s not in for_a | for_b}
    return found


def _far() -> Fraction:
    """Of a sum that an earlier look had stopped."""
    return Fraction(-1)


def _added(going: Chances, row: Row) -> Chances:
    x_a, n_a, x_b, n_b = row
    passes, found = x_a + x_b, dict[int, Fraction]()
    whole = comb(n_a + n_b, passes)
    for x in range(max(0, passes - n_b), min(n_a, passes) + 1):
        chance = Fraction(comb(n_a, x) * comb(n_b, passes - x), whole)
        for s, before in going.items():
            found[s + x] = found.get(s + x, Fraction(0)) + before * chance
    return found


def _above(going: Chances, at: int) -> Fraction:
    return sum((own for s, own in going.items() if s > at), Fraction(0))


def _below(going: Chances, at: int) -> Fraction:
    return sum((own for s, own in going.items() if s < at), Fraction(0))
