"""Whether a run of tests has passed. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_ledger.records.measurements import TestResult
from trialfleet_repository.languages import format_named
from trialfleet_repository.testrun import TestRun, trouble


def all_passed(results: Sequence[TestResult]) -> bool:
    """True when there are results and every one passed: a skipped, missing or erring test is not a pass."""
    return bool(results) and all(result.outcome == "passed" for result in results)


def agrees(run: TestRun) -> bool:
    """Whether the exit code and the report tell one story: 0 and nothing failed, or the code of failed tests and
    something did (a test that is not asked for: ids are selected without their parameters, and some runners are
    given whole files or crates). A program that dies after its report was written, or a report that another
    program wrote, is no pass. Code under test can forge both.

    Failed tests end most runners with 1, some with another code or with their number. Of a task's own command
    (`junit`) the code is not known: one from 1 to 124, for shells have those above."""
    failed = sum(case.outcome in ("failed", "error") for case in run.cases or ())
    if trouble(run) is not None:
        return False
    return run.exit.code in format_named(run.format).exit_codes(failed) if failed else run.exit.code == 0
