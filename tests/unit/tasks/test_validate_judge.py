"""Every way in which a task does not hold has its own name, and what is found is written."""

from __future__ import annotations

import difflib
from datetime import date
from pathlib import Path
from typing import Literal, cast

import pytest
import yaml

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import Status
from trialfleet_repository.languages.python.pytest import select_functions
from trialfleet_repository.results.junit import JunitCase
from trialfleet_repository.testrun import Suite, TestRun, run_tests, trouble
from trialfleet_sandbox.protocol import Exit, Sandbox
from trialfleet_tasks import prompts
from trialfleet_tasks.mining.findings import RejectionReason, reason_of
from trialfleet_tasks.validate.judge import (
    DiscoveredTests,
    check,
    discover,
    in_time,
    needs_network,
    not_a_run,
    out_of_time,
    steady,
    told,
)
from trialfleet_tasks.validate.output import CAP, normalised, tail
from trialfleet_tasks.validate.write import filled_in

T = "t/test_a.py::test_a"
U = "t/test_a.py::test_u"
PASSED = (JunitCase("t.test_a", "test_a", None, "passed"),)
FAILED = (JunitCase("t.test_a", "test_a", None, "failed"),)
UNCOLLECTED = (JunitCase("", "t.test_a", None, "error", "collection failure", "E   ImportError: no"),)


def run(
    code: int,
    cases: tuple[JunitCase, ...] | None = PASSED,
    output: str = "",
    cause: Literal["itself", "timeout", "memory"] = "itself",
) -> TestRun:
    return TestRun(Exit(code, cause, 1.0, 1.0), output, cases)


@pytest.mark.parametrize(
    ("ran", "kind"),
    [
        (run(0), None),
        (run(1), None),
        (run(2, UNCOLLECTED), "collection_error"),
        (run(1, (*PASSED, *UNCOLLECTED)), "collection_error"),  # --continue-on-collection-errors
        (run(2, None, "!!! Interrupted: 1 error during collection !!!"), "collection_error"),
        (run(2), "interrupted"),
        (run(3, None), "internal_error"),
        (run(4, None), "usage_error"),
        (run(5, ()), "no_tests_collected"),
        (run(0, ()), "no_tests_collected"),
        (run(1, None), "no_junit"),
        (run(125, None), "internal_error"),
        (run(126, None), "not_executable"),
        (run(127, None), "missing_interpreter"),
        (run(-11, None), "signal"),
        (run(139, None), "signal"),
        (run(-9, None, cause="timeout"), "timeout"),
        (run(-9, None, cause="memory"), "resources"),
    ],
)
def test_what_is_no_run_of_tests(ran: TestRun, kind: str | None) -> None:
    assert trouble(ran) == kind
    problem = not_a_run(ran, "pre_fix")
    assert (problem.kind.value if problem else None) == kind
    assert problem is None or "pre-fix tree" in problem.message


@pytest.mark.parametrize(
    ("ran", "said"),
    [
        (run(0), None),
        (run(1), "exit 1, though no tests failed"),
        (run(0, FAILED), "exit 0, though 1 test failed"),
        (run(1, FAILED), None),
    ],
)
def test_a_fix_with_which_no_attempt_could_pass(ran: TestRun, said: str | None) -> None:
    problem = not_a_run(ran, "fixed")
    assert not_a_run(ran, "pre_fix") is None
    assert (problem and (problem.kind.value, problem.message)) == (
        said and ("exit_code", f"at the fixed tree: {said}")
    )


@pytest.mark.parametrize(("core_s", "hint"), [(20.8, "without a network"), (55.0, "raise the time limit")])
def test_a_time_out_says_how_much_of_a_core_the_tests_had(core_s: float, hint: str) -> None:
    problem = not_a_run(TestRun(Exit(-9, "timeout", 60.2, core_s), "", None), "fixed")
    assert problem is not None
    said = f"at the fixed tree: the tests took too long (ended after 60 s, with {core_s:.0f} s of core time)"
    assert (problem.message, hint in (problem.hint or "")) == (said, True)


def _failed(*names: str, text: str = "assert 1 == 0") -> tuple[JunitCase, ...]:
    return tuple(JunitCase("t.test_a", name, None, "failed", text, text) for name in names)


REFUSED = "[Errno -3] Temporary failure in name resolution"
CAPTURED = f"""____ {{}} ____
E   assert 1 == 0
---- Captured log call ----
{REFUSED}
"""
SILENT = "____ {} ____\nE   assert 1 == 0\n"


