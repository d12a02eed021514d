"""Every test of a task's files counts, or is left out for a reason that is said."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_ledger.task import Status, TaskSpec
from trialfleet_repository.languages.settings_record import SettingsRecord
from trialfleet_repository.results.junit import JunitCase
from trialfleet_repository.testrun import TestRun
from trialfleet_sandbox.protocol import Exit
from trialfleet_tasks.mining.yield_table import describe_lost_tests
from trialfleet_tasks.validate.judge import DiscoveredTests, discover, in_time, not_all_ran, steady, told
from trialfleet_tasks.validate.left_out import count_left_out, describe_left_out, find_lacking_modules
from trialfleet_tasks.validate.write import filled_in

OUTCOMES = st.dictionaries(
    st.sampled_from([f"t.py::test_{n}" for n in range(8)]),
    st.sampled_from(["passed", "failed", "error", "skipped"]),
)


def run(*cases: JunitCase, results: ResultFormat = "pytest", settings: SettingsRecord | None = None) -> TestRun:
    exit_0 = Exit(0, "itself", 1.0, 1.0)
    return TestRun(exit_0, "", cases, format=results, settings=settings or SettingsRecord())


@given(OUTCOMES, OUTCOMES, OUTCOMES, st.sets(st.integers(0, 7)))
def test_no_test_is_lost_in_silence(
    before: Mapping[str, str], after: Mapping[str, str], again: Mapping[str, str], named: set[int]
) -> None:
    found = discover(before, after, places=("_7",))
    ids = {f"t.py::test_{n}" for n in named}
    found = told(in_time(found, ids & {"t.py::test_1"}), dict.fromkeys(ids & {"t.py::test_2"}, "rate"))
    if found.problems:
        return  # no task
    found = steady(found, [before], [again])
    kept = {*found.fail_to_pass, *found.pass_to_pass}
    assert kept.isdisjoint(found.left_out)
    assert kept | found.left_out.keys() >= before.keys() | after.keys()


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (None, "passed", "has no result before the fix"),
        ("passed", None, "has no result at the fix"),
        ("failed", "skipped", "skipped"),
        ("error", "passed", "is an error before the fix, not a failure"),
        ("skipped", "passed", "skipped before the fix"),
        ("passed", "error", "fails at the fix"),
    ],
)
def test_each_reason(before: str | None, after: str | None, why: str) -> None:
    seen = {"a": "failed", **({"b": before} if before else {})}
    fixed = {"a": "passed", **({"b": after} if after else {})}
    assert discover(seen, fixed).left_out == {"b": why}


SKIPPED = "('/w/t/test_a.py', 3, \"Skipped: could not import 'numpy': No module named 'numpy'\")"


def test_what_a_missing_module_costs() -> None:
    fixed = run(
        JunitCase("", "t.test_a", None, "skipped", "collection skipped", SKIPPED),
        JunitCase("t.test_b", "test_c", None, "skipped", "could not import 'yaml.x': No module named 'yaml'"),
        JunitCase("t.test_b", "test_d", None, "skipped", "no such luck"),
        JunitCase("t.test_b", "test_e", None, "passed", "No module named 'evil'"),
    )
    files = ("t/test_a.py", "t/test_b.py", "t/test_gone.py")
    assert find_lacking_modules(fixed, files) == {
        "t/test_a.py": "whole file: module numpy is not installed",
        "t/test_b.py::test_c": "module yaml.x is not installed",
        "t/test_gone.py": "whole file: no test of it has a result",
    }


def test_what_skips_say_cannot_fill_a_task_file() -> None:
    names = [f"m{n}" for n in range(50)]
    cases = [JunitCase("t.test_b", f"test_{n}", None, "skipped", f"could not import '{n}'") for n in names]
    found = find_lacking_modules(run(*cases), ("t/test_b.py",))
    assert count_left_out(found) == {"a module is not installed": 50}


@pytest.mark.parametrize(
    ("results", "cases", "files", "silent"),
    [
        ("jest", [JunitCase("a.test.js", "x", None, "passed")], ("a.test.js", "b.test.js"), {"b.test.js"}),
        ("surefire", [JunitCase("o.ATest$In", "x", None, "passed")], ("src/test/java/o/ATest.java",), set[str]()),
        ("surefire", [], ("src/test/java/o/ATest.java",), {"src/test/java/o/ATest.java"}),
        ("libtest", [], ("tests/a.rs", "src/a.rs"), {"tests/a.rs"}),
        ("go", [], ("a_test.go",), set[str]()),
    ],
)
def test_a_file_without_a_result(
    results: ResultFormat, cases: list[JunitCase], files: tuple[str, ...], silent: set[str]
) -> None:
    found = find_lacking_modules(run(*cases, results=results), files)
    assert found == dict.fromkeys(silent, "whole file: no test of it has a result")


def test_a_file_that_go_does_not_build_here() -> None:
    settings = SettingsRecord(ignored=("a/i_test.go", "a/other_test.go"))
    found = find_lacking_modules(run(results="go", settings=settings), ("a/i_test.go",))
    assert found == {"a/i_test.go": "whole file: its build constraints leave it out here"}


def test_each_test_that_a_runner_has_needs_a_result() -> None:
    case = JunitCase("p", "TestA", None, "passed")
    settings = SettingsRecord(collected=("p::TestA", "p::TestB"))
    problem = not_all_ran(run(case, results="go", settings=settings))
    assert problem is not None
    assert "1 of 2 tests that are collected have no result, such as p::TestB" in problem.message


def test_a_task_file_says_what_is_left_out() -> None:
    text = "tasks:\n- id: a\n  fail_to_pass: []  # none yet\n"
    counts = {"skipped": 2, "whole file: module x is not installed": 1}
    new = filled_in(
        text, 0, status=Status.VALIDATED, fail_to_pass=["t"], pass_to_pass=[], left_out=counts, classes=None
    )
    assert yaml.safe_load(new)["tasks"][0]["left_out"] == counts
    again = filled_in(new, 0, status=Status.VALIDATED, fail_to_pass=["t"], pass_to_pass=[], left_out={})
    assert yaml.safe_load(again)["tasks"][0]["left_out"] == {}
    assert "left_out" not in filled_in(
        text, 0, status=Status.VALIDATED, fail_to_pass=["t"], pass_to_pass=[], left_out={}
    )
    assert describe_left_out({}) == ()
    assert DiscoveredTests((), ()).left_out == {}


def test_the_yield_counts_tests_and_tasks() -> None:
    commits = {"pre_fix_commit": "a" * 40, "fix_commit": "b" * 40}
    facts = {"prompt_source": "failing_test", "test_file": "t.py", **commits}
    counts: tuple[dict[str, int], ...] = ({"skipped": 2}, {"skipped": 1, "module numpy is not installed": 4}, {})
    tasks = [TaskSpec.model_validate({"id": f"t{n}", "left_out": each, **facts}) for n, each in enumerate(counts)]
    table = describe_lost_tests(tasks)
    rows = list(zip(*(map(str, column.cells) for column in table.columns), strict=True))
    assert rows == [("module numpy is not installed", "4", "1"), ("skipped", "3", "2")]
    assert describe_lost_tests(tasks[2:]).row_count == 0


def test_a_test_that_the_project_keeps_from_its_own_runs_need_not_keep_passing() -> None:
    before = {"a": "failed", "slow": "passed", "b": "passed", "new": "failed"}
    found = discover(before, dict.fromkeys(before, "passed"), deselected=("slow", "new", "gone"))
    assert (found.fail_to_pass, found.pass_to_pass) == (("a", "new"), ("b",))
    assert found.left_out == {"slow": "left out by the project's own settings"}
