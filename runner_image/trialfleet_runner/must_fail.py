"""What a run with tests that must fail says of a pass. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_ledger.records.task_order import MustFailTest
from trialfleet_repository.testrun import TestRun
from trialfleet_runner.metrics import all_passed

PASSED = "tests that must fail passed"  # why a pass is forged


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
