"""Complete blocks: what status and report count alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_runner.blocks import Ended, complete_blocks
from trialfleet_runner.contract import LossClass

CELLS = [(task, name) for task in "ab" for name in "xy"]
WHY = st.sampled_from([None, *LossClass])
ENDED = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 5), WHY), max_size=40)


@given(ENDED)
def test_it_is_the_longest_full_prefix(ended: list[Ended]) -> None:
    over = {(task, name, block) for task, name, block, why in ended if why is not LossClass.CANCELLED}
    full = [all((*cell, block) in over for cell in CELLS) for block in range(5)]
    assert complete_blocks(CELLS, ended, 5) == (full.index(False) if False in full else 5)


@pytest.mark.parametrize("why", ["cancelled", LossClass.CANCELLED])
def test_what_was_cancelled_while_it_ran_is_not_over(why: str) -> None:
    """Else a rate would be made of those that happened to be quick."""
    ended: list[Ended] = [("a", "x", 0, None), ("a", "y", 0, why), ("b", "x", 0, None), ("b", "y", 0, "evicted")]
    assert complete_blocks(CELLS, ended, 1) == 0
    assert complete_blocks(CELLS, ended, 1, halted={"a"}) == 1
    assert complete_blocks(CELLS, [*ended, ("a", "y", 0, None)], 1) == 1


def test_without_any_task_nothing_is_complete() -> None:
    assert complete_blocks([], [], 5) == 0
    assert complete_blocks(CELLS, [], 5, halted={"a", "b"}) == 0
