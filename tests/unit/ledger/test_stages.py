"""How far a lost attempt had come, and how many blocks are complete."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import records
from trialfleet_ledger.blocks import Ended, PlannedReps, complete_blocks
from trialfleet_ledger.records.attempt import End
from trialfleet_ledger.records.verdicts import Loss, LossClass
from trialfleet_ledger.stage_reached import Stage, stage


def end(loss: Loss | None, by: Literal["runner", "controller"] = "runner") -> End:
    return records.end(loss or records.scored(), by=by)


fresh = Loss(loss=LossClass.EVICTED, message="", agent_started=False)
started = Loss(loss=LossClass.EVICTED, message="", agent_started=True)
with_patch = Loss(loss=LossClass.EVICTED, message="", agent_started=True, patched=True)


@pytest.mark.parametrize(
    ("record", "score_only", "patched", "expected"),
    [
        (end(fresh), False, False, Stage.BEFORE_AGENT),
        (end(fresh, "controller"), False, False, Stage.BEFORE_AGENT),
        (end(started), False, False, Stage.MID_RUN),
        (end(started), False, True, Stage.AFTER_PATCH),  # written before the runner's end: certain
        (end(with_patch), False, True, Stage.AFTER_PATCH),
        (end(started, "controller"), False, True, Stage.MID_RUN),  # a zombie's patch, written after the end
        (end(with_patch, "controller"), False, True, Stage.AFTER_PATCH),
        (end(fresh, "controller"), True, False, Stage.BEFORE_AGENT),  # never started: it has cost nothing
        (end(started, "controller"), True, False, Stage.AFTER_PATCH),
        (end(fresh), True, False, Stage.AFTER_PATCH),
        (end(None), False, True, Stage.AFTER_PATCH),
        (None, False, False, Stage.UNKNOWN),
    ],
)
def test_stage_of_a_loss(record: End | None, score_only: bool, patched: bool, expected: Stage) -> None:
    assert stage(record, score_only=score_only, patched=patched) is expected


CELLS = [(task, name) for task in "ab" for name in "xy"]
WHY = st.sampled_from([None, *LossClass])
ENDED = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 5), WHY), max_size=40)


@given(ENDED)
def test_it_is_the_longest_full_prefix(ended: list[Ended]) -> None:
    over = {(task, name, block) for task, name, block, why in ended if why is not LossClass.CANCELLED}
    full = [all((*cell, block) in over for cell in CELLS) for block in range(5)]
    assert complete_blocks(CELLS, ended, PlannedReps(5)) == (full.index(False) if False in full else 5)


@pytest.mark.parametrize("why", ["cancelled", LossClass.CANCELLED])
def test_what_was_cancelled_while_it_ran_is_not_over(why: str) -> None:
    """Else a rate would be made of those that happened to be quick."""
    ended: list[Ended] = [("a", "x", 0, None), ("a", "y", 0, why), ("b", "x", 0, None), ("b", "y", 0, "evicted")]
    assert complete_blocks(CELLS, ended, PlannedReps(1)) == 0
    assert complete_blocks(CELLS, ended, PlannedReps(1), halted={cell for cell in CELLS if cell[0] == "a"}) == 1
    assert complete_blocks(CELLS, [*ended, ("a", "y", 0, None)], PlannedReps(1)) == 1


def test_without_any_task_nothing_is_complete() -> None:
    assert complete_blocks([], [], PlannedReps(5)) == 0
    assert complete_blocks(CELLS, [], PlannedReps(5), halted=CELLS) == 0


def test_a_dropped_task_holds_no_later_block_back() -> None:
    ended: list[Ended] = [(task, name, 0, None) for task, name in CELLS]
    ended += [(task, name, block, None) for task, name in CELLS if task == "b" for block in (1, 2)]
    assert complete_blocks(CELLS, ended, PlannedReps(3)) == 1
    assert complete_blocks(CELLS, ended, PlannedReps(3, {"a": 1})) == 3
    assert complete_blocks(CELLS, ended, PlannedReps(4, {"a": 1})) == 3
    assert complete_blocks(CELLS, ended[:4], PlannedReps(4, {"a": 1, "b": 1})) == 4
