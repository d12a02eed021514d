"""What the answer says if conditions lost first runs, or ended after failures of the provider, unequally often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.document.figures import p_value
from trialfleet_statistics.missing.by_condition import loss_by_condition

ALPHA = 0.05


def unequal_end_sentences(report: Report) -> tuple[str, ...]:
    """Empty where the exact tests find no difference between the conditions. The numbers are of first runs, and of
    measured trials."""
    return (*_losses(report), *_provider(report))


def _losses(report: Report) -> Iterator[str]:
    found = report.analysis.loss_test
    p = found.test.p_value
    if p is None or p >= ALPHA:
        return
    yield (
        f"Careful: conditions lost first runs unequally often "
        f"({_shares(found.conditions, found.lost, found.trials)}; {p_value(p)}). A difference between their pass "
        "rates may come from that alone; the bounds next to each rate show how far it could move."
    )


def _provider(report: Report) -> Iterator[str]:
    counts = [one for one in report.provider_ends if one.condition not in report.halted_conditions]
    ended, measured = [one.ended for one in counts], [one.measured for one in counts]
    p = loss_by_condition(ended, measured).p_value if any(ended) else None
    if p is None or p >= ALPHA:
        return
    names = [one.condition for one in counts]
    yield (
        f"Careful: agents ended after a failure of the model provider unequally often under the conditions "
        f"({_shares(names, ended, measured)}; {p_value(p)}). These trials are measured, and a difference between "
        "pass rates may come from that alone: compare the requests of such trials before relying on it."
    )


def _shares(names: Sequence[str], hit: Sequence[int], of: Sequence[int]) -> str:
    each = zip(names, hit, of, strict=True)
    return ", ".join(f"{name} {some:,} of {all_of:,}" for name, some, all_of in each if all_of)
