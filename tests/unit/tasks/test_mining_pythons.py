"""Which Python a project names for itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger import interpreters
from trialfleet_repository.languages import PYTHON
from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.mining import python_environment
from trialfleet_tasks.mining.declared_pythons import find_declared_pythons

KNOWN = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
MATRIX = """
on: push
jobs:
  test:
    strategy: {matrix: {python-version: ["3.10", "3.11", 3.12], os: [ubuntu-22.04]}}
    steps: [{uses: actions/setup-python@v5, with: {python-version: "${{ matrix.python-version }}"}}]
"""
TOX = "[tox]\nenvlist =\n    py{39,310}-{a,b}\n    py311\n    lint\n\n[testenv]\ndeps = py313thing\n"


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({".python-version": "3.12\n"}, {"3.12"}),
        ({".python-version": "# ours\n3.11.4\n3.9\n"}, {"3.11"}),
        ({".python-version": "pypy3.9"}, set[str]()),
        ({"runtime.txt": "python-3.10.6"}, {"3.10"}),
        ({".tool-versions": "node 20.1\npython 3.11.2 3.9\n"}, {"3.11"}),
        ({"mise.toml": '[tools]\npython = "3.12"\n'}, {"3.12"}),
        ({".mise.toml": '[tools]\npython = ["3.11", "3.12"]\n'}, {"3.11"}),
        ({"mise.toml": '[tools]\npython = {version = "3.10", virtualenv = ".venv"}\n'}, {"3.10"}),
        ({"tox.ini": TOX}, {"3.9", "3.10", "3.11"}),
        ({"setup.cfg": TOX}, {"3.9", "3.10", "3.11"}),
        ({"tox.toml": 'env_list = ["3.12", "py311", "lint"]'}, {"3.11", "3.12"}),
        ({".github/workflows/test.yml": MATRIX}, {"3.10", "3.11", "3.12"}),
        ({".gitlab-ci.yml": "test: {image: 'python:3.11-slim', script: [pytest]}"}, {"3.11"}),
        ({"setup.py": "classifiers=['Programming Language :: Python :: 3.9']"}, {"3.9"}),
        ({".github/workflows/test.yml": MATRIX, "tox.ini": TOX}, {"3.10", "3.11"}),
        ({".python-version": "3.13", "tox.ini": TOX}, {"3.13"}),
        ({"pyproject.toml": "[project]\n"}, set[str]()),
    ],
)
def test_what_is_named(files: Mapping[str, str], wanted: set[str]) -> None:
    tree = {path: TreeEntry(text.encode()) for path, text in files.items()}
    assert all(map(PYTHON.is_manifest, tree)), "mining reads the content of these alone"
    assert find_declared_pythons(tree, KNOWN) == wanted


@given(
    st.sampled_from([".python-version", "tox.ini", "mise.toml", ".github/workflows/a.yml"]), st.binary(max_size=99)
)
def test_no_file_is_too_odd(path: str, content: bytes) -> None:
    find_declared_pythons({path: TreeEntry(content)}, KNOWN)


@pytest.mark.parametrize(
    ("version", "requires", "chosen"),
    [("3.11", "", "3.11"), ("3.11", ">=3.12", "3.12"), ("3.9", "", "3.12"), ("", "", "3.12")],
    ids=["named", "not permitted", "not on the machine", "nothing named"],
)
def test_the_named_version_is_taken(
    version: str, requires: str, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    have = ("3.11", "3.12")

    def present(wanted: tuple[str, ...]) -> list[interpreters.Interpreter]:
        return [interpreters.Interpreter(interpreters.Path("/python"), f"{v}.1") for v in wanted if v in have]

    monkeypatch.setattr(python_environment, "interpreters", lambda wanted: iter(present(wanted)))
    project = python_environment.PythonProject(requires_python=requires or None)
    declared = frozenset({version}) if version else frozenset[str]()
    assert python_environment._python(project, date(2026, 1, 1), declared) == chosen
