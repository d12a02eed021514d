"""Settings of a project that select, stop, order, repeat or rename tests have no effect on which tests count."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from trialfleet_repository.languages.python.pytest import PLUGIN
from trialfleet_repository.languages.settings_record import SettingsRecord, read_settings_record
from trialfleet_repository.results import junit
from trialfleet_repository.testrun import TestRun
from trialfleet_sandbox.protocol import Exit
from trialfleet_tasks.validate.judge import not_all_ran

TESTS = """
import pytest

@pytest.mark.slow
def test_a(): assert False
def test_b(): assert True
class TestC:
    @pytest.mark.parametrize("n", [1, 2])
    def test_d(self, n): pass
def test_e(): assert False
"""
OUTCOMES = {"a": "failed", "b": "passed", "d[1]": "passed", "d[2]": "passed", "e": "failed"}
ALL_OF_PYTEST = (
    "-x --maxfail=1 -m slow -k nothing --deselect=t/test_t.py::test_b --ignore=t --ignore-glob=t/* --lf --ff "
    "--nf --cache-clear --sw --collect-only --setup-only --strict-markers --strict-config --junit-prefix=p "
    "-p no:junitxml"
)


HOOKS_OF_PYTEST_3 = {
    "pytest_addoption": {"parser"},
    "pytest_collection_finish": {"session"},
    "pytest_configure": {"config"},
    "pytest_load_initial_conftests": {"early_config", "parser", "args"},
    "pytest_plugin_registered": {"plugin", "manager"},
}


def test_hooks_ask_for_nothing_that_old_versions_do_not_give() -> None:
    functions = [node for node in ast.parse(PLUGIN.read_text()).body if isinstance(node, ast.FunctionDef)]
    hooks = {
        each.name: {arg.arg for arg in each.args.args} for each in functions if each.name.startswith("pytest")
    }
    assert hooks.keys() == HOOKS_OF_PYTEST_3.keys()
    assert all(given <= HOOKS_OF_PYTEST_3[name] for name, given in hooks.items()), hooks


def run(folder: Path, ini: str, *more: str, files: Mapping[str, str] = {}, plugin: bool = True) -> TestRun:
    home = folder / "home"
    for path, text in {"t/test_t.py": TESTS, "pytest.ini": f"[pytest]\n{ini}\n", **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "plugin").mkdir()
    home.mkdir()
    shutil.copyfile(PLUGIN, folder / "plugin/trialfleet_pytest.py")
    given = "-o junit_family=xunit1" + (" -p trialfleet_pytest -o log_cli=false" if plugin else "")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=junit.xml", "t/test_t.py"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    env |= {"HOME": str(home), "PYTHONPATH": "plugin:.", "PYTEST_ADDOPTS": given}
    ended = subprocess.run([*argv, *more], cwd=folder, env=env, capture_output=True, text=True, check=False)
    report = folder / "junit.xml"
    cases = junit.parse(report.read_bytes()) if report.exists() else None
    output = ended.stdout + ended.stderr
    return TestRun(Exit(ended.returncode, "itself", 1, 1), output, cases, settings=read_settings_record(home))


@pytest.mark.parametrize(
    ("ini", "left_out"),
    [
        ("addopts = -m 'not slow'", ["test_a"]),
        ("addopts = -k 'not TestC'", ["TestC::test_d[1]", "TestC::test_d[2]"]),
        ("addopts = --deselect t/test_t.py::test_b --deselect=t/test_t.py::test_e -x", ["test_b", "test_e"]),
        ("addopts = -x", []),
        ("addopts = -m 'not ('", []),
    ],
)
def test_what_a_project_keeps_from_its_own_runs_is_named_and_runs(
    tmp_path: Path, ini: str, left_out: list[str]
) -> None:
    ended = run(tmp_path, ini)
    assert list(ended.settings.deselected) == [f"t/test_t.py::{name}" for name in left_out]
    assert outcomes(ended) == OUTCOMES


def outcomes(ended: TestRun) -> dict[str, str]:
    return {test.rpartition("test_")[2]: said for test, said in ended.outcomes(["t/test_t.py"]).items()}


@pytest.mark.parametrize(
    ("ini", "taken"),
    [
        (f"addopts = {ALL_OF_PYTEST}", 16),
        ("addopts = -n 2 --maxfail=1", 4),
        ("", 0),
    ],
    ids=["pytest", "xdist", "nothing"],
)
def test_all_tests_count(ini: str, taken: int, tmp_path: Path) -> None:
    ended = run(tmp_path, ini)
    assert outcomes(ended) == OUTCOMES, ended.output
    assert ended.exit.code == 1
    assert len(ended.settings.taken_back) == taken, ended.settings.taken_back
    assert not_all_ran(ended) is None


@pytest.mark.parametrize(
    "ini", ["addopts = -x", "addopts = -m slow", "addopts = -p no:junitxml", "addopts = --lf"]
)
def test_control_these_settings_leave_tests_out(ini: str, tmp_path: Path) -> None:
    assert outcomes(run(tmp_path, ini, plugin=False)) != OUTCOMES


def test_the_commands_own_selection_stays(tmp_path: Path) -> None:
    ended = run(tmp_path, "addopts = -m slow", "-k", "test_a or test_b")
    assert set(outcomes(ended)) == {"a", "b"}
    assert ended.settings == SettingsRecord(("-m",), None, deselected=("t/test_t.py::test_b",))


STOPS = """
import pytest

def pytest_runtest_logfinish(nodeid):
    if "test_b" in nodeid:
        pytest.exit("enough", 0)
"""
RENAMES = """
import pytest

@pytest.fixture(autouse=True)
def rename(record_xml_attribute, request):
    if request.node.name == "test_e":
        record_xml_attribute("name", "x")
"""


@pytest.mark.parametrize(("conftest", "missing"), [(STOPS, "3 of 5"), (RENAMES, "1 of 5")])
def test_a_run_that_lacks_results_is_named(conftest: str, missing: str, tmp_path: Path) -> None:
    problem = not_all_ran(run(tmp_path, "", files={"conftest.py": conftest}))
    assert problem is not None
    assert problem.message.startswith(
        f"at the fixed tree: {missing} tests that are collected have no result, such"
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"1",
        b'{"collected": 1}',
        b'{"taken_back": 1}',
        b"[" * 10**6,
        b"\xff",
        b"{}",
    ],
)
def test_a_forged_record_is_read_as_empty(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "test-settings.json").write_bytes(content)
    assert read_settings_record(tmp_path) == SettingsRecord()
    assert read_settings_record(tmp_path / "gone") == SettingsRecord()
