"""Blocks of a campaign: how many each cell is part of, and how many are complete, in the definition that the
controller, status and reports share. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from trialfleet_ledger.records.verdicts import LossClass

CellName = tuple[str, str]  # task, condition
Ended = tuple[str, str, int, str | None]  # task, condition, block, why it was abandoned (None: measured)


@dataclass(frozen=True)
class PlannedReps:
    """How many reps a campaign's cells get: `most`, or fewer for the tasks in `dropped` and the conditions in
    `halved`, which a declared look, or the halving, has left out of all later blocks. `undecided`: conditions of
    which a coming halving leaves out all but one, after so many blocks; until then each of them is planned. A
    block holds one rep of every cell.

    >>> planned = PlannedReps(25, {"easy": 5}, {"b": 10})
    >>> planned.of(("easy", "b")), planned.of(("hard", "b")), planned.trials([("easy", "a"), ("hard", "a")])
    (5, 10, 30)
    >>> planned, cells = PlannedReps(5, undecided={"b": 2, "c": 2}), [("t", "a"), ("t", "b"), ("t", "c")]
    >>> [planned.of(cell) for cell in cells], planned.left_out(cells), planned.trials(cells)
    ([5, 5, 5], 3, 12)
    """

    most: int
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    halved: Mapping[str, int] = field(default_factory=dict[str, int])
    undecided: Mapping[str, int] = field(default_factory=dict[str, int])

    def of(self, cell: CellName) -> int:
        task, condition = cell
        return min(self.most, self.dropped.get(task, self.most), self.halved.get(condition, self.most))

    def includes(self, cell: CellName, block: int) -> bool:
        """Whether the cell has a trial in `block`, which counts from 0."""
        return block < self.of(cell)

    def left_out(self, cells: Iterable[CellName]) -> int:
        """Trials of these cells that the coming halving leaves out, whichever conditions it chooses."""
        later: Counter[str] = Counter()
        for cell in cells:
            if cell[1] in self.undecided:
                later[cell[1]] += self.of(cell) - self.undecided[cell[1]]
        return later.total() - max(later.values(), default=0)

    def trials(self, cells: Collection[CellName]) -> int:
        """The planned trials of these cells, without those that are `left_out`."""
        return sum(map(self.of, cells)) - self.left_out(cells)

    def mean_of(self, cell: CellName) -> float:
        """As `of`, with every condition that is undecided as likely as the others to go on."""
        whole, first = self.of(cell), self.undecided.get(cell[1])
        return whole if first is None else first + (whole - first) / len(self.undecided)


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
