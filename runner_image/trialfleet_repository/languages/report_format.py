"""A format of test results: how a test runner is given its tests, how its report is read, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trialfleet_repository.languages.must_fail import MakeMustFail, make_none
from trialfleet_repository.languages.run_files import RunFiles
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.generic import read_junit

ReadFile = Callable[[str], bytes | None]  # the content of a repository's file, None when there is no such file


def _give_units(tests: Sequence[str], _: ReadFile) -> tuple[str, ...]:
    return each_once(units_of(tests))


def _end_with_one(_: int) -> Collection[int]:
    return (1,)


@dataclass(frozen=True)
class ReportFormat:
    """`name`: as task files have it. `read`: raises `ResultError` or `JUnitError` when there are no results.
    `arguments`: what replaces `{tests}` for ids (`unit::name`) or test files, by default the units. `suffixes`: of
    test files that the runner can be given. `framework`: the test framework as people name it; None: nobody knows.
    `exit_codes`: of the runner when so many tests failed. `from_directory`: paths that it is given start at the
    folder that it is called in. `must_fail`: how tests that must fail are made for it. `plugin`: a module of ours
    that the runner loads. `recorder`: one that runs the call in its own process and writes the report."""

    name: str
    read: Callable[[RunFiles], ReadResults]
    suffixes: tuple[str, ...]
    framework: str | None = None
    arguments: Callable[[Sequence[str], ReadFile], tuple[str, ...]] = _give_units
    exit_codes: Callable[[int], Collection[int]] = _end_with_one
    from_directory: bool = True
    must_fail: MakeMustFail = make_none
    plugin: Path | None = None
    recorder: Path | None = None


def units_of(tests: Iterable[str]) -> list[str]:
    """The files, packages or classes of ids."""
    return [test.partition("::")[0] for test in tests]


def each_once(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


# A shell has the codes above 124
ANY_JUNIT = ReportFormat(
    "junit", lambda files: read_junit(files.read_report()), ("",), exit_codes=lambda _: range(1, 125)
)
"""Of a task's own command: nothing is known of the runner."""
