"""From test results to a verdict: JUnit decides, the exit code of the tests does not."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_runner.contract import Stop, TestResult, Verdict


def all_passed(results: Sequence[TestResult]) -> bool:
    """True when there are results and every one passed: a skipped, missing or erring test is not a pass."""
    return bool(results) and all(result.outcome == "passed" for result in results)


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
