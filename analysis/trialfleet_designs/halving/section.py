"""Halving of four treatments: what it saw, and which were left out."""

from __future__ import annotations

from trialfleet_designs.document.figures import percent
from trialfleet_designs.document.tables import ReportSection, number, section, table, text
from trialfleet_designs.halving.finding import HalvingFinding


def halving_section(found: HalvingFinding, control: str) -> ReportSection:
    """No table where it has not been done."""
    return section(
        "halving",
        "Which conditions were dropped?",
        _rule(found),
        table(
            f"What the halving saw, after block {found.after}",
            found.counts,
            text("Condition", lambda one: one.condition),
            number("Passed of valid", lambda one: f"{one.passed:,}/{one.valid:,}"),
            number("Rate, mean of the tasks", lambda one: percent(one.rate)),
            text(
                "Later blocks",
                lambda one: _later(found, one.condition, control),
            ),
        ),
    )


def _rule(found: HalvingFinding) -> str:
    return (
        f"Declared: after block {found.after} of {found.planned_blocks} the declared contrast's treatment goes "
        "on, and of the three others the one with the highest mean pass rate over the tasks (of equal ones, the "
        "first in the campaign file). The controller compares the conditions, so this is not blind. Every "
        f"treatment that is left is tested at {found.each:g}, a quarter of {found.alpha:g}, as if none had been "
        "left out: leaving some out only removes chances to reject. Those that are left out are not tested; "
        f"chosen for low rates, they look worse than they are."
    )


def _later(found: HalvingFinding, name: str, control: str) -> str:
    if name in found.left_out:
        return "left out, not tested"
    if name == control:
        return "control"
    return "went on" if name == found.chosen else "went on: declared"
