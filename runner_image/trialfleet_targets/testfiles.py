"""Recognises test files, which are never targets."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from trialfleet_targets.syntax_facts import ParsedLanguage, language_of

_PYTHON = re.compile(r"test_.*|.*_tests?|tests?|conftest")
_SCRIPT = re.compile(
    r".*[.-](?:test|tests|spec|specs|e2e|cy|test-d|spec-d|bench)|tests?|setup-?tests?", re.IGNORECASE
)
_RUST = re.compile(r"tests?|test_?utils?|test_.*|.*_tests?")
_JAVA = re.compile(r"Test[A-Z_0-9].*|.*[a-z0-9_](?:Test|Tests|TestCase|IT|Spec)|Test|Tests")


def is_test(path: str) -> bool:
    """By folder and name, as test runners of the language find them and as projects lay them out. A package of
    product code named for testing (`flask/testing.py`, `src/main/java/…/testing/`) is none.

    >>> [is_test(p) for p in ("tests/test_a.py", "src/flask/testing.py", "pkg/a_test.go", "src/a.spec.ts")]
    [True, False, True, True]
    """
    language = language_of(path)
    if language is None:
        return False
    *folders, name = path.split("/")
    stem = name.partition(".")[0] if language is ParsedLanguage.PYTHON else name.rpartition(".")[0]
    return _RULES[language](folders, stem)


def _python(folders: list[str], stem: str) -> bool:
    return (
        bool(_PYTHON.fullmatch(stem))
        or _among(folders, {"test", "tests", "testdata"})
        or folders[:1] == ["testing"]
    )


def _script(folders: list[str], stem: str) -> bool:
    return bool(_SCRIPT.fullmatch(stem.removesuffix(".d"))) or _among(
        folders, {"test", "tests", "__mocks__", "__fixtures__", "e2e", "spec", "cypress"}
    )


def _go(folders: list[str], stem: str) -> bool:
    return stem.endswith("_test") or _among(folders, {"testdata", "test", "tests", "integration_test"})


def _rust(folders: list[str], stem: str) -> bool:
    return bool(_RUST.fullmatch(stem)) or _among(folders, {"tests", "test", "benches", "testdata"})


def _java(folders: list[str], stem: str) -> bool:
    """Maven's and Gradle's source sets say it; a package below `src/main` may be called `test`."""
    sets = [folder for before, folder in pairwise(folders) if before == "src"]
    if sets:
        return any(_is_test_set(name) for name in sets)
    return bool(_JAVA.fullmatch(stem)) or _among(folders, {"test", "tests"})


def _is_test_set(name: str) -> bool:
    """`src/test`, `src/androidTest`, `src/integrationTest`, `src/testFixtures`…"""
    return name.lower().startswith("test") or name.endswith(("Test", "Tests")) or name in ("it", "jmh")


def _among(folders: list[str], names: set[str]) -> bool:
    return any(
        folder in names or folder.startswith(("tests-", "__test")) or folder.endswith("-tests")
        for folder in map(str.lower, folders)
    )


_RULES: dict[ParsedLanguage, Callable[[list[str], str], bool]] = {
    ParsedLanguage.PYTHON: _python,
    ParsedLanguage.JAVASCRIPT: _script,
    ParsedLanguage.TYPESCRIPT: _script,
    ParsedLanguage.GO: _go,
    ParsedLanguage.RUST: _rust,
    ParsedLanguage.JAVA: _java,
}
