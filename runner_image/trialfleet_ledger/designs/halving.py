"""Halving of four treatments: two of them go on after 40% of the blocks. Pure.

It compares conditions, so it is not blind. Every treatment that is left is tested at alpha / 4, as if none had
been left out: leaving some out only removes chances to reject (Thall, Simon & Ellenberg 1988).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal

from trialfleet_ledger.records.base import Count, Frozen, Name, Probability
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Verdict

TREATMENTS = 4


class HalvingCounts(Frozen):
    """Passed and valid trials of a condition in the blocks up to the halving, over the tasks that have a valid
    trial in every condition, and the mean of these tasks' rates; None: there is no such task."""

    condition: Name
    passed: Count
    valid: Count
    rate: Probability | None


class HalvingResult(Frozen):
    """`counts`: of every condition, in the order of the campaign file; `left_out`: those of later blocks."""

    counts: tuple[HalvingCounts, ...]
    left_out: tuple[Name, ...]
    verdict: Literal["continue"] = "continue"


def halving_block(reps: int) -> int:
    """After how many blocks of so many planned `reps` the treatments are halved.

    >>> halving_block(25), halving_block(10), halving_block(3)
    (10, 4, 1)
    """
    return math.floor(0.4 * reps + 0.5)


def left_out(rates: Mapping[str, float | Fraction], *, treatment: str, control: str) -> tuple[str, ...]:
    """The treatments that do not go on: all but the declared one and, of the others, the one with the highest
    rate; of equal ones, the first.

    >>> left_out({"none": 0.9, "a": 0.1, "b": 0.4, "c": 0.4, "d": 0.2}, treatment="a", control="none")
    ('c', 'd')
    """
    others = [name for name in rates if name not in (treatment, control)]
    best = max(others, key=lambda name: rates[name])
    return tuple(name for name in others if name != best)


def halved(
    outcomes: Iterable[Outcome], conditions: Sequence[str], *, treatment: str, control: str
) -> HalvingResult:
    """Which conditions are left out, by their mean pass rates. `conditions`: in the order of the campaign file;
    `outcomes`: of the blocks so far."""
    cells = _compared(outcomes, conditions)
    rates = {name: sum((Fraction(sum(own), len(own)) for own in cells[name]), Fraction()) for name in conditions}
    counts = [
        HalvingCounts(
            condition=name,
            passed=sum(map(sum, own)),
            valid=sum(map(len, own)),
            rate=float(rates[name] / len(own)) if own else None,
        )
        for name, own in cells.items()
    ]
    return HalvingResult(counts=tuple(counts), left_out=left_out(rates, treatment=treatment, control=control))


def _compared(outcomes: Iterable[Outcome], conditions: Sequence[str]) -> dict[str, list[list[bool]]]:
    """Of each condition, which valid trials passed, by task; the tasks that have one in every condition."""
    passed: dict[tuple[str, str], list[bool]] = {}
    for one in outcomes:
        if one.scored is not None:
            cell = one.trial.task, one.trial.condition
            passed.setdefault(cell, []).append(one.scored.verdict is Verdict.PASSED)
    tasks = sorted({task for task, _ in passed})
    compared = [task for task in tasks if all((task, name) in passed for name in conditions)]
    return {name: [passed[task, name] for task in compared] for name in conditions}