@pytest.mark.parametrize(
    ("cases", "output", "left_out", "needs"),
    [
        (_failed("test_a", text=REFUSED), "", 0, True),
        (_failed("test_a", "test_b"), CAPTURED.format("test_a") + CAPTURED.format("TestB.test_b"), 0, True),
        (_failed("test_a", "test_b"), CAPTURED.format("test_a") + SILENT.format("test_b"), 0, False),
        (_failed("test_a", "test_b"), SILENT.format("test_a") + CAPTURED.format("test_b"), 9, False),
        (_failed("test_a", "test_b"), "cut off\n" + CAPTURED.format("test_b"), 9, True),
        (_failed("test_a"), "cut off\n" + CAPTURED.format("test_b"), 9, False),
        (_failed("test_a"), CAPTURED.format("ERROR at setup of test_a"), 0, True),
        (PASSED, REFUSED, 0, False),
    ],
)
def test_what_needs_a_network_says_so_or_has_logged_it(
    cases: tuple[JunitCase, ...], output: str, left_out: int, needs: bool
) -> None:
    assert needs_network(TestRun(Exit(1, "itself", 1.0, 1.0), output, cases, left_out=left_out)) is needs


def test_without_tests_nothing_is_run(tmp_path: Path) -> None:
    suite = Suite(tmp_path / "no environment", ("python", "{tests}"), (".",), 10)
    run = run_tests(suite, workspace=tmp_path, scratch=tmp_path, tests=(), sandbox=cast("Sandbox", None))
    assert trouble(run) == "no_tests_collected"
    assert run.results(()) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_collection_error_says_why() -> None:
    problem = not_a_run(run(2, UNCOLLECTED), "pre_fix")
    assert problem is not None
    assert "ImportError: no" in problem.message


def test_what_does_not_compile_says_why() -> None:
    text = (
        "warning: unused\nerror[E0599]: no method `a`\n --> x.rs:3\nerror: could not compile `x`\nwarning: failed"
    )
    uncompiled = JunitCase("", "x", None, "error", "collection failure", text)
    problem = not_a_run(run(101, (uncompiled,)), "fixed")
    assert problem is not None
    assert problem.message.endswith("error[E0599]: no method `a`")


def test_discovery_takes_what_the_fix_mends_and_what_it_keeps() -> None:
    before = {"a": "failed", "b": "passed", "c": "passed", "d": "error", "e": "failed", "f": "skipped"}
    after = {"a": "passed", "b": "passed", "c": "failed", "d": "passed", "e": "failed", "g": "passed"}
    found = discover(before, after)
    assert (found.fail_to_pass, found.pass_to_pass, found.problems) == (("a",), ("b",), ())
    assert any(w.startswith("d: error before") for w in found.warnings)  # an error is not a failing test


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ({"a": "passed"}, {"a": "passed"}, "already_passes"),
        ({"a": "failed"}, {"a": "failed"}, "fails_at_fix"),
        ({"a": "error"}, {"a": "passed"}, "no_fail_to_pass"),
        ({}, {}, "already_passes"),
    ],
)
def test_discovery_without_an_oracle(before: dict[str, str], after: dict[str, str], kind: str) -> None:
    assert [p.kind.value for p in discover(before, after).problems] == [kind]


@pytest.mark.parametrize(
    ("ran", "kind", "said"),
    [
        ({}, "all_skipped", "every test is skipped, for example b"),
        ({"a": "passed"}, "already_passes", "every test passes at the pre-fix tree already; 2 more are skipped"),
    ],
)
def test_what_is_skipped_is_not_said_to_pass(ran: dict[str, str], kind: str, said: str) -> None:
    outcomes = {**ran, "b": "skipped", "c": "skipped"}
    (problem,) = discover(outcomes, outcomes).problems
    assert (problem.kind.value, problem.message) == (kind, said)


def test_swapped_trees_are_called_that() -> None:
    before, after = {"a": "passed", "keep": "passed"}, {"a": "failed", "keep": "passed"}
    for problems in (discover(before, after).problems, check(["a"], ["keep"], [before], [after])):
        (problem,) = problems
        assert problem.kind.value == "swapped"
        assert "exchange pre_fix and fixed" in (problem.hint or "")


def test_an_environment_without_pytest_is_called_that() -> None:
    problem = not_a_run(run(1, None, "/cache/env/bin/python: No module named pytest\n"), "pre_fix")
    assert problem is not None
    assert "has no pytest" in problem.message
    assert "environment.lock" in (problem.hint or "")
    other = not_a_run(run(1, None, "ModuleNotFoundError: No module named 'pytest_cov'\n"), "pre_fix")
    assert other is not None
    assert "has no pytest" not in other.message


