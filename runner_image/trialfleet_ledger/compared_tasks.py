"""Which tasks a comparison of conditions is made of, by counts alone: report and status read it here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

LEAST, LEAST_SHARE = 3, 0.2  # valid trials of a cell, and of those that ran, below which losses make it thin

Condition = TypeVar("Condition")


def select_compared(
    tasks: Sequence[str],
    conditions: Collection[Condition],
    valid: Callable[[str, Condition], int],
    ran: Callable[[str, Condition], int],
    *,
    keep_thin: bool,
) -> list[str]:
    """The tasks with a valid trial under each of the conditions, without those that losses made thin under one.
    Where every task is thin, or with `keep_thin`, none leaves."""
    some = [task for task in tasks if all(valid(task, name) for name in conditions)]
    thick = [task for task in some if not any(is_thin(valid(task, n), ran(task, n)) for n in conditions)]
    return some if keep_thin or not thick else thick


def is_thin(valid: int, ran: int) -> bool:
    """Whether losses, and nothing else, left a cell too few valid trials of those that ran."""
    wanted = max(LEAST, LEAST_SHARE * ran)
    return valid < wanted <= ran
