"""What a run with tests that must fail says of a pass. Validation and scoring ask the same."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_ledger.records.task_order import MustFailTest
from trialfleet_repository.results.junit import CaseOutcome, function_id
from trialfleet_repository.testrun import TestRun
from trialfleet_runner.metrics import all_passed

PASSED = "tests that must fail passed"  # why a pass is forged


def function_outcomes(run: TestRun, path: str) -> dict[str, set[CaseOutcome]]:
    """Id without parameters -> what its cases ended with; of pytest, in the file `path`."""
    outcomes: dict[str, set[CaseOutcome]] = {}
    for test, outcome in run.outcomes([path]).items():
        outcomes.setdefault(function_id(test), set()).add(outcome)
    return outcomes


def contradicts_pass(run: TestRun, test: MustFailTest, wanted: Sequence[str]) -> bool:
    """Whether a run of the wanted tests and of those that must fail shows that something makes tests pass: all
    wanted ones pass, and so does one that must fail, or no result names these, or the exit code says that none
    failed.

    A file that could not be loaded, a test that is skipped or an error of a fixture shows nothing: an agent's code
    may differ from the fix in what parameters and fixtures take from it.
    """
    if not all_passed(run.results(wanted)):
        return False
    outcomes = function_outcomes(run, test.path)
    reported = [outcomes[name] for name in test.ids if name in outcomes]
    if not reported:
        return not any(case.classname == test.path and case.outcome == "error" for case in run.cases or ())
    if any("passed" in each for each in reported):
        return True
    return run.exit.code == 0 and any("failed" in each for each in reported)
