"""From test results to a verdict: JUnit decides, and the exit code of the tests must not gainsay it."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_runner.contract import Stop, TestResult, Verdict
from trialfleet_runner.testrun import TestRun, trouble


def all_passed(results: Sequence[TestResult]) -> bool:
    """True when there are results and every one passed: a skipped, missing or erring test is not a pass."""
    return bool(results) and all(result.outcome == "passed" for result in results)


def agrees(run: TestRun) -> bool:
    """Whether the exit code and the report tell one story: 0 and nothing failed, or 1 and something did (a test
    that is not asked for: ids are selected without their parameters). A program that dies after its report was
    written, or a report that another program wrote, is no pass. Code under test can forge both."""
    failed = any(case.outcome in ("failed", "error") for case in run.cases or ())
    return trouble(run) is None and failed == (run.exit.code == 1)


def verdict(stop: Stop, *, passed: bool, tests_timed_out: bool) -> Verdict:
    """The verdict of a scored attempt. Only `PASSED` counts as a pass.

    An agent that ran out of time, memory or disk keeps that verdict whatever its tests say; one that crashed or
    ran out of turns or money is judged by its tests alone.

    >>> verdict(Stop.CRASHED, passed=True, tests_timed_out=False).value
    'passed'
    >>> verdict(Stop.TIMEOUT, passed=True, tests_timed_out=False).value
    'timed_out'
    """
    match stop:
        case Stop.TIMEOUT:
            return Verdict.TIMED_OUT
        case Stop.MEMORY | Stop.DISK:
            return Verdict.EXHAUSTED
        case _ if tests_timed_out:
            return Verdict.TESTS_TIMED_OUT
        case _:
            return Verdict.PASSED if passed else Verdict.FAILED
