"""What could decide the tests by itself stays behind; the agent's real work travels."""

from __future__ import annotations

import pytest

from trialfleet_runner.exclusions import Exclusions

GIVEN = Exclusions.of(
    baseline=[
        "src/pkg/a.py",
        "tests/test_a.py",
        "tests/conftest.py",
        "test/sanity/x.py",
        "src/pkg/native.so",
        "pyproject.toml",
    ],
    test_files=["tests/test_a.py"],
    pythonpath=[".", "src"],
    travelling=["lib/plugins/test/files.py"],
)


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_a.py",
        "tests/test_a/__init__.py",  # a package is found before a module
        "tests/test_a.so",
        "tests/test_a.cpython-311-x86_64-linux-gnu.so",
        "tests/__init__.py",
        "tests/test_b.py",
        "tests/utils.py",
        "tests/data/test_a.json",
        "tests.py",
        "src/tests.py",
        "test/sanity/y.py",
        "lib/plugins/test/other.py",
        "src/pkg/test_inner.py",
        "tests/conftest.py",
        "conftest.py",
        "src/pkg/conftest.py",
        "pytest.ini",
        "pyproject.toml",
        "setup.cfg",
        "tox.ini",
        "sitecustomize.py",
        "src/usercustomize.py",
        "pytest.py",
        "pytest/__init__.py",
        "src/_pytest/config.py",
        "json.py",
        "src/unittest/__init__.py",
        "x.dist-info/entry_points.txt",
        "src/pkg.egg-info/entry_points.txt",
        "AGENTS.md",
        "src/CLAUDE.md",
        "src/pkg/__pycache__/a.cpython-311.pyc",
        "src/pkg/b.so",
        "hook.pth",
    ],
)
def test_stays_behind(path: str) -> None:
    assert GIVEN.excludes(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/pkg/a.py",
        "src/pkg/json.py",  # inside a package it hides nothing
        "src/pkg/new/deep.py",
        "lib/plugins/test/files.py",  # the fix changes it
        "src/pkg/testing.py",
        "src/pkg/contest.py",
        "src/pkg/native.so",
        "docs/index.rst",
    ],
)
def test_travels(path: str) -> None:
    assert not GIVEN.excludes(path)
