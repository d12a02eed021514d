"""Which tasks a comparison of conditions is made of, by counts alone: report and status read it here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

LEAST, LEAST_SHARE = 3, 0.2  # valid trials of a cell, and of those that ran, below which losses make it thin

CellCount = Callable[[str, str], int]  # by task and condition


def select_compared(
    tasks: Sequence[str],
    conditions: Collection[str],
    valid: CellCount,
    ran: CellCount,
    *,
    keep_thin: bool,
) -> list[str]:
    """The tasks with a valid trial under each of the conditions, without those that losses made thin under one.
    Where every task is thin, or with `keep_thin`, none leaves."""
    some = [task for task in tasks if all(valid(task, name) for name in conditions)]
    thick = [task for task in some if not any(_is_thin(valid(task, n), ran(task, n)) for n in conditions)]
    return some if keep_thin or not thick else thick


def _is_thin(valid: int, ran: int) -> bool:
    wanted = max(LEAST, LEAST_SHARE * ran)
    return valid < wanted <= ran
