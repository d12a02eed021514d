"""What a run with tests that must fail says of a pass, and whether validation keeps such tests."""

from __future__ import annotations

import pytest

from trialfleet_ledger.records.task_order import MustFailTest
from trialfleet_repository.languages.must_fail import FailingFile
from trialfleet_repository.results.junit import CaseOutcome, JunitCase
from trialfleet_repository.testrun import TestRun
from trialfleet_runner.must_fail import contradicts_pass
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
