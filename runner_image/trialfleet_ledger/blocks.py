"""Blocks of a campaign: how many each cell is part of, and how many are complete, in the definition that the
controller, status and reports share. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from trialfleet_ledger.records.verdicts import LossClass

CellName = tuple[str, str]  # task, condition
Ended = tuple[str, str, int, str | None]  # task, condition, block, why it was abandoned (None: measured)


@dataclass(frozen=True)
class PlannedReps:
    """How many reps a campaign's cells get: `most`, or fewer for the tasks in `dropped` and the conditions in
    `halved`, which a declared look, or the halving, has left out of all later blocks. A block holds one rep of
    every cell.

    >>> planned = PlannedReps(25, {"easy": 5}, {"b": 10})
    >>> planned.of(("easy", "b")), planned.of(("hard", "b")), planned.trials([("easy", "a"), ("hard", "a")])
    (5, 10, 30)
    """

    most: int
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    halved: Mapping[str, int] = field(default_factory=dict[str, int])

    def of(self, cell: CellName) -> int:
        task, condition = cell
        return min(self.most, self.dropped.get(task, self.most), self.halved.get(condition, self.most))

    def includes(self, cell: CellName, block: int) -> bool:
        """Whether the cell has a trial in `block`, which counts from 0."""
        return block < self.of(cell)

    def trials(self, cells: Iterable[CellName]) -> int:
        """The planned trials of these cells."""
        return sum(map(self.of, cells))


def complete_blocks(
    cells: Iterable[CellName], ended: Iterable[Ended], planned: PlannedReps, *, halted: Collection[CellName] = ()
) -> int:
    """Length of the longest prefix of blocks in which every cell's trial has ended.

    Rates of early finishers alone would favour quick trials. For the same reason a trial that was cancelled while
    it ran does not count as ended: the trials that run at a cancellation are the slow ones. Cells in `halted` are
    excluded from every block (`amendments.select_halted_cells`); a cell from the blocks that it is not part of.

    >>> cells = [("t", "a"), ("t", "b")]
    >>> complete_blocks(cells, [("t", "a", 0, None), ("t", "b", 0, "evicted")], PlannedReps(5))
    1
    >>> complete_blocks(cells, [("t", "a", 0, None), ("t", "b", 0, "cancelled")], PlannedReps(5))
    0
    """
    wanted = set(cells) - set(halted)
    if not wanted:
        return 0
    done: defaultdict[int, set[CellName]] = defaultdict(set)
    for task, condition, block, abandoned in ended:
        if abandoned != LossClass.CANCELLED:
            done[block].add((task, condition))

    def lacks(block: int) -> bool:
        return any(cell not in done[block] for cell in wanted if planned.includes(cell, block))

    return next(filter(lacks, range(planned.most)), planned.most)
