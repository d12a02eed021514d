"""A format of test results: how a test runner is given its tests, how its report is read, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from trialfleet_repository.languages.must_fail import MakeMustFail, make_none
from trialfleet_repository.languages.run_files import RunFiles
from trialfleet_repository.languages.settings_record import NO_PLUGIN, SettingsPlugin
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.generic import read_junit

ReadFile = Callable[[str], bytes | None]  # the content of a repository's file, None when there is no such file


def _give_units(tests: Sequence[str], _: ReadFile) -> tuple[str, ...]:
    return each_once(units_of(tests))


def no_unit(_: str) -> str | None:
    """Of runners whose results do not tell the file of a test."""
    return None


def name_unit_by_file(path: str) -> str:
    """Of runners whose results name the file of a test."""
    return path


def _end_with_one(_: int) -> Collection[int]:
    return (1,)


@dataclass(frozen=True)
class ReportFormat:
    """`name`: as task files have it. `read`: raises `ResultError` or `JUnitError` when there are no results.
    `arguments`: what replaces `{tests}` for ids (`unit::name`) or test files, by default the units. `suffixes`: of
    test files that the runner can be given. `framework`: the test framework as people name it; None: nobody knows.
    `exit_codes`: of the runner when so many tests failed. `from_directory`: paths that it is given start at the
    folder that it is called in. `must_fail`: how tests that must fail are made for it. `plugin`: what makes it do
    without the project's settings that change which tests count. `unit_of`: the unit that results of a test file
    have; None where that is not known. `listing`: a shell script that writes a settings record of the tests that
    its arguments, those of the runner, stand for; empty where the run itself tells them, or nothing does."""

    name: str
    read: Callable[[RunFiles], ReadResults]
    suffixes: tuple[str, ...]
    framework: str | None = None
    arguments: Callable[[Sequence[str], ReadFile], tuple[str, ...]] = _give_units
    exit_codes: Callable[[int], Collection[int]] = _end_with_one
    from_directory: bool = True
    must_fail: MakeMustFail = make_none
    plugin: SettingsPlugin = NO_PLUGIN
    unit_of: Callable[[str], str | None] = no_unit
    listing: str = ""


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
