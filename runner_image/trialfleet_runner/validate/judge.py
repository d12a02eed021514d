"""What runs at both trees say about a task. Pure: outcomes in, problems out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trialfleet_runner import testrun
from trialfleet_runner.junit import collection_failures
from trialfleet_runner.testrun import TestRun
from trialfleet_runner.validate.record import Problem, ProblemKind

_ERROR = re.compile(r"(?:E\s+|ERROR:?\s+)?[\w.]*(?:Error|Exception|ERROR)\b")
Outcomes = Mapping[str, str]  # test id -> outcome of one run; absent: missing

_HINTS: Mapping[str, str] = {
    "collection_error": "a test that cannot be collected fails for every agent alike: choose tests that import at "
    "the pre-fix tree, or add what is missing to the lock",
    "no_tests_collected": "check test_file, test_pattern and the pytest options of the repository",
    "usage_error": "check the test ids, test_file and test_command",
    "internal_error": "run the command by hand; a plugin may be missing from the lock",
    "interrupted": "run the command by hand",
    "timeout": "raise the tests' time-out or choose fewer tests",
    "resources": "raise the memory limit",
    "missing_interpreter": "check the first word of test_command",
    "not_executable": "check the first word of test_command",
    "signal": "the interpreter crashed: check the lock",
    "no_junit": "test_command must write JUnit XML to {junit}",
}
_SAID = {
    "collection_error": "the tests cannot be collected",
    "no_tests_collected": "no test was collected",
    "usage_error": "pytest refused its arguments (a wrong path or option)",
    "internal_error": "pytest broke",
    "interrupted": "the tests were interrupted",
    "timeout": "the tests took too long",
    "resources": "the tests ran out of memory or disk",
    "missing_interpreter": "the program of test_command does not exist",
    "not_executable": "the program of test_command cannot be executed",
    "signal": "the tests were killed by a signal",
    "no_junit": "no JUnit XML was written",
}


def not_a_run(run: TestRun, tree: str) -> Problem | None:
    """Why this is no run of tests; `tree` says where ("pre-fix tree")."""
    found = testrun.trouble(run)
    if found is None:
        return None
    return Problem(
        kind=ProblemKind(found),
        message=f"at the {tree}: {_SAID[found]} (exit {run.exit.code}){_detail(run)}",
        hint=_HINTS[found],
    )


def _detail(run: TestRun) -> str:
    """The line that names an error, or the last lines."""
    failures = collection_failures(run.cases or ())
    text = failures[0].text if failures else run.output
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    named = [line for line in lines if _ERROR.match(line)]
    return ": " + " | ".join(named[-1:] or lines[-3:])[:400] if lines else ""


@dataclass(frozen=True)
class Found:
    """Ids that a discovery found, and what it found odd."""

    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    warnings: tuple[str, ...] = field(default=())
    problems: tuple[Problem, ...] = field(default=())


def discover(before: Outcomes, after: Outcomes, *, places: Iterable[str] = ()) -> Found:
    """Fail-to-pass: fails as a test before and passes after. Pass-to-pass: passes both times.

    An id that holds one of `places` (paths that are others on other machines, as in a test's parameters) is left
    out: elsewhere no test has it.
    """
    bound = tuple(i for i in after if any(place in i for place in places))
    before, after = ({i: said for i, said in run.items() if i not in bound} for run in (before, after))
    fail = tuple(i for i in after if after[i] == "passed" and before.get(i) == "failed")
    keep = tuple(i for i in after if after[i] == "passed" and before.get(i) == "passed")
    local = tuple(f"{i}: left out, it names a path of this machine" for i in bound)
    warnings = local + tuple(
        f"{i}: {before[i]} before and {after.get(i, 'missing')} after the fix"
        for i in before
        if before[i] in ("failed", "error") and i not in fail
    )
    if fail:
        return Found(fail, keep, warnings)
    if any(outcome in ("failed", "error") for outcome in before.values()):
        problem = Problem(
            kind=ProblemKind.NO_FAIL_TO_PASS,
            message="no test that fails at the pre-fix tree passes at the fixed one: " + "; ".join(warnings[:3]),
            hint="check the two trees and the lock",
        )
    else:
        problem = Problem(
            kind=ProblemKind.ALREADY_PASSES,
            message="every test passes at the pre-fix tree already",
            hint="choose the tests that show the bug",
        )
    return Found((), keep, warnings, (problem,))


def steady(found: Found, before: Sequence[Outcomes], after: Sequence[Outcomes]) -> Found:
    """What stays of a discovery when the runs are repeated; what wavers is dropped and named."""
    fail = tuple(i for i in found.fail_to_pass if _always(i, before, "failed") and _always(i, after, "passed"))
    keep = tuple(i for i in found.pass_to_pass if _always(i, (*before, *after), "passed"))
    lost = [i for i in (*found.fail_to_pass, *found.pass_to_pass) if i not in {*fail, *keep}]
    warnings = (*found.warnings, *(f"{i}: dropped, its outcome wavers" for i in lost))
    if fail or found.problems:
        return Found(fail, keep, warnings, found.problems)
    problem = Problem(
        kind=ProblemKind.FLAKY,
        message="no fail-to-pass test is steady: " + "; ".join(lost[:3]),
        hint="choose tests that do not depend on time, order or network",
    )
    return Found((), keep, warnings, (problem,))


def check(
    fail: Iterable[str], keep: Iterable[str], before: Sequence[Outcomes], after: Sequence[Outcomes]
) -> tuple[Problem, ...]:
    """Problems of ids that the task file names: every fail-to-pass fails as a test before, all pass after."""
    fail, keep = tuple(fail), tuple(keep)
    found = [_judged(i, [run.get(i, "missing") for run in before], "failed", "pre-fix tree") for i in fail]
    found += [_judged(i, [run.get(i, "missing") for run in after], "passed", "fixed tree") for i in (*fail, *keep)]
    return tuple(problem for problem in found if problem is not None)


def _always(test: str, runs: Sequence[Outcomes], wanted: str) -> bool:
    return all(run.get(test) == wanted for run in runs)


def _judged(test: str, seen: Sequence[str], wanted: str, tree: str) -> Problem | None:
    if all(outcome == wanted for outcome in seen):
        return None
    if wanted in seen:
        said = ", ".join(seen)
        return Problem(
            kind=ProblemKind.FLAKY,
            message=f"{test}: at the {tree}: {said}",
            hint="choose tests that do not depend on time, order or network",
        )
    outcome = seen[0]
    if outcome == "missing":
        return Problem(
            kind=ProblemKind.MISSING_TEST,
            message=f"{test}: was not run at the {tree}",
            hint="check the id; `validate --write` with an empty list fills them in",
        )
    if wanted == "failed":
        if outcome == "passed":
            return Problem(kind=ProblemKind.ALREADY_PASSES, message=f"{test}: passes at the {tree} already")
        return Problem(
            kind=ProblemKind.NOT_AS_TEST,
            message=f"{test}: {outcome} at the {tree}; it must fail as a test",
            hint="an error in a fixture and a skip say nothing about the bug",
        )
    return Problem(
        kind=ProblemKind.FAILS_AT_FIX,
        message=f"{test}: {outcome} at the {tree}",
        hint="check the lock: newer packages may break old tests",
    )
