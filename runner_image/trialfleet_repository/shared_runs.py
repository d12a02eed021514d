"""What a run with tests that must fail says of a pass. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import PurePosixPath

from trialfleet_ledger.records.task_order import MustFailTest
from trialfleet_repository.passed_runs import agrees, all_passed
from trialfleet_repository.results.junit import JunitCase, collection_failures
from trialfleet_repository.testrun import TestRun, trouble

PASSED = "tests that must fail passed"  # why a pass is forged


class SharedRun(Enum):
    """What a run of the judged tests with those that must fail shows. PASSED: all judged tests passed, each of the
    others failed, and nothing else did. FAILED: a judged test did not pass, for which the file of the others is no
    cause. UNCLEAR: only a run without that file can tell."""

    PASSED = "passed"
    FAILED = "failed"
    UNCLEAR = "unclear"


def judge_shared(run: TestRun, test: MustFailTest, ids: Sequence[str]) -> SharedRun:
    """`ids`: of the judged tests. The file must be the last that ran: then what its tests do is no cause of what
    the others did. A run that was ended for its time or its resources, or gave no results, is unclear."""
    alone = without_must_fail(run, test)
    if alone.cases and collection_failures(alone.cases):
        return SharedRun.FAILED
    if trouble(alone) is not None or not _ran_last(run, test):
        return SharedRun.UNCLEAR
    if not all_passed(alone.results(ids)):
        return SharedRun.FAILED
    outcomes = run.function_outcomes(test.path)
    failed = all(outcomes.get(name) == {"failed"} for name in test.ids)
    return SharedRun.PASSED if failed and run.exit.code == test.exit_code and agrees(alone) else SharedRun.UNCLEAR


def without_must_fail(run: TestRun, test: MustFailTest) -> TestRun:
    """The run as it would have been without the file: its results, and 0 where its failures alone decided the exit
    code."""
    cases = None if run.cases is None else tuple(case for case in run.cases if not _is_of(test, case))
    code = 0 if run.exit.code == test.exit_code else run.exit.code
    return replace(run, cases=cases, exit=replace(run.exit, code=code))


def contradicts_pass(run: TestRun, test: MustFailTest, wanted: Sequence[str]) -> bool:
    """Whether a run of the wanted tests and of those that must fail shows that something makes tests pass: all
    wanted ones pass, and so does one that must fail, or no result names these, or the exit code says that none
    failed.

    A file that could not be loaded, a test that is skipped or an error of a fixture shows nothing: an agent's code
    may differ from the fix in what parameters and fixtures take from it.
    """
    if not all_passed(run.results(wanted)):
        return False
    outcomes = run.function_outcomes(test.path)
    reported = [outcomes[name] for name in test.ids if name in outcomes]
    if not reported:
        return not any(case.classname == test.path and case.outcome == "error" for case in run.cases or ())
    if any("passed" in each for each in reported):
        return True
    return run.exit.code == 0 and any("failed" in each for each in reported)


def describe_silent(run: TestRun, test: MustFailTest) -> str | None:
    """The caution about a pass of which this run with tests that must fail says nothing: they neither failed nor
    passed, but were skipped, had an error or are missing. None if each of them failed or passed.

    The product may do that on purpose, after it made as many failures pass as it needs, or by honest accident.
    """
    outcomes = run.function_outcomes(test.path)
    told = {name: "/".join(sorted(outcomes.get(name, {"missing"}))) for name in test.ids}
    silent = {name: words for name, words in told.items() if not outcomes.get(name, set()) & {"failed", "passed"}}
    if not silent:
        return None
    first, words = next(iter(silent.items()))
    more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
    ended = "" if run.exit.cause == "itself" else f" ({run.exit.cause})"
    return f"{first}{more} must fail, but reported: {words}{ended}; so nothing confirms the pass"


def _ran_last(run: TestRun, test: MustFailTest) -> bool:
    own = [_is_of(test, case) for case in run.cases or ()]
    return own == sorted(own)


def _is_of(test: MustFailTest, case: JunitCase) -> bool:
    """By the file's name, which is that of no other file; a module that is not collected is the case itself."""
    return PurePosixPath(test.path).name.partition(".")[0] in f"{case.classname}.{case.name}".split(".")
