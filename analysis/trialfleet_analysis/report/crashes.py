"""What a reader must know of agents that crashed, and of conditions that were halted for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.process import CrashCount
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.document.figures import p_value
from trialfleet_ledger.crashed_agents import CRASHED, needs_caution
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.missing.by_condition import loss_by_condition

_ALPHA = 0.05


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
    test = loss_by_condition([one.crashed for one in counts], [one.measured for one in counts])
    if test.p_value is None or test.p_value >= _ALPHA:
        return
    each = ", ".join(f"{one.condition} {one.crashed:,} of {one.measured:,}" for one in counts if one.measured)
    yield (
        f"Careful: agents {CRASHED} unequally often under the conditions ({each}; {p_value(test.p_value)}). "
        "A difference between their pass rates may come from that alone: find the cause with `trialfleet logs` "
        "before relying on it."
    )
