"""Requirements of an old commit, locked by the real index."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import find_interpreter
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import build, environment_ref
from trialfleet_repository.environments.python_environment import site_packages
from trialfleet_repository.trees import Tree, TreeEntry
from trialfleet_tasks.mining.python_environment import PythonEnvironments

THEN = date(2021, 5, 20)


def tree(*dependencies: str, pins: str = "") -> Tree:
    project = (
        f'[project]\nname = "shop"\ndependencies = {list(dependencies)}\n[dependency-groups]\ntest = ["pytest"]\n'
    )
    return {"pyproject.toml": TreeEntry(project.encode()), "pdm.lock": TreeEntry(pins.encode())}


PINS = '[[package]]\nname = "Blinker"\nversion = "1.4"\n[[package]]\nname = "certifi"\nversion = "2020.12.5"\n'


@pytest.mark.parametrize(("pins", "certifi"), [("", "2021.5.30"), (PINS, "2020.12.5")])
def test_a_package_without_a_wheel_is_taken_as_of_later_and_no_other(
    tmp_path: Path, pins: str, certifi: str
) -> None:
    """Blinker had no wheel before July 2022. Every Python that runs here has wheels of the others."""
    found = PythonEnvironments(tmp_path / "locks").of(
        tree("blinker", "certifi", pins=pins), THEN, "1", ("test_a.py",)
    )
    assert found.lock is not None
    locked = dict(re.findall(r"^([a-z]+)==(\S+)", (tmp_path / found.lock).read_text(), re.MULTILINE))
    assert locked["blinker"] == "1.8.2"  # the newest that was there three years later
    assert (locked["certifi"], locked["pytest"]) == (certifi, "6.2.4")


def test_extras_that_a_command_installs(tmp_path: Path) -> None:
    """And those that contradict each other are left out."""
    project = '[project]\nname = "shop"\n[project.optional-dependencies]\nfast = ["six", {}]\n'
    for more, found in (("'certifi'", True), ("'six<1'", False)):
        files = {
            "pyproject.toml": TreeEntry(project.format(more).encode()),
            "Makefile": TreeEntry(b"sync:\n\tuv sync --all-extras\n"),
        }
        environment = PythonEnvironments(tmp_path / "locks").of(files, THEN, "1", ("test_a.py",))
        assert environment.lock is not None
        assert ("six==" in (tmp_path / environment.lock).read_text()) == found


def test_a_project_that_its_test_tools_need_is_not_installed_beside_itself(tmp_path: Path) -> None:
    """Pytest of 2021 needs attrs."""
    files = {"pyproject.toml": TreeEntry(b'[project]\nname = "Attrs"\ndependencies = ["six"]\n')}
    found = PythonEnvironments(tmp_path / "locks").of(files, THEN, "1", ("test_a.py",))
    assert found.lock is not None
    locked = set(re.findall(r"^([a-z]+)==", (tmp_path / found.lock).read_text(), re.MULTILINE))
    assert "pytest" in locked
    assert "attrs" not in locked


def test_a_tool_that_never_had_a_wheel_is_left_out(tmp_path: Path) -> None:
    """The project itself does without it. Two of them: uv names one at a time."""
    files = {
        "pyproject.toml": TreeEntry(b'[project]\nname = "shop"\ndependencies = ["six"]\n'),
        "requirements.txt": TreeEntry(b"docopt==0.6.2\npytest==6.*\nmkautodoc==0.1.0\ncertifi\n"),
    }
    found = PythonEnvironments(tmp_path / "locks").of(files, THEN, "1", ("test_a.py",))
    assert found.lock is not None
    locked = set(re.findall(r"^([a-z]+)==", (tmp_path / found.lock).read_text(), re.MULTILINE))
    assert {"six", "pytest", "certifi"} <= locked
    assert not {"docopt", "mkautodoc"} & locked


def test_a_package_that_never_had_a_wheel_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"(?s)docopt.*--build permits"):
        PythonEnvironments(tmp_path / "locks").of(tree("docopt"), THEN, "1", ("test_a.py",))


@pytest.mark.needs("bwrap")
def test_such_a_package_is_built_if_that_is_permitted(tmp_path: Path) -> None:
    """In the sandbox, for its requirements stand in code."""
    found = PythonEnvironments(tmp_path / "locks", build=True).of(tree("docopt"), THEN, "1", ("test_a.py",))
    assert found.lock is not None
    lock = (tmp_path / found.lock).read_bytes()
    assert b"docopt==0.6.2" in lock
    ref = environment_ref(found, lock, find_interpreter(found.python))
    environment = build(ref, lock, cache=Cache(tmp_path / "cache"))
    assert (site_packages(environment) / "docopt.py").exists()
