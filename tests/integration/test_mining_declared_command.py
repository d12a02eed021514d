"""Python projects whose tests pass only as the project calls them: mined by the command, then attempted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_languages import attempted
from tests.integration.test_mining_bad_input import BUG, PROJECT, RIGHT, mined
from tests.support.git_repositories import Made
from trialfleet_ledger.task import PythonEnvironment
from trialfleet_tasks.taskfile import load_task_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow, pytest.mark.timeout(600)]

TOX = """[testenv]
setenv =
    SHOP_MODE = test
    PYTHONPATH = {toxinidir}/lib
commands = coverage run -m pytest -p own_plugin -c tests/own.ini -n auto --strict-markers {posargs:tests}
"""
TEST = """import os
from importlib.metadata import version

from shop.a import total

def test_total(by_plugin, request):
    assert os.environ["SHOP_MODE"] == "test"
    assert request.config.getini("xfail_strict"), "of tests/own.ini"
    assert total([1, 2]) == by_plugin

def test_empty():
    assert total([]) == 0
    assert version("shop") == "1.0.2", "of the newest tag"
"""


def test_tests_that_need_the_projects_own_command(tmp_path: Path) -> None:
    """A variable, a folder of PYTHONPATH with a plugin of pytest, and settings below the root."""
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT)
    made.write("tox.ini", TOX)
    made.write("tests/own.ini", "[pytest]\nxfail_strict = true\n")
    plugin = "import pytest\n\n@pytest.fixture\ndef by_plugin():\n    return 3\n"
    made.commit("Start", shop____init__="", shop__a=BUG, lib__own_plugin=plugin)
    made.git("tag", "v1.0.2")
    fix = made.commit("Fix", shop__a=RIGHT, tests__test_a=TEST)
    (finding,) = mined(made)["findings"]
    assert (finding["commit"], finding["outcome"]) == (fix, "kept"), finding
    file = made.folder / "trialfleet/tasks/mined.yaml"
    (task,) = load_task_file(file).tasks
    assert task.spec.fail_to_pass == ("tests/test_a.py::test_total",)
    assert task.spec.pass_to_pass == ("tests/test_a.py::test_empty",)
    assert isinstance(task.environment, PythonEnvironment)
    assert task.environment.env == {"SHOP_MODE": "test"}
    assert task.environment.pythonpath == ("lib", ".")
    assert " ".join(task.environment.test_command[3:8]) == "-q -p no:cacheprovider -p own_plugin"
    attempted(tmp_path, file)


SCENARIOS = """import unittest

from shop.a import total
from tools import sums

class Sums(unittest.TestCase):
    prices = None

    def test_total(self):
        self.assertEqual(total(self.prices), sums[self.prices])

    def id(self):
        return f"{super().id()}({len(self.prices)} prices)"

def load_tests(loader, tests, pattern):
    made = [Sums("test_total"), Sums("test_total")]
    for case, prices in zip(made, sums):
        case.prices = prices
    return unittest.TestSuite(made)
"""


def test_tests_that_pytest_cannot_run(tmp_path: Path) -> None:
    """Made by `load_tests`, which pytest does not ask."""
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT)
    made.write("tox.ini", "[testenv]\ncommands = python -m unittest discover -s tests\n")
    made.commit("Start", shop____init__="", shop__a=BUG, tests__tools="sums = {(1, 2): 3, (): 0}\n")
    made.commit("Fix", shop__a=RIGHT, tests__test_a=SCENARIOS)
    (finding,) = mined(made)["findings"]
    assert finding["outcome"] == "kept", finding
    file = made.folder / "trialfleet/tasks/mined.yaml"
    (task,) = load_task_file(file).tasks
    assert task.spec.fail_to_pass == ("tests/test_a.py::Sums::test_total[2 prices]",)
    assert task.spec.pass_to_pass == ("tests/test_a.py::Sums::test_total[0 prices]",)
    assert isinstance(task.environment, PythonEnvironment)
    assert (task.environment.results, task.environment.pythonpath) == ("unittest", ("tests", "."))
    assert task.environment.test_command == ("python", "-m", "unittest", "{tests}")
    attempted(tmp_path, file)


def test_what_is_not_used_of_the_command_is_named(tmp_path: Path) -> None:
    """An option of the project's own, without which its tests cannot pass."""
    made = Made(tmp_path / "shop")
    made.write("pyproject.toml", PROJECT)
    made.write("Makefile", "test:\n\tpytest --backend=memory tests\n")
    option = "def pytest_addoption(parser):\n    parser.addoption('--backend')\n"
    made.commit("Start", shop____init__="", shop__a=BUG, conftest=option)
    test = TEST.replace('os.environ["SHOP_MODE"] == "test"', 'request.config.getoption("backend")')
    made.commit("Fix", shop__a=RIGHT, tests__test_a=test.replace("by_plugin, ", ""))
    (finding,) = mined(made)["findings"]
    assert finding["outcome"] == "fails_at_fix"
    assert finding["detail"].startswith("not used of its command in Makefile: --backend=memory; ")
