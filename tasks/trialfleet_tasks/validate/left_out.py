"""Which tests of a task's files do not count, and why. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from trialfleet_repository.languages import format_named
from trialfleet_repository.results.junit import JunitCase
from trialfleet_repository.testrun import TestRun

DIFFERS = "differs between runs"
LATE = "fails by its own time limit alone"
NAMES_A_PLACE = "names a path of this machine"
DESELECTED = "left out by the project's own settings"
UNTOLD = "uses a name that only the fix adds"
WHOLE_FILE = "whole file: "
_MODULE = re.compile(r"(?:could not import|No module named) '([A-Za-z_][\w.]{0,60})'")
_MOST_NAMED = 5000  # skipped tests
_MOST_MODULES = 10  # that are named: what is skipped says so in its own words, which may be anything
_AT_FIX: Mapping[str, str] = {"skipped": "skipped", "failed": "fails at the fix", "error": "fails at the fix"}
_BEFORE: Mapping[str, str] = {
    "skipped": "skipped before the fix",
    "error": "is an error before the fix, not a failure",
}


def explain_left_out(before: str | None, after: str | None) -> str:
    """Of a test that counts neither as fail-to-pass nor as pass-to-pass, by its outcomes; None: it has none.

    >>> explain_left_out("passed", None), explain_left_out(None, "passed"), explain_left_out("failed", "skipped")
    ('has no result at the fix', 'has no result before the fix', 'skipped')
    """
    if after is None:
        return "has no result at the fix"
    if after in _AT_FIX:
        return _AT_FIX[after]
    return "has no result before the fix" if before is None else _BEFORE.get(before, DIFFERS)


def find_lacking_modules(run: TestRun, files: Sequence[str]) -> dict[str, str]:
    """At the fixed tree: id of a test that is skipped for want of a module, or path of a file of which no test has
    a result -> why."""
    lacking = ((case, module) for case in run.cases or () if (module := _module_of(case)) is not None)
    named = tuple(islice(lacking, _MOST_NAMED))
    few = len({module for _, module in named}) <= _MOST_MODULES
    found: dict[str, str] = {}
    for case, module in named:
        said = f"module {module} is not installed" if few else "a module is not installed"
        as_file = replace(
            case, classname=case.name, name="x"
        )  # so pytest reports a file that is skipped as a whole
        found |= dict.fromkeys(replace(run, cases=(case,)).outcomes(files), said)
        whole = (file for file in files if run.format == "pytest" and _ran((as_file,), run, file))
        found |= dict.fromkeys(whole, WHOLE_FILE + said)
    silent = (file for file in files if not _ran(run.cases or (), run, file))
    ignored = (file for file in files if file in run.settings.ignored)
    found |= dict.fromkeys(ignored, f"{WHOLE_FILE}its build constraints leave it out here")
    return dict.fromkeys(silent, f"{WHOLE_FILE}no test of it has a result") | found


def _ran(cases: tuple[JunitCase, ...], run: TestRun, file: str) -> bool:
    """Whether a test of the file is among the cases; true where results do not tell files."""
    if run.format == "pytest":
        return bool(replace(run, cases=cases).outcomes([file]))
    unit = format_named(run.format).unit_of(file)
    units = {case.classname.partition("$")[0] for case in cases if case.name}  # of a class: nested ones as well
    return unit is None or unit.partition("$")[0] in units


def _module_of(case: JunitCase) -> str | None:
    match = _MODULE.search(f"{case.message}\n{case.text}") if case.outcome == "skipped" else None
    return match[1] if match else None


def count_left_out(reasons: Mapping[str, str]) -> dict[str, int]:
    """Reason -> how many tests, the most frequent first."""
    return dict(Counter(reasons.values()).most_common())


def describe_left_out(counts: Mapping[str, int]) -> tuple[str, ...]:
    """As one sentence; nothing where all tests count.

    >>> describe_left_out({"skipped": 2, "whole file: no test of it has a result": 1})
    ("tests of the task's files that do not count: 2 skipped; 1 whole file: no test of it has a result",)
    """
    parts = [f"{number} {reason}" for reason, number in counts.items()]
    return (f"tests of the task's files that do not count: {'; '.join(parts)}",) if parts else ()
