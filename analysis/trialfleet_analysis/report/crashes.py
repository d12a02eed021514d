"""What a reader must know of agents that crashed, and of conditions that were halted for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.process import CrashCount
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.unequal_ends import warn_if_unequal
from trialfleet_ledger.crashed_agents import CRASHED, needs_caution
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.missing.by_condition import loss_by_condition


def find_halted_sides(report: Report) -> list[str]:
    """Conditions that the declared test compares and that are halted."""
    return [name for name in report.analysis.sides if name in report.halted_conditions]


def crash_sentences(report: Report) -> tuple[str, ...]:
    """For the answer; empty where crashes can have changed nothing that matters."""
    working = [one for one in report.crashes if one.condition not in report.halted_conditions]
    return (*_halted(report), *_many(working), *_unequal(working))


def _halted(report: Report) -> Iterator[str]:
    for name, reason in report.halted_conditions.items():
        yield f"Condition {name} is halted, and none of its trials is in a rate or a comparison: {reason}."


def _many(counts: Sequence[CrashCount]) -> Iterator[str]:
    for one in counts:
        if needs_caution(one.crashed, one.measured):
            yield (
                f"Careful: in {one.crashed:,} of {plural(one.measured, 'measured trial')} of {one.condition} the "
                f"agent {CRASHED}. They count as failed, and say nothing about what a working agent does there; "
                f"`trialfleet logs CAMPAIGN {one.example}` shows what one of them printed."
            )


def _unequal(counts: Sequence[CrashCount]) -> Iterator[str]:
    return warn_if_unequal(
        loss_by_condition([one.crashed for one in counts], [one.measured for one in counts]),
        [(one.condition, one.crashed, one.measured) for one in counts],
        f"agents {CRASHED} unequally often under the conditions",
        "A difference between their pass rates may come from that alone: find the cause with `trialfleet logs` "
        "before relying on it.",
    )
