"""What a package's `test` script says of its test runner. Scripts are only read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

PACKAGES = ("vitest", "jest", "mocha", "react-scripts")  # runners that are packages
UNREAD = (
    "ava",
    "tap",
    "tape",
    "jasmine",
    "karma",
    "qunit",
    "uvu",
    "lab",
    "@hapi/lab",
    "@playwright/test",
    "cypress",
)
_CALLED = {  # runner by what a script calls
    **{name: re.compile(rf"\b{name}\b") for name in PACKAGES},
    "node": re.compile(r"\bnode\b.*--test\b"),
    "bun": re.compile(r"\bbun\b(?: --\S+)* test\b"),
}
# Options that decide how tests run. Which of them run, and how results are shown, is not the script's choice.
_OPTIONS: Mapping[str, str] = {
    "mocha": r"--require|-r|--file|--ui|-u|--timeout|-t|--config|--loader|--import|--extension"
    r"|--exit|--check-leaks",
    "jest": r"--config|-c|--env|--rootDir|--runInBand|-i",
    "react-scripts": r"--env|--runInBand|-i",
    "vitest": r"--config|-c|--environment|--pool|--globals|--dom",
}
_FLAGS = {"--exit", "--check-leaks", "--runInBand", "-i", "--globals", "--dom"}  # the others have a value
_OTHER_TESTS = re.compile(  # names of scripts: of unit tests that run once
    r"(?!.*(?:watch|dev|debug|update|e2e|integration|browser|types?|dts|lint|build|size|cov|bench|ui\b))"
    r"(?:tests?|unit)(?:[:_-][\w:.-]+)?|jest|mocha|vitest"
)
_SETS = re.compile(r"(?:NODE_ENV|NODE_OPTIONS|BABEL_ENV|TS_NODE_\w+|TZ)=.*", re.DOTALL)


def runners_of(script: str) -> tuple[str, ...]:
    """The test runners that it calls.

    >>> runners_of("eslint . && mocha test/")
    ('mocha',)
    """
    return tuple(runner for runner, called in _CALLED.items() if called.search(script))


def test_script(scripts: Mapping[str, str]) -> str:
    """The script that runs the tests: `test`, or if that calls no runner, the first similar script that does.

    >>> test_script({"test:types": "vitest --typecheck", "test:lib": "vitest run", "test": "nx test"})
    'vitest run'
    """
    return scripts.get(find_test_script_name(scripts), "")


def find_test_script_name(scripts: Mapping[str, str]) -> str:
    """The name of that script."""
    others = (name for name, text in scripts.items() if _OTHER_TESTS.fullmatch(name) and runners_of(text))
    return "test" if runners_of(scripts.get("test", "")) else next(others, "test")


def call_of(runner: str, script: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options and settings of variables with which it calls the runner. These are for tests alone: agents are
    programs of Node, too.

    >>> call_of("mocha", "eslint . && NODE_ENV=test mocha -r test/env --reporter spec --check-leaks test/")
    (('-r', 'test/env', '--check-leaks'), ('NODE_ENV=test',))
    >>> call_of("jest", "cross-env NODE_OPTIONS='--experimental-vm-modules' jest --config=unit.js --coverage")
    (('--config=unit.js',), ('NODE_OPTIONS=--experimental-vm-modules',))
    """
    parts = re.split(r"&&|\|\||[;|]", script) if runner in _OPTIONS else []
    try:
        words = shlex.split(next((part for part in parts if _CALLED[runner].search(part)), ""))
    except ValueError:
        return (), ()
    settings = tuple(word for word in words if _SETS.fullmatch(word) and "$" not in word)
    return tuple(_options(runner, words)), settings


def _options(runner: str, words: Sequence[str]) -> Iterator[str]:
    known = re.compile(rf"(?:{_OPTIONS.get(runner, '-')})(=.*)?", re.DOTALL)
    for word, following in pairwise([*words, "-"]):
        found = known.fullmatch(word)
        if found is None:
            continue
        if found[1] or word in _FLAGS:
            yield word
        elif not following.startswith("-"):
            yield from (word, following)
