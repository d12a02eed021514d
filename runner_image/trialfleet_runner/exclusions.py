"""What of an agent's work does not travel to the scoring checkout: it could decide the tests by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from trialfleet_runner.context.anchor import is_test_path
from trialfleet_runner.strip import is_context_file

HARNESS = {
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "sitecustomize.py",
    "usercustomize.py",
}
_JUNK = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".coverage", ".venv", ".tox"}
_COMPILED = (".pyc", ".pyo", ".so", ".pth", ".egg-link")
_TEST_MODULES = {
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "xdist",
    "pytest_asyncio",
    "coverage",
    "py",
}
_SHADOWED = sys.stdlib_module_names | _TEST_MODULES | {"test", "tests"}  # tests.py is found before a plain tests/


def is_junk(path: str) -> bool:
    """What running programs leaves behind; nobody means it as a change."""
    return any(part in _JUNK for part in path.split("/")) or path.endswith((".pyc", ".pyo"))


@dataclass(frozen=True)
class Exclusions:
    """Decides for one task. `baseline`: paths that the agent was given; `pythonpath`: import roots; `travelling`:
    what the fix itself changes, which travels although it lies on a test path (lib/ansible/plugins/test/)."""

    baseline: frozenset[str]
    test_files: frozenset[str]
    pythonpath: tuple[str, ...] = (".",)
    travelling: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        baseline: Iterable[str],
        test_files: Iterable[str],
        pythonpath: Iterable[str],
        travelling: Iterable[str] = (),
    ) -> Exclusions:
        return cls(frozenset(baseline), frozenset(test_files), tuple(pythonpath), frozenset(travelling))

    def excludes(self, path: str) -> bool:
        """Whether a change of `path` stays behind: test files and all that supports them (other tests, their
        data), whatever would be imported in their place, the harness's own files, context files, packaging
        metadata (it names pytest plugins), and new modules that would hide the standard library or the test
        runner."""
        parts = path.split("/")
        return (
            path in self.test_files
            or (path not in self.travelling and is_test_path(path))
            or parts[-1].lower() in HARNESS
            or is_context_file(path)
            or is_junk(path)
            or any(part.endswith((".egg-info", ".dist-info")) for part in parts)
            or self._shadows_a_test(path)
            or (path not in self.baseline and (path.endswith(_COMPILED) or self._hides_a_module(path)))
        )

    def _shadows_a_test(self, path: str) -> bool:
        """`tests/test_a/__init__.py` and `tests/test_a.so` are found before `tests/test_a.py`."""
        if path in self.baseline:
            return False
        return any(
            path.startswith(stem + "/") or (path.startswith(stem + ".") and "/" not in path[len(stem) :])
            for stem in self._test_stems
        )

    def _hides_a_module(self, path: str) -> bool:
        for root in self._roots:
            if path.startswith(root):
                first = path[len(root) :].partition("/")[0]
                module = first.partition(".")[0]
                if module in _SHADOWED and (root, first) not in self._tops:
                    return True
        return False

    @cached_property
    def _test_stems(self) -> tuple[str, ...]:
        return tuple(test.removesuffix(".py") for test in self.test_files if test.endswith(".py"))

    @cached_property
    def _roots(self) -> tuple[str, ...]:
        """Prefixes of import roots: "" for the workspace itself, where `python -m` starts."""
        named = (str(PurePosixPath(entry)) for entry in self.pythonpath)
        return tuple(dict.fromkeys(("", *(f"{name}/" for name in named if name != "."))))

    @cached_property
    def _tops(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            (root, path[len(root) :].partition("/")[0])
            for root in self._roots
            for path in self.baseline
            if path.startswith(root)
        )
