"""Tests that must fail hide no other failure of the run that is judged: pytest with their file and without it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from trialfleet_ledger.records.task_order import MustFailTest
from trialfleet_repository.languages import format_named
from trialfleet_repository.languages.must_fail import FailingFile, FailToPass
from trialfleet_repository.passed_runs import agrees, all_passed
from trialfleet_repository.results import junit
from trialfleet_repository.results.junit import JunitCase
from trialfleet_repository.shared_runs import SharedRun, judge_shared, without_must_fail
from trialfleet_repository.testrun import TestRun
from trialfleet_sandbox.protocol import Exit

MARK = "z0a1b2c3d"
IDS = ("t/test_a.py::test_a", "t/test_b.py::test_b")
PROJECT = {
    "product.py": "def total(prices): return sum(prices)\n",
    "conftest.py": "",
    "t/test_a.py": "from product import total\n\ndef test_a():\n    assert total([1]) == 1\n",
    "t/test_b.py": "from product import total\n\ndef test_b():\n    assert total([]) == 0\n",
}
RIGHT, WRONG = PROJECT["product.py"], "def total(prices): return 0\n"
REPORT = """
import atexit, re, sys
def rewrite():
    (path,) = [word.partition("=")[2] for word in sys.argv if word.startswith("--junit-xml=")]
    text = open(path).read()
    open(path, "w").write(re.sub('(name="test_a"[^>]*>)<failure.*?</failure>', "\\\\1", text, flags=re.S))
atexit.register(rewrite)
"""
AT_END = "\nimport atexit, os\natexit.register(os._exit, {code})\n"
IN_SESSION = """
import pytest
@pytest.fixture(scope="session", autouse=True)
def session():
    yield
    raise RuntimeError("left open")
"""
FINISH = "\ndef pytest_sessionfinish(session, exitstatus):\n    {line}\n"
IN_LOOP = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtestloop(session):
    yield
    session.testsfailed += 1
"""
HIDDEN: dict[str, dict[str, str]] = {
    "a fixture of the session fails at its end": {"conftest.py": IN_SESSION},
    "a plugin counts a failure": {"conftest.py": IN_LOOP},
    "a plugin sets the exit code": {"conftest.py": FINISH.format(line="session.exitstatus = 1")},
    "a plugin adds to the exit code": {"conftest.py": FINISH.format(line="session.exitstatus |= exitstatus | 1")},
    "a plugin fails at the end": {"conftest.py": FINISH.format(line="raise RuntimeError")},
    "the process ends with the code of failed tests": {"product.py": RIGHT + AT_END.format(code=1)},
    "the process dies at its end": {"product.py": RIGHT + "\nimport atexit, os\natexit.register(os.abort)\n"},
    "another file is not collected": {"t/test_b.py": "import absent\n"},
    "the report of a failed test is changed": {"product.py": WRONG + REPORT},
    "a test fails": {"product.py": WRONG},
    "a test is skipped": {"t/test_b.py": "import pytest\n\n@pytest.mark.skip\ndef test_b(): ...\n"},
    "a test is gone": {"t/test_b.py": "def test_c(): ...\n"},
}
# A test that is judged fails, which needs no run without the other file.
SEEN = ("a test fails", "a test is skipped", "another file is not collected")
KEPT: dict[str, Mapping[str, str]] = {
    "the fix": {},
    "a new module": {"more.py": "", "product.py": "import more\n" + RIGHT},
}


@cache
def made_file() -> FailingFile:
    return format_named("pytest").must_fail(FailToPass(IDS[:1], {"t/test_a.py": PROJECT["t/test_a.py"]}, MARK))


def must_fail() -> MustFailTest:
    made = made_file()
    return MustFailTest(path=made.path, text=made.text, ids=made.tests, exit_code=made.exit_code)


def run_pytest(folder: Path, changes: Mapping[str, str], *more: str) -> TestRun:
    for path, text in (PROJECT | dict(changes)).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=junit.xml", *IDS, *more]
    plain = {"PYTEST_ADDOPTS": "-o junit_family=xunit1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    ended = subprocess.run(
        argv,
        cwd=folder,
        env=environment | plain | {"PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    report = folder / "junit.xml"
    cases = junit.parse(report.read_bytes()) if report.exists() else None
    report.unlink(missing_ok=True)
    return TestRun(Exit(ended.returncode, "itself", 1.0, 1.0), ended.stdout + ended.stderr, cases)


def run_both(folder: Path, changes: Mapping[str, str]) -> tuple[TestRun, TestRun]:
    """Without the file of tests that must fail, and with it."""
    alone = run_pytest(folder, changes)
    return alone, run_pytest(folder, {**changes, made_file().path: made_file().text}, *made_file().tests)


def passes(run: TestRun) -> bool:
    return all_passed(run.results(IDS)) and agrees(run)


@pytest.mark.parametrize("name", HIDDEN)
def test_what_else_fails_is_not_hidden(tmp_path: Path, name: str) -> None:
    alone, shared = run_both(tmp_path, HIDDEN[name])
    assert not passes(alone), alone.output
    judged = judge_shared(shared, must_fail(), IDS)
    assert judged is SharedRun.FAILED if name in SEEN else judged is not SharedRun.PASSED, shared.output


@pytest.mark.parametrize("name", KEPT)
def test_control_nothing_else_fails(tmp_path: Path, name: str) -> None:
    alone, shared = run_both(tmp_path, KEPT[name])
    assert passes(alone), alone.output
    assert judge_shared(shared, must_fail(), IDS) is SharedRun.PASSED, shared.output
    same = without_must_fail(shared, must_fail())
    assert (same.exit, same.results(IDS)) == (alone.exit, alone.results(IDS))


@pytest.mark.parametrize("name", ["a plugin counts a failure", "the report of a failed test is changed"])
def test_control_the_code_of_failed_tests_would_hide_it(tmp_path: Path, name: str) -> None:
    """With a file that leaves the exit code as it is."""
    made = made_file()
    plain = made.text.replace("session.exitstatus == 1", "session.exitstatus == 0")
    assert plain != made.text
    shared = run_pytest(tmp_path, {**HIDDEN[name], made.path: plain}, *made.tests)
    assert passes(shared), "exit 1, and only tests that must fail are said to have failed"
    test = must_fail().model_copy(update={"text": plain, "exit_code": 1})
    assert judge_shared(shared, test, IDS) is SharedRun.PASSED


ELSEWHERE = {
    "an unhandled error in Vitest": ("vitest", "a.test.js::x", "a.test.js", "it('x', () => expect(1).toBe(1))"),
    "a threshold in Jest": ("jest", "a.test.js::x", "a.test.js", "it('x', () => expect(1).toBe(1))"),
    "a leak that TestMain finds in Go": ("go", "m::TestX", "a_test.go", "package a\nfunc TestX(t *testing.T) {}"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_where_the_exit_code_alone_tells_a_failure_the_tests_run_apart(name: str) -> None:
    """These runners end with 1 in either case, and their reports do not have what failed outside of tests."""
    results, judged, path, text = ELSEWHERE[name]
    made = format_named(results).must_fail(FailToPass((judged,), {path: text}, MARK))
    assert made.exit_code is None, "so the run that is judged has no such tests"
    unit, _, test = judged.partition("::")
    cases = (JunitCase(unit, test, None, "passed"), JunitCase(made.path, f"{MARK} 1", None, "failed"))
    ended = Exit(1, "itself", 1.0, 1.0)
    assert not agrees(TestRun(ended, "", cases[:1], format=results)), "seen without them"
    assert agrees(TestRun(ended, "", cases, format=results)), "hidden with them"
