"""Python."""

from __future__ import annotations

import re

from trialfleet_repository.languages.protocol import Language, is_test_path, names_of
from trialfleet_repository.languages.python.distribution import find_distribution
from trialfleet_repository.languages.python.names import NAMES
from trialfleet_repository.languages.python.pass_cautions import PASS_CAUTIONS
from trialfleet_repository.languages.python.product import find_python_product
from trialfleet_repository.languages.python.pytest import PYTEST
from trialfleet_repository.languages.python.survey import SURVEY
from trialfleet_repository.languages.python.unittest_runner import UNITTEST

HARNESS = {
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    ".coveragerc",  # names plugins of coverage, which are imported with it
    ".coveragerc.toml",
    "sitecustomize.py",
    "usercustomize.py",
    "runtests.py",
    "nose2.cfg",
    "unittest.cfg",
    ".stestr.conf",
}
"""Files that decide how Python's tests run. Some are also read from the folders above a workspace."""
TEST_SCRIPTS = ("manage.py", "runtests.py")  # of a project, which run its tests
_DEEPEST, _DEEPEST_SCRIPT = 4, 1  # folders above a package's manifest, and above such a script


def _is_test_module(path: str) -> bool:
    """Whether pytest would collect it by its default names, or Django by its usual one."""
    name = path.rpartition("/")[2]
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py") or name == "tests.py")


def is_workflow(path: str) -> bool:
    """Whether the file says what CI runs.

    >>> is_workflow(".github/workflows/test.yml"), is_workflow("docs/test.yml")
    (True, False)
    """
    return path == ".gitlab-ci.yml" or (path.startswith(".github/workflows/") and path.endswith((".yml", ".yaml")))


def is_command_file(path: str) -> bool:
    """Whether the file may say how the project's tests are called."""
    script = path.count("/") <= _DEEPEST_SCRIPT and path.rpartition("/")[2] in TEST_SCRIPTS
    return script or path in ("tox.ini", "noxfile.py", "Makefile") or is_workflow(path)


_MANIFESTS = frozenset(
    {"pyproject.toml", "setup.cfg", "setup.py", "Pipfile", "hatch.toml", "pixi.toml", "tox.toml", "runtime.txt"}
    | {".python-version", ".tool-versions", "mise.toml", ".mise.toml"}
    | {"uv.lock", "pdm.lock", "poetry.lock", "pylock.toml"}
)
_CONDA = re.compile(r"(?:^|/)[\w.-]*env(?:ironment)?[\w.-]*\.ya?ml$")


def is_requirements(path: str) -> bool:
    """Whether the file lists packages, one a line.

    >>> is_requirements("tests/requirements.txt"), is_requirements("requirements/ci.in"), is_requirements("b.txt")
    (True, True, False)
    """
    *_, folder, name = ("", *path.split("/"))
    return name.endswith((".txt", ".in")) and ("requirements" in f"{folder}/{name}" or "constraints" in name)


def is_metadata(path: str) -> bool:
    """Whether the file describes a project, what its tests need, or how they are called.

    >>> is_metadata("pyproject.toml"), is_metadata("requirements/test.txt"), is_metadata("src/shop/cart.py")
    (True, True, False)
    >>> is_metadata("packages/cart/pyproject.toml"), is_metadata("tests/data/pyproject.toml")
    (True, False)
    >>> is_metadata("tests/requirements.txt"), is_metadata("ci/environment.yml"), is_metadata("docs/env.yml")
    (True, True, True)
    """
    depth = path.count("/")
    if is_command_file(path) or (depth <= 2 and (is_requirements(path) or _CONDA.search(path))):
        return True
    if depth > _DEEPEST or is_test_path(path):
        return False
    return path.rpartition("/")[2] in _MANIFESTS or is_requirements(path)


PYTHON = Language(
    name="Python",
    suffixes=(".py",),
    test_paths=re.compile(r"/(?:conftest|tests|test_[^/]*|[^/]*_test)\.py\Z|\A/testing/[\s\S]*\.py\Z"),
    is_test_module=_is_test_module,
    is_manifest=is_metadata,
    harness=re.compile(names_of(*HARNESS)),
    junk=re.compile(
        r"/(?:__pycache__|\.(?:pytest_cache|mypy_cache|ruff_cache|hypothesis|coverage(?:\.[^/]+)?|venv|tox|nox))(?:/|\Z)"
        r"|\.py[co]\Z"
    ),
    product_files=find_python_product,
    kind="python",
    find_package=find_distribution,
    formats=(PYTEST, UNITTEST),
    names=NAMES,
    pass_cautions=PASS_CAUTIONS,
    too_old=re.compile(r"(?i)the project needs Python [^\n]+, which this machine does not have"),
    survey=SURVEY,
)
