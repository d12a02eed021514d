"""What a comparison of conditions is made of: contrast, bets, trend and the tables of rates read it here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from trialfleet_ledger import compared_tasks
from trialfleet_statistics.estimates import Bools, Integers


@dataclass(frozen=True)
class ComparedTasks:
    """The tasks of a comparison, by name: `tasks`, over which it is made, each weighing the same; `thin`: left out
    in all of its conditions, since losses left one of these too few valid trials; `empty`: without any under one
    of them. No other condition bears on it."""

    tasks: tuple[str, ...]
    thin: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    def restrict_to(self, names: Collection[str]) -> ComparedTasks:
        """Without the tasks that are not among the `names`: losses have left these thin."""
        gone = tuple(task for task in self.tasks if task not in names)
        kept = tuple(task for task in self.tasks if task in names)
        return ComparedTasks(kept, (*self.thin, *gone), self.empty)

    def mask_among(self, names: Sequence[str]) -> Bools:
        """Which of the `names` it is made of."""
        return mask_of(self.tasks, names)


def mask_of(some: Collection[str], names: Sequence[str]) -> Bools:
    chosen = frozenset(some)
    return np.array([name in chosen for name in names], dtype=np.bool_)


def compare_tasks(
    names: Sequence[str], valid: Integers, trials: Integers, *, keep_thin: bool = False
) -> ComparedTasks:
    """Of the conditions that are compared, shape (tasks, conditions) each: valid trials, and all that ended.

    The rule is the ledger's (`compared_tasks`). None of this depends on results.

    >>> found = compare_tasks(["a", "b", "c"], np.array([[5, 5], [2, 5], [0, 5]]), np.full((3, 2), 5))
    >>> found.tasks, found.thin, found.empty
    (('a',), ('b',), ('c',))
    """
    row = {name: at for at, name in enumerate(names)}
    kept = compared_tasks.select_compared(
        names,
        range(valid.shape[1]),
        lambda task, condition: int(valid[row[task], condition]),
        lambda task, condition: int(trials[row[task], condition]),
        keep_thin=keep_thin,
    )
    empty = tuple(name for name in names if not valid[row[name]].all())
    chosen = frozenset((*kept, *empty))
    return ComparedTasks(tuple(kept), tuple(name for name in names if name not in chosen), empty)
