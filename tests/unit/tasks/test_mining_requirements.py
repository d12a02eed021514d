"""Test dependencies from wherever projects declare them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.languages import PYTHON
from trialfleet_repository.trees import Tree, TreeEntry
from trialfleet_tasks.mining.declared_requirements import find_test_requirements
from trialfleet_tasks.mining.python_lock import WantedLock, without_wheels
from trialfleet_tasks.mining.python_project import read_project
from trialfleet_tasks.mining.python_workspace import project_of_tests


def tree(files: Mapping[str, str]) -> Tree:
    """As mining reads it: content of files that describe the project only."""
    return {path: TreeEntry(text.encode() if PYTHON.is_manifest(path) else b"") for path, text in files.items()}


TOX = """
[tox]
envlist = py311,lint
[testenv]
deps =
    pytest>=7  # the runner
    -r{toxinidir}/needs/base.txt
    py38: six
    django32: Django>=3.2,<4
    -c limits.txt
commands = pytest {posargs}
[testenv:lint]
deps = ruff
[testenv:py311-new]
deps =
    {[testenv]deps}
    trio
[testenv:tests]
commands_pre = python -m pip install "attrs>=22" .
"""
NOX = """
import nox
COMMON = ["pytest", "pytest-mock>=3"]

@nox.session(python=["3.11"])
def tests(session):
    session.install(*COMMON, "-r", "needs/base.txt", "-e", ".[test]")
    session.run("pytest")

@nox.session
def lint(session):
    session.install("ruff")

@nox.session
def check(session: nox.Session) -> None:
    session.install("hypothesis")
    session.run("python", "-m", "pytest")
"""
CI = """
on: push
jobs:
  docs:
    steps: [{run: pip install sphinx}]
  test:
    steps:
      - run: |
          python -m pip install --upgrade pip
          pip install -e .[test] "pytest<9" \\
            pytest-mock -r needs/base.txt --index-url https://example.org/simple
          uv pip install "numpy>=1.26" && pip install $EXTRA other
      - run: pytest
