"""What the report says of conditions under which the model got the same first request."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.tables.columns import among, integers, known, some, texts, truths, words
from trialfleet_analysis.tables.rows import Use
from trialfleet_analysis.tables.table import Table
from trialfleet_deliveries.equal_arms import EqualArms, MeasuredRequest, find_equal_arms
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.verdicts import Verdict


def compare_first_requests(plan: Plan, trials: Table) -> tuple[EqualArms, ...]:
    """By the measured trials of the complete blocks; those of halted tasks and conditions apart."""
    if not known(trials, "first_request_sha256").any():
        return ()
    counted = truths(trials, "in_blocks") & ~among(trials, "use", (Use.HALTED,))
    used = some(trials, counted & among(trials, "verdict", list(Verdict)))
    task, condition = words(used, "task"), words(used, "condition")
    rows = zip(
        task.codes.tolist(),
        condition.codes.tolist(),
        integers(used, "block").tolist(),
        texts(used, "first_request_sha256"),
        strict=True,
    )
    return find_equal_arms(
        plan, (MeasuredRequest(task.names[t], condition.names[c], block, sha256) for t, c, block, sha256 in rows)
    )


def warn_of_equal_arms(report: Report) -> Iterator[str]:
    """For the answer: what holds of the compared conditions."""
    yield from (f"Careful: {one.describe_equality()}" for one in report.equal_arms if _is_compared(report, one))


def note_other_equal_arms(report: Report) -> Iterator[str]:
    yield from (one.describe_equality() for one in report.equal_arms if not _is_compared(report, one))


def _is_compared(report: Report, one: EqualArms) -> bool:
    """Whether two of them are compared by what the campaign declares."""
    return len(set(one.conditions) & set(report.conditions_compared)) > 1