def test_an_id_with_a_path_of_this_machine_is_left_out_and_named() -> None:
    before = {"a::t[/w/x]": "passed", "a::u[/w]": "failed", "a::v": "failed", "a::w": "passed"}
    found = discover(before, dict.fromkeys(before, "passed"), places=("/w",))
    assert (found.fail_to_pass, found.pass_to_pass, found.problems) == (("a::v",), ("a::w",), ())
    assert found.warnings == (
        "a::t[/w/x]: excluded, because it names a path of this machine",
        "a::u[/w]: excluded, because it names a path of this machine",
    )


def test_what_uses_a_name_that_no_prompt_tells_is_no_fail_to_pass_test() -> None:
    found = DiscoveredTests(("a", "b"), ("k",))
    left_out = {"a": "uses a name that only the fix adds"}
    assert told(found, {"a": "rounding"}) == DiscoveredTests(("b",), ("k",), left_out=left_out)
    (problem,) = told(found, {"b": "rate", "a": "rounding"}).problems
    assert (problem.kind.value, problem.message) == ("names_what_only_the_fix_adds", "b uses rate")
    green = discover({"k": "passed"}, {"k": "passed"})
    assert told(green, {}) == green


def test_what_wavers_is_dropped_and_named() -> None:
    found = DiscoveredTests(("a", "b"), ("c", "d"))
    before = [
        {"a": "failed", "b": "failed", "c": "passed", "d": "passed"},
        {"a": "failed", "b": "passed", "c": "passed"},
    ]
    after = [{"a": "passed", "b": "passed", "c": "passed", "d": "passed"}] * 2
    kept = steady(found, before, after)
    assert (kept.fail_to_pass, kept.pass_to_pass) == (("a",), ("c",))
    assert len(kept.warnings) == 2
    assert [p.kind.value for p in steady(DiscoveredTests(("b",), ()), before, after).problems] == ["flaky"]


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        (["failed", "failed"], ["passed", "passed"], []),
        (["failed", "passed"], ["passed", "passed"], ["flaky"]),
        (["failed", "failed"], ["passed", "failed"], ["flaky"]),
        (["passed", "passed"], ["passed", "passed"], ["already_passes"]),
        (["error", "error"], ["passed", "passed"], ["not_as_test"]),
        (["skipped", "skipped"], ["passed", "passed"], ["not_as_test"]),
        (["failed", "failed"], ["failed", "failed"], ["fails_at_fix"]),
        ([None, None], [None, None], ["missing_test", "missing_test"]),
    ],
)
def test_named_ids(before: list[str | None], after: list[str | None], kinds: list[str]) -> None:
    def runs(seen: list[str | None]) -> list[dict[str, str]]:
        return [{U: "passed"} | ({T: outcome} if outcome else {}) for outcome in seen]

    assert [p.kind.value for p in check([T], [U], runs(before), runs(after))] == kinds


def test_a_pass_to_pass_test_that_breaks_is_named() -> None:
    problems = check([T], [U], [{T: "failed"}], [{T: "passed", U: "failed"}])
    assert [(p.kind.value, U in p.message) for p in problems] == [("fails_at_fix", True)]


def test_parameters_are_left_out_of_what_is_asked_for() -> None:
    assert select_functions([f"{T}[1]", f"{T}[2]", U]) == (T, U)
    assert (
        select_functions([f"t/test_{n}.py::test_x[{m}]" for n in range(3) for m in range(2)])[-1]
        == "t/test_2.py::test_x"
    )
    assert select_functions([f"t/test_a.py::test_{n}" for n in range(2000)]) == ("t/test_a.py",)


RUN_A = """\
\x1b[1m============ test session starts ============\x1b[0m
platform linux -- Python 3.11.7, pytest-8.4.0, pluggy-1.6.0
cachedir: .pytest_cache
rootdir: /var/tmp/scratch-1/workspace
plugins: anyio-4.0
/var/tmp/scratch-1/workspace/src/a.py:3: AssertionError
E   assert <object object at 0x7f3a1c2b4d50> == 1
E   PosixPath('/tmp/pytest-of-root/pytest-17/test_x0/f')
E   at 2026-11-22T01:02:03.456Z, pid 4711
/opt/cache/environments/0123/lib/python3.11/site-packages/x.py:1: in y
-------- generated xml file: /var/tmp/scratch-1/home/junit.xml --------
1 failed, 2 passed in 12.34s (0:00:12)
"""
RUN_B = (
    RUN_A.replace("scratch-1", "scratch-22")
    .replace("0x7f3a1c2b4d50", "0x55d0aa")
    .replace("pytest-of-root/pytest-17", "pytest-of-agent/pytest-3")
    .replace("12.34s (0:00:12)", "0.99s")
    .replace("2026-11-22T01:02:03.456Z", "2027-01-02T11:12:13Z")
    .replace("4711", "12")
    .replace("3.11.7", "3.12.1")
    .replace("/opt/cache", "/home/u/.cache")
)


