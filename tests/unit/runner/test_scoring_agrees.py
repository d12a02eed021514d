"""The exit code and the report of the tests tell one story, or there is no pass."""

from __future__ import annotations

import pytest

from trialfleet_runner.junit import Case
from trialfleet_runner.sandbox.protocol import Exit
from trialfleet_runner.scoring import agrees
from trialfleet_runner.testrun import TestRun

PASSED, FAILED = Case("t", "a", None, "passed"), Case("t", "b", None, "failed")


def run(code: int, *cases: Case) -> TestRun:
    return TestRun(Exit(code, "itself", 1.0, 1.0), "", cases)


@pytest.mark.parametrize(
    ("ran", "expected"),
    [
        (run(0, PASSED), True),
        (run(1, PASSED, FAILED), True),  # another parameter of the same function
        (run(1, PASSED), False),
        (run(0, PASSED, FAILED), False),
        (run(139, PASSED), False),
        (run(3, PASSED), False),
        (run(0), False),
        (TestRun(Exit(0, "itself", 1.0, 1.0), "", None), False),
        (TestRun(Exit(0, "timeout", 1.0, 1.0), "", (PASSED,)), False),
    ],
)
def test_agreement(ran: TestRun, expected: bool) -> None:
    assert agrees(ran) is expected
