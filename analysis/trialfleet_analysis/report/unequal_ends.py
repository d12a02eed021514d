"""What the answer says if conditions lost first runs, or ended after failures of the provider, unequally often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.document.figures import p_value
from trialfleet_statistics.estimates import Test
from trialfleet_statistics.missing.by_condition import loss_by_condition

ALPHA = 0.05


def unequal_end_sentences(report: Report) -> Iterator[str]:
    """None where the exact tests find no difference between the conditions. The numbers are of first runs, and of
    measured trials."""
    lost = report.analysis.loss_test
    yield from warn_if_unequal(
        lost.test,
        list(zip(lost.conditions, lost.lost, lost.trials, strict=True)),
        "conditions lost first runs unequally often",
        "A difference between their pass rates may come from that alone; the bounds next to each rate show how "
        "far it could move.",
    )
    provider = [one for one in report.provider_ends if one.condition not in report.halted_conditions]
    yield from warn_if_unequal(
        loss_by_condition([one.ended for one in provider], [one.measured for one in provider]),
        [(one.condition, one.ended, one.measured) for one in provider],
        "agents ended after a failure of the model provider unequally often under the conditions",
        "These trials are measured, and a difference between pass rates may come from that alone: compare the "
        "requests of such trials before relying on it.",
    )


def warn_if_unequal(test: Test, counts: Sequence[tuple[str, int, int]], what: str, so: str) -> Iterator[str]:
    """`counts`: condition, how many, and of how many."""
    if test.p_value is not None and test.p_value < ALPHA:
        each = ", ".join(f"{name} {some:,} of {all_of:,}" for name, some, all_of in counts if all_of)
        yield f"Careful: {what} ({each}; {p_value(test.p_value)}). {so}"