def places(scratch: str, cache: str) -> dict[str, str]:
    return {
        f"{scratch}/workspace/": "",
        f"{scratch}/workspace": "/workspace",
        f"{scratch}/home": "/home/agent",
        f"{cache}/environments/0123": "/environment",
    }


def test_two_machines_give_the_same_text() -> None:
    one = normalised(RUN_A, places("/var/tmp/scratch-1", "/opt/cache"), date(2026, 11, 21))
    other = normalised(RUN_B, places("/var/tmp/scratch-22", "/home/u/.cache"), date(2027, 1, 2))
    assert one == other
    assert "\x1b" not in one
    assert "src/a.py:3: AssertionError" in one.split("\n")
    assert "platform" not in one
    assert one.endswith("1 failed, 2 passed in 0.00s\n")


def test_what_a_test_compares_is_left_alone() -> None:
    lines = (
        *("assert 0.5 == 1.5", "- took 3 tries", "0xff", "assert '0xdeadbeef' == '0x0000beef'"),
        *("assert 'done in 3.5s' == 'done in 3s'", "- 2012-01-14T12:00:01+01:00", "+ 2012-01-14 12:00:00"),
    )
    text = "".join(f"E   {line}\n" for line in lines)
    assert normalised(text, {}, date(2026, 11, 21)) == text


@pytest.mark.parametrize("size", [CAP - 1, CAP, CAP + 1, 3 * CAP])
def test_the_tail_is_kept_and_capped(size: int) -> None:
    text = "".join(f"line {n}\n" for n in range(size))[-size:]
    kept = tail(text)
    assert len(kept) <= CAP
    assert kept.endswith(text[-100:])
    assert kept.startswith("[... earlier output omitted ...]\nline ") or kept == text


def test_one_endless_line_is_cut_too() -> None:
    assert len(tail("x" * 3 * CAP)) <= CAP


def test_prompts_put_the_output_in_a_fence_that_it_cannot_close() -> None:
    text = prompts.failing_test("before\n````\nnot the end\n")
    assert "\n`````\nbefore\n````\nnot the end\n`````\n" in text
    assert text.endswith("Do not modify the tests.\n")


def test_a_commit_message_loses_its_trailers() -> None:
    text = prompts.commit_message("Fix it (#3)\n\nBecause.\n\nCo-authored-by: A <a@b>\nSigned-off-by: C <c@d>\n")
    assert text.endswith("Fix it (#3)\n\nBecause.\n")


TEXT = """\
# The head.
repo:
    url: "https://example.org/a/b"   # quoted, indented by four

tasks:
  # First task
  - id: one   # trailing
    fail_to_pass: []   # none yet
    prompt_source: issue
    issue: |
      Two lines,
        # not a comment

      of text.

  # Second task

  - prompt_source: failing_test
    id: two
    test_file: "tests/test_a.py"
    pass_to_pass:
      # old ones
      - tests/test_a.py::test_old
      - "tests/test_a.py::test_odd[a: b]"

    # about the status
    status: unvalidated
    contexts: {flat: x,
               tree: y}
# The foot.
"""
FAIL = ["tests/test_a.py::test_x[a #1: b]", "tests/test_a.py::TestB::test_y", 'tests/test_a.py::test_z[é\\n"]']


def fill(text: str, index: int) -> str:
    return filled_in(text, index, status=Status.VALIDATED, fail_to_pass=FAIL, pass_to_pass=["b::c"])


def removed_and_added(old: str, new: str) -> tuple[list[str], list[str]]:
    lines = list(difflib.ndiff(old.splitlines(), new.splitlines()))
    return [x[2:] for x in lines if x[0] == "-"], [x[2:] for x in lines if x[0] == "+"]


@pytest.mark.parametrize("index", [0, 1])
def test_the_fields_are_set_and_all_else_is_equal(index: int) -> None:
    new = yaml.safe_load(fill(TEXT, index))
    wanted = yaml.safe_load(TEXT)
    wanted["tasks"][index] |= {"status": "validated", "fail_to_pass": FAIL, "pass_to_pass": ["b::c"]}
    assert new == wanted


