"""Every way in which a task does not hold has its own name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

import pytest

from trialfleet_runner.junit import Case
from trialfleet_runner.sandbox.protocol import Exit, Sandbox
from trialfleet_runner.testrun import Suite, TestRun, run_tests, selection, trouble
from trialfleet_runner.validate.judge import Found, check, discover, not_a_run, steady

T = "t/test_a.py::test_a"
U = "t/test_a.py::test_u"
PASSED = (Case("t.test_a", "test_a", None, "passed"),)
UNCOLLECTED = (Case("", "t.test_a", None, "error", "collection failure", "E   ImportError: no"),)


def run(
    code: int,
    cases: tuple[Case, ...] | None = PASSED,
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
    problem = not_a_run(ran, "pre-fix tree")
    assert (problem.kind.value if problem else None) == kind
    assert problem is None or "pre-fix tree" in problem.message


def test_without_tests_nothing_is_run(tmp_path: Path) -> None:
    suite = Suite(tmp_path / "no environment", ("python", "{tests}"), (".",), 10)
    run = run_tests(suite, workspace=tmp_path, scratch=tmp_path, tests=(), sandbox=cast("Sandbox", None))
    assert trouble(run) == "no_tests_collected"
    assert run.results(()) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_collection_error_says_why() -> None:
    problem = not_a_run(run(2, UNCOLLECTED), "pre-fix tree")
    assert problem is not None
    assert "ImportError: no" in problem.message


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
        ({"a": "failed"}, {"a": "failed"}, "no_fail_to_pass"),
        ({"a": "error"}, {"a": "passed"}, "no_fail_to_pass"),
        ({}, {}, "already_passes"),
    ],
)
def test_discovery_without_an_oracle(before: dict[str, str], after: dict[str, str], kind: str) -> None:
    assert [p.kind.value for p in discover(before, after).problems] == [kind]


def test_an_id_with_a_path_of_this_machine_is_left_out_and_named() -> None:
    before = {"a::t[/w/x]": "passed", "a::u[/w]": "failed", "a::v": "failed", "a::w": "passed"}
    found = discover(before, dict.fromkeys(before, "passed"), places=("/w",))
    assert (found.fail_to_pass, found.pass_to_pass, found.problems) == (("a::v",), ("a::w",), ())
    assert found.warnings == (
        "a::t[/w/x]: left out, it names a path of this machine",
        "a::u[/w]: left out, it names a path of this machine",
    )


def test_what_wavers_is_dropped_and_named() -> None:
    found = Found(("a", "b"), ("c", "d"))
    before = [
        {"a": "failed", "b": "failed", "c": "passed", "d": "passed"},
        {"a": "failed", "b": "passed", "c": "passed"},
    ]
    after = [{"a": "passed", "b": "passed", "c": "passed", "d": "passed"}] * 2
    kept = steady(found, before, after)
    assert (kept.fail_to_pass, kept.pass_to_pass) == (("a",), ("c",))
    assert len(kept.warnings) == 2
    assert [p.kind.value for p in steady(Found(("b",), ()), before, after).problems] == ["flaky"]


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
    assert selection([f"{T}[1]", f"{T}[2]", U]) == (T, U)
    assert (
        selection([f"t/test_{n}.py::test_x[{m}]" for n in range(3) for m in range(2)])[-1] == "t/test_2.py::test_x"
    )
    assert selection([f"t/test_a.py::test_{n}" for n in range(2000)]) == ("t/test_a.py",)
