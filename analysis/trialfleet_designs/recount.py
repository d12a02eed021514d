"""What the looks of a campaign counted, counted again: bundles are quarantined, records are found edited, and
tasks are halted after a look has decided. Such data stay in the record of the decision, and in no answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trialfleet_designs.comparison.columns import Columns, Scheme
from trialfleet_ledger.designs.looks import Decision, StageCounts
from trialfleet_statistics.estimates import Bools


@dataclass(frozen=True)
class Recount:
    """`decisions`: as recorded, but for their stages, which hold the counts of today. `withdrawn`: trials that
    looks counted and that no longer count as they did."""

    decisions: tuple[Decision, ...]
    withdrawn: int


def recount_looks(scheme: Scheme, columns: Columns) -> Recount:
    """`columns`: of all primary tasks that are not halted. Tasks that a stage does not hold are not added to it.
    What the halving counted stays as it is."""
    schedule = None if scheme.declaration is None else scheme.declaration.schedule
    if schedule is None or not schedule.compares_by_stage:
        return Recount(scheme.decisions, 0)
    counted: list[Decision] = []
    withdrawn = first = 0
    for decision in scheme.decisions:
        here = (columns.block >= first) & (columns.block < decision.blocks)
        stage = tuple(_count_again(decision, scheme, columns, here))
        withdrawn += _count_withdrawn(decision.stage, stage)
        counted.append(decision.model_copy(update={"stage": stage}))
        first = decision.blocks
    return Recount(tuple(counted), withdrawn)


def _count_again(decision: Decision, scheme: Scheme, columns: Columns, here: Bools) -> Iterator[StageCounts]:
    """The tasks of a stage that are still compared. `here`: the trials of its blocks."""
    assert scheme.declaration is not None, "looks are taken at a declared result"
    a, b = (scheme.conditions.index(name) for name in scheme.declaration.sides.values())
    valid, places = here & columns.valid, {task: place for place, task in enumerate(scheme.tasks)}
    for task in (one.task for one in decision.stage if one.task in places):
        of_task = valid & (columns.task == places[task])
        of_a, of_b = of_task & (columns.condition == a), of_task & (columns.condition == b)
        yield StageCounts(
            task=task,
            treatment_passed=int(np.sum(of_a & columns.passed)),
            treatment_valid=int(of_a.sum()),
            control_passed=int(np.sum(of_b & columns.passed)),
            control_valid=int(of_b.sum()),
        )


def _count_withdrawn(recorded: tuple[StageCounts, ...], today: tuple[StageCounts, ...]) -> int:
    left = {one.task: one for one in today}
    return sum(_lost_trials(one, left.get(one.task)) for one in recorded)


def _lost_trials(then: StageCounts, now: StageCounts | None) -> int:
    if now is None:
        return then.treatment_valid + then.control_valid
    return max(
        then.treatment_valid - now.treatment_valid, abs(then.treatment_passed - now.treatment_passed)
    ) + max(then.control_valid - now.control_valid, abs(then.control_passed - now.control_passed))
