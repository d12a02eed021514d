"""From the changes that were seen to the turns that they belong to."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger.trajectory import Step, WorkspaceChange
from trialfleet_runner.attempt.edit_watch import find_printed_turn
from trialfleet_runner.attempt.observed_edits import MOST_STEPS, ObservedEdits, join_changes


def change(turn: int | None, path: str = "a.py") -> WorkspaceChange:
    return WorkspaceChange(path=path, how="changed", turn=turn, at_s=1.0)


def turns_of(edits: ObservedEdits) -> list[int | None]:
    return [one.turn for one in edits.changes or ()]


def test_a_session_of_one_turn_made_every_change_in_it() -> None:
    assert turns_of(ObservedEdits((change(None), change(4))).with_single_turn(1)) == [1, 1]
    assert turns_of(ObservedEdits((change(None), change(4))).with_single_turn(5)) == [None, 4]
    assert ObservedEdits(None, "why").with_single_turn(1) == ObservedEdits(None, "why")


def test_a_patch_with_a_file_that_was_not_seen_to_change_makes_all_unknown() -> None:
    edits = ObservedEdits((change(1),), find_unseen=lambda paths: [path for path in paths if path != "a.py"])
    assert edits.confirm(["a.py"]) is edits
    lost = edits.confirm(["a.py", "b.py"])
    assert (lost.changes, "b.py" in lost.lost) == (None, True)
    assert ObservedEdits(None, "why").confirm(["b.py"]).lost == "why"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), TypeError(), RuntimeError("no")])
def test_a_patch_is_not_lost_with_its_edits(error: Exception) -> None:
    def fail(_: Iterable[str]) -> list[str]:
        raise error

    lost = ObservedEdits((change(1),), find_unseen=fail).confirm(["a.py"])
    assert (lost.changes, type(error).__name__ in lost.lost) == (None, True)


def test_a_patch_of_a_workspace_that_nobody_watched_has_unknown_edits() -> None:
    """A pre-flight has ended the trial."""
    assert ObservedEdits().confirm([]).changes == ()
    assert ObservedEdits().confirm(["a.py"]).changes is None


@given(st.lists(st.integers(1, 6)), st.lists(st.integers(1, 8) | st.none()))
def test_a_trajectory_keeps_its_steps_and_shows_each_change_after_its_turn(
    said: list[int], changed: list[int | None]
) -> None:
    steps = [Step(turn=turn, kind="run") for turn in sorted(said)]
    joined = join_changes(steps, [change(turn) for turn in sorted(changed, key=lambda turn: turn or 0)])
    assert [step for step in joined if step.kind != "change"] == steps
    assert [step.turn for step in joined] == sorted([*said, *(turn for turn in changed if turn is not None)])
    assert all(
        before.kind == "change" or after.turn > before.turn or after.kind in ("run", "change")
        for before, after in pairwise(joined)
    )


def test_a_trajectory_shows_so_many_changes() -> None:
    assert len(join_changes([], [change(1)] * (MOST_STEPS + 5))) == MOST_STEPS


@pytest.mark.parametrize(
    ("lines", "turn"),
    [
        ([], None),
        (["no step", '{"turn": 0}', '{"turn": true}', '{"turn": 1e9}'], None),
        ([json.dumps({"turn": 2, "kind": "read"}), "words", '{"kind": "turn"}'], 2),
        ([json.dumps({"turn": 2}), "x" * 100_000], None),  # too far back: not known
        (["x" * 100_000, json.dumps({"turn": 3, "kind": "run"})], 3),
    ],
)
def test_the_turn_that_was_printed_last(tmp_path: Path, lines: list[str], turn: int | None) -> None:
    (tmp_path / "stdout").write_text("".join(f"{line}\n" for line in lines) + '{"turn": 9')
    assert find_printed_turn(tmp_path / "stdout") == turn
    assert find_printed_turn(tmp_path / "missing") is None