def test_only_the_lines_of_the_old_values_go() -> None:
    gone, _ = removed_and_added(TEXT, fill(TEXT, 0))
    assert gone == ["    fail_to_pass: []   # none yet"]
    gone, added = removed_and_added(TEXT, fill(TEXT, 1))
    assert gone == [
        "      # old ones",
        "      - tests/test_a.py::test_old",
        '      - "tests/test_a.py::test_odd[a: b]"',
        "    status: unvalidated",
    ]
    assert "    status: validated" in added
    assert "    # about the status" in fill(TEXT, 1).split("\n")


def test_filling_in_twice_changes_nothing_more() -> None:
    once = fill(fill(TEXT, 0), 1)
    assert fill(fill(once, 0), 1) == once


def test_a_file_without_a_last_newline() -> None:
    text = "repo: {}\ntasks:\n- id: one\n  prompt_source: issue"
    assert yaml.safe_load(fill(text, 0))["tasks"][0]["fail_to_pass"] == FAIL


def test_a_value_that_is_written_differently_but_equal_stays() -> None:
    lists = "    fail_to_pass: ['a',\n       b]\n    pass_to_pass: []\n"
    text = f"tasks:\n  - id: one\n    status: 'validated'\n{lists}"
    assert filled_in(text, 0, status=Status.VALIDATED, fail_to_pass=["a", "b"], pass_to_pass=[]) == text


def test_a_task_in_one_line_is_left_to_its_author() -> None:
    with pytest.raises(OperatorError, match="not written as lines"):
        fill("tasks:\n  - {id: one}\n", 0)


ALIASES = """\
repo:
  _environment: &env
    lock: a.txt
  environment: *env
tasks:
  - id: one
    environment: *env
  - id: two
    environment:
      <<: *env
      setup: []
  # the end
"""


@pytest.mark.parametrize("index", [0, 1])
def test_a_last_value_that_stands_elsewhere(index: int) -> None:
    new = fill(ALIASES, index)
    assert yaml.safe_load(new)["tasks"][index]["fail_to_pass"] == FAIL
    assert removed_and_added(ALIASES, new)[0] == []


@pytest.mark.parametrize(
    ("message", "late"),
    [
        ("Test timed out in 5000ms.\nIf this is a long-running test", True),  # vitest
        ("Error: Test timed out in 5000ms.", True),
        ('thrown: "Exceeded timeout of 5000 ms for a test.', True),  # Jest
        ("Error: Timeout of 2000ms exceeded. For async tests and hooks", True),  # Mocha
        ("this test timed out after 5000ms", True),  # Bun
        ("test timed out after 300ms", True),  # node:test
        ("Failed: Timeout (>1.0s) from pytest-timeout.", True),
        ("org.junit.runners.model.TestTimedOutException: test timed out after 100 milliseconds", True),
        ("java.util.concurrent.TimeoutException: slow() timed out after 1 second", True),
        ("org.opentest4j.AssertionFailedError: execution exceeded timeout of 100 ms by 12 ms", True),
        ("AssertionError: 'request timed out after 5 s' != ''", False),
        ("expected 'Timeout of 2000ms exceeded' to be undefined", False),
        ("AssertionError: 3 != 5", False),
    ],
)
def test_a_failure_by_a_time_limit_alone(message: str, late: bool) -> None:
    """A faster machine passes it without the fix."""
    cases = tuple(
        JunitCase("a.test.ts", name, None, "failed", text, "")
        for name, text in (("slow", message), ("b", "3 != 5"))
    )
    run = TestRun(Exit(1, "itself", 1.0, 1.0), "", cases, format="vitest")
    ids = ("a.test.ts::slow", "a.test.ts::b")
    assert out_of_time(run, ids) == (("a.test.ts::slow",) if late else ())
    found = in_time(DiscoveredTests(ids, ("a.test.ts::c",)), out_of_time(run, ids))
    assert (found.fail_to_pass, found.pass_to_pass, found.problems) == (
        ids[1:] if late else ids,
        ("a.test.ts::c",),
        (),
    )


def test_nothing_but_tests_out_of_time() -> None:
    found = in_time(DiscoveredTests(("a::slow",), ("a::b",)), ("a::slow",))
    assert (found.fail_to_pass, found.pass_to_pass) == ((), ())
    (problem,) = found.problems
    assert reason_of(found.problems) is RejectionReason.TOO_SLOW
    assert "a::slow: fails at the pre-fix tree by its own time limit alone" in problem.message
