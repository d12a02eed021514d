"""What a run with tests that must fail says of a pass, and whether validation keeps such tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trialfleet_ledger.records.task_order import MustFailTest
from trialfleet_repository.languages.must_fail import FailingFile
from trialfleet_repository.results.junit import CaseOutcome, JunitCase
from trialfleet_repository.shared_runs import SharedRun, contradicts_pass, describe_silent, judge_shared
from trialfleet_repository.testrun import TestRun
from trialfleet_sandbox.protocol import Exit
from trialfleet_tasks.validate.must_fail import judge_control

PATH = "t/test_a_z1.py"
TEST = MustFailTest(path=PATH, text="", ids=(f"{PATH}::test_a_z1_1", f"{PATH}::test_a_z1_2"))
WANTED = ("t/test_a.py::test_a",)
MADE = FailingFile(PATH, "text", TEST.ids)


def run(code: int, cases: dict[str, CaseOutcome], wanted: CaseOutcome = "passed") -> TestRun:
    found = [JunitCase("t.test_a", "test_a", None, wanted)]
    found += [JunitCase("t.test_a_z1", name, None, outcome) for name, outcome in cases.items()]
    return TestRun(Exit(code, "itself", 1.0, 1.0), "", tuple(found))


ROWS: list[tuple[str, int, dict[str, CaseOutcome], CaseOutcome, bool]] = [
    ("as it must be", 1, {"test_a_z1_1": "failed", "test_a_z1_2": "failed"}, "passed", False),
    ("all pass", 0, {"test_a_z1_1": "passed", "test_a_z1_2": "passed"}, "passed", True),
    ("one passes", 1, {"test_a_z1_1": "failed", "test_a_z1_2": "passed"}, "passed", True),
    ("one of its parameters passes", 1, {"test_a_z1_1[x]": "passed", "test_a_z1_1[y]": "failed"}, "passed", True),
    ("other parameters", 1, {"test_a_z1_1[z]": "failed"}, "passed", False),
    ("none is named", 0, {}, "passed", True),
    ("one is not named", 1, {"test_a_z1_2": "failed"}, "passed", False),
    ("the exit code says that none failed", 0, {"test_a_z1_1": "failed"}, "passed", True),
    ("skipped", 0, {"test_a_z1_1": "skipped", "test_a_z1_2": "skipped"}, "passed", False),
    ("an error of a fixture", 1, {"test_a_z1_1": "error"}, "passed", False),
    ("the wanted test fails, too", 1, {"test_a_z1_1": "passed"}, "failed", False),
]


@pytest.mark.parametrize(
    ("code", "cases", "wanted", "contradicts"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_a_pass_is_contradicted(
    code: int, cases: dict[str, CaseOutcome], wanted: CaseOutcome, contradicts: bool
) -> None:
    assert contradicts_pass(run(code, cases, wanted), TEST, WANTED) is contradicts


SILENT_ROWS: list[tuple[str, dict[str, CaseOutcome], str | None]] = [
    ("as it must be", {"test_a_z1_1": "failed", "test_a_z1_2": "failed"}, None),
    ("one passes, which contradicts", {"test_a_z1_1": "failed", "test_a_z1_2": "passed"}, None),
    ("one of its parameters fails", {"test_a_z1_1[x]": "failed", "test_a_z1_1[y]": "skipped",
                                     "test_a_z1_2": "failed"}, None),
    ("all are skipped", {"test_a_z1_1": "skipped", "test_a_z1_2": "skipped"}, "test_a_z1_1 and 1 more:skipped"),
    ("one is skipped", {"test_a_z1_1": "failed", "test_a_z1_2": "skipped"}, "test_a_z1_2:skipped"),
    ("an error at set-up", {"test_a_z1_1": "error", "test_a_z1_2": "failed"}, "test_a_z1_1:error"),
    ("one is not named", {"test_a_z1_2": "failed"}, "test_a_z1_1:missing"),
    ("none is named", {}, "test_a_z1_1 and 1 more:missing"),
]  # fmt: skip


@pytest.mark.parametrize(("cases", "words"), [row[1:] for row in SILENT_ROWS], ids=[r[0] for r in SILENT_ROWS])
def test_what_says_nothing_of_a_pass_is_named(cases: dict[str, CaseOutcome], words: str | None) -> None:
    """Each row either contradicts or confirms the pass, or there is a caution."""
    caution = describe_silent(run(1, cases), TEST)
    if words is None:
        assert caution is None
    else:
        name, _, outcome = words.partition(":")
        assert caution == f"{PATH}::{name} must fail, but reported: {outcome}; so nothing confirms the pass"


def test_a_run_that_is_ended_says_nothing() -> None:
    late = TestRun(Exit(-9, "timeout", 1.0, 1.0), "", None)
    assert "missing (timeout)" in (describe_silent(late, TEST) or "")


def test_a_file_that_is_not_loaded_contradicts_nothing() -> None:
    test = MustFailTest(path="a_z1.test.js", text="", ids=("a_z1.test.js::z1 1",))
    cases = [JunitCase("a.test.js", "adds", None, "passed"), JunitCase("a_z1.test.js", "", None, "error")]
    found = TestRun(Exit(1, "itself", 1.0, 1.0), "", tuple(cases), format="jest")
    assert not contradicts_pass(found, test, ["a.test.js::adds"])


@pytest.mark.parametrize(
    ("code", "cases", "wanted", "words"),
    [
        (1, {"test_a_z1_1[x]": "failed", "test_a_z1_1[y]": "failed"}, "passed", "1 test that must fail"),
        (1, {"test_a_z1_1": "failed", "test_a_z1_2": "failed"}, "passed", "2 tests that must fail"),
        (1, {"test_a_z1_1": "failed", "test_a_z1_2": "passed"}, "passed", "1 test that must fail"),
        (0, {"test_a_z1_1": "passed"}, "passed", "none (its tests do not fail)"),
        (1, {"test_a_z1_1": "error"}, "passed", "none (its tests do not fail)"),
        (1, {"test_a": "failed"}, "passed", "none (its tests do not fail)"),
        (1, {"test_a_z1_1": "failed"}, "failed", "none (with it, t/test_a.py::test_a: failed)"),
        (
            0,
            {"test_a_z1_1": "failed"},
            "passed",
            "none (with it, at the fixed tree: exit 0, though 1 test failed)",
        ),
    ],
)
def test_what_validation_keeps(code: int, cases: dict[str, CaseOutcome], wanted: CaseOutcome, words: str) -> None:
    control = judge_control(run(code, cases, wanted), MADE, WANTED, "z1")
    assert control.words == words
    assert (control.test is None) == words.startswith("none")
    if control.test:
        assert control.test.text == "text"
        assert f"{PATH}::test_a_z1_1" in control.test.ids, "without parameters"


CODE = 70
SHARED = TEST.model_copy(update={"exit_code": CODE})
BOTH: dict[str, CaseOutcome] = {"test_a_z1_1": "failed", "test_a_z1_2": "failed"}
SHARED_ROWS: list[tuple[str, int, dict[str, CaseOutcome], CaseOutcome, SharedRun]] = [
    ("as it must be", CODE, BOTH, "passed", SharedRun.PASSED),
    ("the code of any failure", 1, BOTH, "passed", SharedRun.UNCLEAR),
    ("the code of no failure", 0, BOTH, "passed", SharedRun.UNCLEAR),
    ("one passes", CODE, {**BOTH, "test_a_z1_2": "passed"}, "passed", SharedRun.UNCLEAR),
    ("one has an error, too", CODE, {**BOTH, "test_a_z1_2": "error"}, "passed", SharedRun.UNCLEAR),
    ("one is skipped", CODE, {**BOTH, "test_a_z1_2": "skipped"}, "passed", SharedRun.UNCLEAR),
    ("one is not named", CODE, {"test_a_z1_1": "failed"}, "passed", SharedRun.UNCLEAR),
    ("all pass", 0, {"test_a_z1_1": "passed", "test_a_z1_2": "passed"}, "passed", SharedRun.UNCLEAR),
    ("a judged test fails", 1, BOTH, "failed", SharedRun.FAILED),
    ("a judged test is skipped", CODE, BOTH, "skipped", SharedRun.FAILED),
    ("the process dies", -11, BOTH, "failed", SharedRun.UNCLEAR),
    ("an internal error", 3, BOTH, "failed", SharedRun.UNCLEAR),
]


@pytest.mark.parametrize(
    ("code", "cases", "judged", "seen"), [row[1:] for row in SHARED_ROWS], ids=[row[0] for row in SHARED_ROWS]
)
def test_what_a_shared_run_shows(
    code: int, cases: dict[str, CaseOutcome], judged: CaseOutcome, seen: SharedRun
) -> None:
    assert judge_shared(run(code, cases, judged), SHARED, WANTED) is seen


def test_a_shared_run_in_another_order_or_without_time_is_unclear() -> None:
    for ordered in (run(CODE, BOTH, "passed"), run(1, BOTH, "failed")):
        assert ordered.cases is not None
        assert judge_shared(replace(ordered, cases=ordered.cases[::-1]), SHARED, WANTED) is SharedRun.UNCLEAR
        late = replace(ordered, exit=replace(ordered.exit, cause="timeout"))
        assert judge_shared(late, SHARED, WANTED) is SharedRun.UNCLEAR


def test_their_file_alone_is_not_collected() -> None:
    at_collection = JunitCase("", "t.test_a_z1", None, "error", "collection failure")
    other = replace(at_collection, name="t.test_a")
    for cases, seen in (((at_collection,), SharedRun.UNCLEAR), ((other, at_collection), SharedRun.FAILED)):
        assert judge_shared(TestRun(Exit(2, "itself", 1.0, 1.0), "", cases), SHARED, WANTED) is seen


@pytest.mark.parametrize(("code", "kept"), [(CODE, CODE), (1, None)])
def test_validation_keeps_an_exit_code_that_it_has_seen(code: int, kept: int | None) -> None:
    control = judge_control(run(code, BOTH), replace(MADE, exit_code=CODE), WANTED, "z1")
    assert control.test is not None
    assert control.test.exit_code == kept
    assert control.words == "2 tests that must fail"
