"""From trajectories, patches and test results to numbers and a verdict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger.records.measurements import TestResult
from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_ledger.records.verdicts import Stop, Verdict
from trialfleet_ledger.trajectory import Step, WorkspaceChange
from trialfleet_repository.passed_runs import agrees, all_passed
from trialfleet_repository.results.junit import JunitCase
from trialfleet_repository.testrun import TestRun
from trialfleet_runner.metrics import (
    context_files_read,
    diff_size,
    has_edited_target,
    phases,
    target_hit,
    verdict,
)
from trialfleet_sandbox.protocol import Exit


@pytest.mark.parametrize("outcome", ["failed", "error", "skipped", "missing"])
def test_only_passed_tests_pass(outcome: str) -> None:
    good = TestResult(id="t::a", outcome="passed")
    assert all_passed([good])
    assert not all_passed([good, TestResult.model_validate({"id": "t::b", "outcome": outcome})])


def test_no_results_are_no_pass() -> None:
    assert not all_passed([])


@given(st.sampled_from(Stop), st.booleans(), st.booleans())
def test_passed_needs_passing_tests_and_an_agent_within_its_limits(stop: Stop, passed: bool, late: bool) -> None:
    got = verdict(stop, passed=passed, tests_timed_out=late)
    within = stop not in {Stop.TIMEOUT, Stop.MEMORY, Stop.DISK, Stop.CRASHED}
    assert (got is Verdict.PASSED) == (within and passed and not late)
    assert (got is Verdict.TIMED_OUT) == (stop is Stop.TIMEOUT)
    assert (got is Verdict.EXHAUSTED) == (stop in {Stop.MEMORY, Stop.DISK})


@given(st.sampled_from(Stop), st.booleans(), st.booleans())
def test_a_forged_pass_is_named_unless_the_agent_never_began(stop: Stop, passed: bool, late: bool) -> None:
    got = verdict(stop, passed=passed, tests_timed_out=late, forged=True)
    assert got is (Verdict.FAILED if stop is Stop.CRASHED else Verdict.FORGED)


def edit(turn: int | None, path: str = "a.py", at_s: float = 1.0) -> WorkspaceChange:
    return WorkspaceChange(path=path, how="changed", turn=turn, at_s=at_s)


def test_without_an_edit_nothing_is_known() -> None:
    claimed = [Step(turn=4, kind="read", path="a"), Step(turn=5, kind="edit", path="a")]
    assert set(phases([], claimed, 9)) == {None}


def test_of_an_edit_in_an_unknown_turn_only_the_time_is_known() -> None:
    found = phases([edit(None, at_s=2.5), edit(7)], [Step(turn=9, kind="read", path="a")], 9)
    assert found == (None, 2.5, None, None, None, None)


@given(
    st.lists(st.tuples(st.integers(1, 30), st.sampled_from(["read", "edit", "run"]))),
    st.lists(st.integers(1, 30), min_size=1),
    st.integers(0, 35),
)
def test_phases_add_up_to_the_session(raw: list[tuple[int, str]], edits: list[int], said: int) -> None:
    steps = [Step.model_validate({"turn": turn, "kind": kind, "path": str(turn)}) for turn, kind in sorted(raw)]
    found = phases([edit(turn) for turn in edits], steps, said)
    assert found.first_edit_turn == min(edits)
    assert found.exploration_turns == min(edits) - 1
    total = (found.exploration_turns or 0) + (found.edit_turns or 0) + (found.tail_turns or 0)
    assert total == max([said, *edits, *(step.turn for step in steps)])
    assert found.files_read_before_edit == len({t for t, kind in raw if kind == "read" and t <= min(edits)})


@pytest.mark.parametrize(
    ("edits", "patched", "hit"),
    [
        (["b", "a"], [], True),  # undone
        (["b"], ["b"], False),
        ([], [], False),
        (None, ["a"], True),
        (None, ["b"], None),
    ],
)
def test_a_target_is_hit_by_an_edit_or_by_the_patch(
    edits: list[str] | None, patched: list[str], hit: bool | None
) -> None:
    observed = None if edits is None else [edit(1, path) for path in edits]
    assert has_edited_target(observed, patched, ["a"]) is hit
    assert has_edited_target(observed, patched, []) is None


def test_context_files_count_once() -> None:
    paths = ["AGENTS.md", "lib/AGENTS.md", "lib/AGENTS.md", "CLAUDE.md", "docs/claude.txt", "x.py"]
    assert context_files_read([Step(turn=1, kind="read", path=path) for path in paths]) == 3


def test_diff_lines_that_look_like_headers_are_lines() -> None:
    diff = "\n".join(
        [
            "diff --git a/a.py b/a.py",
            "--- a/a.py",
            "+++ b/a.py",
            "@@ -1,3 +1,3 @@",
            " keep",
            "--- was a comment",
            "+++ is a comment",
            " keep",
            "diff --git a/b.py b/b.py",
            "new file mode 100644",
            "--- /dev/null",
            "+++ b/b.py",
            "@@ -0,0 +1 @@",
            "+x",
            "",
        ]
    )
    assert diff_size(diff) == (("a.py", "b.py"), 2, 1)


def test_target_hit_is_undefined_without_targets() -> None:
    assert target_hit(["a"], []) is None
    assert target_hit(["a"], ["a", "b"]) is True
    assert target_hit(["c"], ["a"]) is False


PASSED, FAILED = JunitCase("t", "a", None, "passed"), JunitCase("t", "b", None, "failed")


def run(code: int, *cases: JunitCase, by: ResultFormat = "pytest") -> TestRun:
    return TestRun(Exit(code, "itself", 1.0, 1.0), "", cases, format=by)


@pytest.mark.parametrize(
    ("ran", "expected"),
    [
        (run(0, PASSED), True),
        (run(1, PASSED, FAILED), True),  # another parameter of the same function
        (run(1, PASSED), False),
        (run(0, PASSED, FAILED), False),
        (run(139, PASSED), False),
        (run(3, PASSED), False),
        (run(0), False),
        (TestRun(Exit(0, "itself", 1.0, 1.0), "", None), False),
        (TestRun(Exit(0, "timeout", 1.0, 1.0), "", (PASSED,)), False),
        (run(101, PASSED, FAILED, by="libtest"), True),  # a test of the crate that is not the task's
        (run(101, PASSED, by="libtest"), False),
        (run(101, PASSED, FAILED), False),
        (run(1, PASSED, FAILED, by="libtest"), False),
        (run(8, PASSED, FAILED, by="junit"), True),
        (run(139, PASSED, FAILED, by="junit"), False),
        (run(1, PASSED, FAILED, FAILED, by="mocha"), False),
        (run(0, PASSED, FAILED, by="libtest"), False),
        (run(2, PASSED, FAILED, FAILED, by="mocha"), True),
        (run(1, PASSED, FAILED, by="go"), True),
        (run(139, PASSED, FAILED, by="go"), False),
    ],
)
def test_agreement(ran: TestRun, expected: bool) -> None:
    assert agrees(ran) is expected
