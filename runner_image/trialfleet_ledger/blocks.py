"""Counts complete blocks, in the definition that status and report share. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from trialfleet_ledger.records.verdicts import LossClass

CellName = tuple[str, str]  # task, condition
Ended = tuple[str, str, int, str | None]  # task, condition, block, why it was abandoned (None: measured)


def complete_blocks(
    cells: Iterable[CellName], ended: Iterable[Ended], reps: int, *, halted: Collection[str] = ()
) -> int:
    """Length of the longest prefix of blocks in which every cell's trial has ended.

    Rates of early finishers alone would favour quick trials. For the same reason a trial that was cancelled while
    it ran does not count as ended: the trials that run at a cancellation are the slow ones. Tasks in `halted` are
    excluded from every block, in all conditions.

    >>> complete_blocks([("t", "a"), ("t", "b")], [("t", "a", 0, None), ("t", "b", 0, "evicted")], 5)
    1
    >>> complete_blocks([("t", "a"), ("t", "b")], [("t", "a", 0, None), ("t", "b", 0, "cancelled")], 5)
    0
    """
    wanted = {cell for cell in cells if cell[0] not in halted}
    if not wanted:
        return 0
    done: defaultdict[int, set[CellName]] = defaultdict(set)
    for task, condition, block, abandoned in ended:
        if abandoned != LossClass.CANCELLED:
            done[block].add((task, condition))
    return next((block for block in range(reps) if not wanted <= done[block]), reps)