"""
PLACES: dict[str, tuple[Mapping[str, str], list[str]]] = {
    "tox.ini": (
        {"tox.ini": TOX, "needs/base.txt": "", "limits.txt": "x"},
        ["pytest>=7", "six", "trio", "attrs>=22"],
    ),
    "tox includes": (
        {
            "tox.ini": "[testenv]\ndeps = -rrequirements/a.txt\n    -c requirements/limits.txt",
            "requirements/a.txt": "-r b.in\nmock",
            "requirements/b.in": "trio>=0.2 ; python_version > '3.8'  # why\n--index-url x\n./local",
            "requirements/limits.txt": "trio<1\nother<2",
        },
        ['trio>=0.2; python_version > "3.8"', "mock", "trio<1"],
    ),
    "tox in setup.cfg": ({"setup.cfg": "[testenv]\ndeps = pytest-mock\n"}, ["pytest-mock"]),
    "tox.toml": (
        {"tox.toml": 'env_run_base.deps = ["pytest-mock"]\nenv.tests.deps = ["trio"]\nenv.docs.deps = ["a"]'},
        ["pytest-mock", "trio"],
    ),
    "tox in pyproject.toml": (
        {"pyproject.toml": '[tool.tox]\nlegacy_tox_ini = """\n[testenv]\ndeps = pytest-mock\n"""'},
        ["pytest-mock"],
    ),
    "nox": ({"noxfile.py": NOX, "needs/base.txt": "x"}, ["pytest", "pytest-mock>=3", "hypothesis"]),
    "hatch": (
        {"pyproject.toml": '[tool.hatch.envs.default]\ndependencies = ["trio"]\n[tool.hatch.envs.hatch-test]\n'
         'extra-dependencies = ["pytest-mock"]\n[tool.hatch.envs.docs]\ndependencies = ["mkdocs"]'},
        ["trio", "pytest-mock"],
    ),
    "hatch.toml": ({"hatch.toml": '[envs.test]\ndependencies = ["trio"]'}, ["trio"]),
    "uv": ({"pyproject.toml": '[tool.uv]\ndev-dependencies = ["trio>=0.2"]'}, ["trio>=0.2"]),
    "rye": ({"pyproject.toml": '[tool.rye]\ndev-dependencies = ["trio"]'}, ["trio"]),
    "pixi": (
        {"pixi.toml": '[pypi-dependencies]\ntrio = "*"\n[feature.test.dependencies]\npytest = "8"\npython = "3"\n'
         '[feature.docs.dependencies]\nsphinx = "*"\n[feature.test.pypi-dependencies]\nown = {path = "."}'},
        ["trio", "pytest"],
    ),
    "Pipfile": (
        {"Pipfile": '[packages]\nattrs = "==22.1"\n[dev-packages]\ntrio = "*"\n'
         'coverage = {version = ">=7", extras = ["toml"]}\nown = {editable = true, path = "."}'},
        ["attrs==22.1", "trio", "coverage[toml]>=7"],
    ),
    "conda": (
        {"ci/environment-test.yml": "dependencies: [python=3.11, conda-forge::numpy=1.26, scipy >=1.9, pip, "
         "{pip: [trio, 'a @ git+https://example.org/a']}]"},
        ["numpy==1.26.*", "scipy>=1.9", "trio"],
    ),
    "requirements of tests": ({"tests/requirements.txt": "-r ../base.txt\ntrio", "base.txt": "x"}, ["trio"]),
    "requirements/tests.txt": ({"requirements/tests.txt": "trio==0.2 \\\n    --hash=sha256:00"}, ["trio==0.2"]),
    "test-requirements.txt": ({"test-requirements.txt": "trio"}, ["trio"]),
    "CI": ({".github/workflows/a.yml": CI}, ["pytest<9", "pytest-mock", "numpy>=1.26"]),
    "GitLab": (
        {".gitlab-ci.yml": "a: {before_script: [pip install trio], script: [tox]}\nd: {script: [pip install b]}"},
        ["trio"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_what_tests_need_is_found(place: str) -> None:
    files, wanted = PLACES[place]
    assert list(find_test_requirements(tree(files))) == wanted


@pytest.mark.parametrize("place", ["setup.py", "setup.cfg"])
def test_tests_require(place: str) -> None:
    text = {"setup.py": "setup(tests_require=['trio'])", "setup.cfg": "[options]\ntests_require = trio\n"}[place]
    project = read_project(tree({place: text}))
    assert project.for_tests == ("trio",)
    assert "trio" in project.requirements(development=False, more=project.for_tests)
    assert "trio" not in project.requirements(development=False)


@given(st.sampled_from(sorted({path for files, _ in PLACES.values() for path in files})), st.binary(max_size=300))
def test_no_file_is_too_odd(path: str, content: bytes) -> None:
    find_test_requirements({path: TreeEntry(content)})


@given(st.sampled_from(sorted(PLACES)), st.data())
def test_no_cut_file_is_too_odd(place: str, data: st.DataObject) -> None:
    files = {p: text[: data.draw(st.integers(0, len(text)))] for p, text in PLACES[place][0].items()}
    find_test_requirements(tree(files))


def test_files_that_include_each_other_end() -> None:
    there, back = "-r requirements.txt\n-r ../requirements.txt\na", "-r tests/requirements.txt\nb"
    files = {"tests/requirements.txt": there, "requirements.txt": back}
    assert set(find_test_requirements(tree(files))) == {"a", "b"}


def test_a_package_that_no_index_has_is_left_out() -> None:
    said = "Because pytorch-base was not found in the package\n   registry and you require pytorch-base, we can"
    assert without_wheels(OperatorError(said)) == {"pytorch-base"}


def test_what_is_too_old_for_a_package_may_be_newer_as_well() -> None:
    """As of 2014, no release of pytest has a wheel; the first that has needs a newer py."""
    said = "Because only py<=1.4.20 is available and pytest==2.7.1 depends on py>=1.4.25, we can conclude that it"
    assert without_wheels(OperatorError(said)) == {"py"}
    assert without_wheels(OperatorError("Because only the following versions of pytest are available")) == set()


# What a line of requirements could be besides a requirement, wherever a repository may write one.
ODD = st.lists(
    st.sampled_from(
        [
            *("\n", "\r", "\x0b", "\u2028", "\\", "===", "==1", "; os_name == 'x", "'", " "),
            *("${UV_INDEX_OURS_PASSWORD}", " @ https://h/", " --hash=sha256:0", " --extra-index-url https://h"),
            "-r /etc/passwd",
        ]
    ),
    min_size=1,
    max_size=4,
).map("".join)
WRITTEN = {
    "uv.lock": "[[package]]\nname = {0}\nversion = {1}\n",
    "poetry.lock": "[[package]]\nname = {0}\nversion = {1}\n",
    "pdm.lock": "[[package]]\nname = {0}\nversion = {1}\n",
    "pylock.toml": "[[packages]]\nname = {0}\nversion = {1}\n",
    "pyproject.toml": "[project]\nname = {0}\ndependencies = [{0}, {1}]\n[dependency-groups]\ntest = [{0}]\n"
    "[tool.poetry.dependencies]\nx = {1}\n[tool.hatch.envs.test]\ndependencies = [{0}]\n",
    "Pipfile": "[packages]\nx = {0}\ny = {{version = {1}, extras = [{0}]}}\n",
    "setup.py": "setup(name={0}, install_requires=[{0}, {1}], extras_require={{'test': [{1}]}})\n",
    "pixi.toml": "[dependencies]\nx = {1}\n[pypi-dependencies]\ny = {0}\n",
    "environment.yml": "dependencies: [{0}, {{pip: [{1}]}}]\n",
}


@given(st.sampled_from(list(WRITTEN)), ODD, ODD, st.booleans())
def test_nothing_but_requirements_and_pins_reaches_uv(place: str, first: str, second: str, named: bool) -> None:
    """`WantedLock` has all that uv reads, and refuses another line."""
    name, version = (f"x{first}" if not named else "x"), f"1{second}"
    text = WRITTEN[place].format(json.dumps(name), json.dumps(version))
    project, _ = project_of_tests({place: TreeEntry(text.encode())}, ("test_a.py",))
    requirements = project.requirements(development=True, more=project.for_tests)
    wanted = WantedLock(requirements, project.pins_without(()), "3.11", date(2024, 1, 1))
    for line in (*wanted.text.decode().splitlines(), *wanted.pins):
        assert not set(line) & set("$@:/\\\n\r"), line


@pytest.mark.parametrize(
    "line", ["x==1\n-r y", "x @ https://h/x.whl", "x===1\\", "x===${A}", "-r y", "x==1\r-r y"]
)
def test_control_other_lines_are_no_wish(line: str) -> None:
    for lines in (((line,), ()), ((), (line,))):
        with pytest.raises(ValueError, match="uv may be given"):
            WantedLock(*lines, "3.11", date(2024, 1, 1))


def test_the_locks_other_entries_are_named() -> None:
    lock = '[[package]]\nname = "a"\nversion = "1"\n[[package]]\nname = "b"\nversion = "1\\n-r x"\n'
    project = read_project(tree({"poetry.lock": lock}))
    assert (project.pins, project.odd_pins) == (("a==1",), ("poetry.lock: b 1\n-r x",))


def test_pytest_is_never_older_than_the_options_of_our_call() -> None:
    for day, counts in ((date(2016, 1, 15), True), (date(2016, 9, 2), False)):
        arguments = WantedLock(("pytest",), (), "3.6", day).arguments(Path("c"))
        assert ("--exclude-newer-package=pytest=2016-09-01" in arguments) is counts


def test_releases_that_were_uploaded_again_are_there_before_that_day() -> None:
    """Else pytest 5 cannot be had as of 2019, and a resolver takes 3.5."""
    old, new = (WantedLock(("pytest",), (), "3.8", date(year, 7, 18)) for year in (2019, 2023))
    assert "--exclude-newer-package=atomicwrites=2022-07-09" in old.arguments(Path("c"))
    assert not any(word.startswith("--exclude-newer-package") for word in new.arguments(Path("c")))
    assert (old.uploaded_again, new.uploaded_again) == (("atomicwrites<1.4.1",), ())
