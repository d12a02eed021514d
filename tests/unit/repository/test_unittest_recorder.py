"""Calls of unittest and of runners that are built on it run as they are, and all of their tests are recorded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from trialfleet_ledger.interpreters import interpreters
from trialfleet_repository.languages import format_named
from trialfleet_repository.languages.must_fail import FailToPass
from trialfleet_repository.languages.python.unittest_runner import RECORDER, wrap_call
from trialfleet_repository.languages.settings_record import read_settings_record
from trialfleet_repository.passed_runs import agrees
from trialfleet_repository.results import junit
from trialfleet_repository.testrun import TestRun, trouble
from trialfleet_sandbox.protocol import Exit
from trialfleet_tasks.validate.judge import not_all_ran

TESTS = """
import sys, unittest

class Plain(unittest.TestCase):
    def test_passes(self): pass
    def test_fails(self): self.assertEqual(1, 2)
    def test_raises(self): raise ImportError("\\x00\\x1b<&]]>\\ud800")
    def test_exits(self): sys.exit()
    def test_subtests(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertNotEqual(n, 1)
    def test_skipped_subtest(self):
        with self.subTest(n=1):
            self.skipTest("this one")
    @unittest.skip("no")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_known(self): self.fail()
    @unittest.expectedFailure
    def test_mended(self): pass
    def test_runs_suites(self):
        class Inner(unittest.TestCase):
            def test_inner(self): self.fail()
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(Inner)
        assert not unittest.TextTestRunner(stream=sys.stdout).run(suite).wasSuccessful()

class NoSetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError
    def test_a(self): pass
    def test_b(self): pass

class NoTearDown(unittest.TestCase):
    @classmethod
    def tearDownClass(cls): raise ValueError
    def test_a(self): pass
    def test_b(self): pass

class SkippedClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("all")
    def test_a(self): pass
"""
EXPECTED = {
    "Plain::test_passes": "passed", "Plain::test_fails": "failed", "Plain::test_raises": "failed",
    "Plain::test_exits": "failed", "Plain::test_subtests": "failed", "Plain::test_skipped": "skipped",
    "Plain::test_known": "skipped", "Plain::test_mended": "failed", "Plain::test_runs_suites": "passed",
    "NoSetUp::test_a": "error", "NoSetUp::test_b": "error", "NoTearDown::test_a": "passed",
    "NoTearDown::test_b": "error", "SkippedClass::test_a": "skipped",
}  # fmt: skip
SCENARIOS = """
import unittest

class Case(unittest.TestCase):
    color = None
    def test_it(self): self.assertEqual(self.color, "red")
    def id(self): return f"{super().id()}({self.color})"

def load_tests(loader, tests, pattern):
    made = []
    for color in ("red", "blue"):
        case = Case("test_it")
        case.color = color
        made.append(case)
    return unittest.TestSuite(made)
"""
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def run(
    folder: Path, *words: str, files: Mapping[str, str], python: str = sys.executable, env: Mapping[str, str] = {}
) -> TestRun:
    home = folder / "home"
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "hook").mkdir()
    home.mkdir()
    shutil.copyfile(RECORDER, folder / "hook/recorder_of_ours.py")
    given = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
    given |= {"HOME": str(home), "PYTHONPATH": "hook:tests", **env}
    argv = wrap_call((python, *words), "recorder_of_ours", str(folder / "report.xml"), python)
    ended = subprocess.run(argv, cwd=folder, env=given, capture_output=True, text=True, check=False)
    report = folder / "report.xml"
    cases = junit.parse(report.read_bytes()) if report.exists() else None
    output = ended.stdout + ended.stderr
    settings = read_settings_record(home)
    return TestRun(Exit(ended.returncode, "itself", 1, 1), output, cases, format="unittest", settings=settings)


def outcomes(ended: TestRun, file: str) -> dict[str, str]:
    return {test.removeprefix(f"{file}::"): outcome for test, outcome in ended.outcomes([file]).items()}


@pytest.mark.parametrize("minor", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_every_outcome_on_every_python(minor: str, tmp_path: Path) -> None:
    found = next(interpreters((minor,)), None)
    if found is None:
        pytest.skip(f"no Python {minor}")
    ended = run(tmp_path, "-m", "unittest", "test_t", files={"tests/test_t.py": TESTS}, python=str(found.path))
    seen = outcomes(ended, "tests/test_t.py")
    assert seen.pop("Plain::test_skipped_subtest") in ("passed", "skipped")
    assert seen == EXPECTED, ended.output
    assert ended.exit.code == 1
    assert trouble(ended) is None
    assert agrees(ended)
    assert not_all_ran(ended) is None
    assert len(ended.settings.collected or ()) == len(EXPECTED) + 1


def test_a_module_that_cannot_be_imported_is_a_collection_error(tmp_path: Path) -> None:
    files = {
        "tests/test_b.py": TESTS,
        "tests/package/__init__.py": "",
        "tests/package/test_a.py": "import nothing",
    }
    names = ("package.test_a.Case.test_x", "test_b.Plain.test_passes")
    ended = run(tmp_path, "-m", "unittest", *names, files=files)
    assert trouble(ended) == "collection_error"
    failed = {case.classname for case in ended.cases or () if case.at_collection}
    assert failed == {"tests/package/test_a.py"}
    assert outcomes(ended, "tests/test_b.py") == {"Plain::test_passes": "passed"}


@pytest.mark.parametrize("text", ["1 +", "nothing_here", "raise SystemError"])
def test_so_is_one_that_ends_the_runner(text: str, tmp_path: Path) -> None:
    files = {"tests/test_b.py": TESTS, "tests/test_c.py": text}
    ended = run(tmp_path, "-m", "unittest", "test_b", "test_c", files=files)
    assert trouble(ended) == "collection_error"
    assert [case.classname for case in ended.cases or ()] == ["tests/test_c.py"]


def test_scenarios_have_ids_of_their_own(tmp_path: Path) -> None:
    ended = run(tmp_path, "-m", "unittest", "test_s", files={"tests/test_s.py": SCENARIOS})
    assert outcomes(ended, "tests/test_s.py") == {"Case::test_it[red]": "passed", "Case::test_it[blue]": "failed"}
    assert ended.function_outcomes("tests/test_s.py") == {"tests/test_s.py::Case::test_it": {"passed", "failed"}}


STOPPING = """
import unittest

class Runner(unittest.TextTestRunner):
    def run(self, suite):
        OTHERS
        return super().run(suite)

unittest.main(module=None, testRunner=Runner)
"""


@pytest.mark.parametrize(
    ("others", "missing"),
    [
        ("self.failfast = True", None),
        ("suite = unittest.TestSuite(test for test in list(suite)[0] if 'passes' in str(test))", "12 of 15"),
    ],
)
def test_a_runner_of_the_project_may_neither_stop_nor_select(
    others: str, missing: str | None, tmp_path: Path
) -> None:
    files = {"tests/test_t.py": TESTS, "tests/run.py": STOPPING.replace("OTHERS", others)}
    ended = run(tmp_path, "tests/run.py", "test_t", files=files)
    problem = not_all_ran(ended)
    if missing is None:
        assert problem is None
        assert ended.settings.taken_back == ("--failfast",)
        assert {**EXPECTED, **outcomes(ended, "tests/test_t.py")} == outcomes(ended, "tests/test_t.py")
    else:
        assert problem is not None
        assert problem.kind == "tests_left_out"


@pytest.mark.parametrize("ending", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_process_that_ends_in_a_test_has_no_report(ending: str, tmp_path: Path) -> None:
    text = f"import os, unittest\nclass A(unittest.TestCase):\n    def test_a(self): {ending}\n"
    ended = run(tmp_path, "-m", "unittest", "test_t", files={"tests/test_t.py": text})
    assert ended.cases is None
    assert trouble(ended) is not None
    assert not agrees(ended)


def test_what_is_given_for_ids() -> None:
    files = {"app/tests/__init__.py": b"", "app/__init__.py": b"", "app/tests/test_s.py": SCENARIOS.encode(),
             "app/tests/test_t.py": b""}  # fmt: skip
    ids = ("app/tests/test_t.py::A::test_a", "app/tests/test_t.py::A::test_b[1]", "app/tests/test_s.py::B::test_c",
           "t/test_u.py")  # fmt: skip
    assert format_named("unittest").arguments(ids, files.get) == (
        "app.tests.test_t.A.test_a", "app.tests.test_t.A.test_b", "app.tests.test_s", "test_u",
    )  # fmt: skip


def test_functions_of_nose2_have_no_class(tmp_path: Path) -> None:
    """Which makes a class for each, whose name says nothing."""
    text = """
import unittest

def make(number):
    class C(unittest.FunctionTestCase):
        def id(self): return f"test_t.test_it:{number}"
    return C(lambda: None)

def load_tests(*_): return unittest.TestSuite(map(make, (1, 2)))
"""
    ended = run(tmp_path, "-m", "unittest", "test_t", files={"tests/test_t.py": text})
    assert outcomes(ended, "tests/test_t.py") == {"test_it[1]": "passed", "test_it[2]": "passed"}


def test_tests_that_must_fail_do(tmp_path: Path) -> None:
    path = "tests/test_t.py"
    made = format_named("unittest").must_fail(FailToPass((f"{path}::Plain::test_fails",), {path: TESTS}, "z1"))
    assert made.exit_code is None
    assert "pytest" not in made.text
    files = {path: TESTS, made.path: made.text}
    names = format_named("unittest").arguments(made.tests, lambda name: files.get(name, "").encode() or None)
    ended = run(tmp_path, "-m", "unittest", *names, files=files)
    assert outcomes(ended, made.path) == {test.removeprefix(f"{made.path}::"): "failed" for test in made.tests}, (
        ended.output
    )
