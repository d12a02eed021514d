"""What became of each task × block under a condition, and how bets on two conditions are settled by it."""

from __future__ import annotations

import numpy as np

from trialfleet_designs.comparison.columns import Columns, Scheme
from trialfleet_statistics.estimates import Bools, Integers
from trialfleet_statistics.sequential import BettingStages, betting_stages

ABSENT, LOST, FAILED, PASSED = range(4)


def outcomes_by_block(columns: Columns, condition: int, tasks: Bools) -> Integers:
    """What became of each task × block under a condition, shape (tasks, blocks)."""
    found = np.full((tasks.size, int(columns.block.max(initial=-1)) + 1), ABSENT)
    mine = (columns.condition == condition) & tasks[columns.task]
    became = np.where(columns.valid, np.where(columns.passed, PASSED, FAILED), LOST)
    found[columns.task[mine], columns.block[mine]] = became[mine]
    return found


def stages_of_pair(
    scheme: Scheme, columns: Columns, a: int, b: int, *, among: Bools | None = None
) -> BettingStages:
    """How bets on two conditions, by position, are settled: over all tasks, as long as losses leave them pairs, or
    over just those `among`."""
    tasks = np.ones(len(scheme.tasks), dtype=np.bool_) if among is None else among
    of_a, of_b = (outcomes_by_block(columns, condition, tasks)[tasks] for condition in (a, b))
    complete = (of_a >= FAILED) & (of_b >= FAILED)
    margins = np.where(complete, (of_a == PASSED).astype(float) - (of_b == PASSED), np.nan)
    return betting_stages(margins, planned=scheme.planned_reps, may_leave=among is None)
