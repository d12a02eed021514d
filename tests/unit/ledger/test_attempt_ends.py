"""Every event that ends an attempt, with every end of its program and share of its limits."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from trialfleet_ledger.attempt_ends import (
    END_RULES,
    FIX_SHARE,
    TESTS_DEATHS,
    Cause,
    EndEvent,
    are_tests_within,
    loss_of_event,
)
from trialfleet_ledger.records.verdicts import LossClass

PAGE = Path(__file__).parents[3] / "docs/reference/ledger.md"
CAUSES: tuple[Cause, ...] = ("itself", "timeout", "memory", "disk", "stopped")

# Loss, whether a program beyond its limits has a verdict instead, and the ends of the program that permit a loss.
EXPECTED: dict[EndEvent, tuple[LossClass | None, bool, tuple[Cause, ...]]] = {
    EndEvent.PREEMPTED: (LossClass.EVICTED, False, CAUSES),
    EndEvent.NODE_GONE: (LossClass.NODE_LOST, False, CAUSES),
    EndEvent.NODE_PRESSURE: (LossClass.OVERUSE, True, CAUSES),
    EndEvent.MACHINE_MEMORY: (LossClass.OVERUSE, True, CAUSES),
    EndEvent.OVER_LIMIT: (LossClass.OVERUSE, True, CAUSES),
    EndEvent.TESTS_DIED: (LossClass.SCORING, True, CAUSES),
    EndEvent.TESTS_CHANGED: (LossClass.SCORING, True, CAUSES),
    EndEvent.HOST_FULL: (LossClass.HOST_FULL, True, CAUSES),
    EndEvent.OUTAGE: (LossClass.PROVIDER, False, ("itself",)),
    EndEvent.REFUSED_BY_PROVIDER: (LossClass.PROVIDER, False, ("itself", "timeout")),
    EndEvent.RUNNER_BROKE: (None, False, CAUSES),
    EndEvent.STOP_SIGNAL: (LossClass.TERMINATED, False, ("stopped",)),
    EndEvent.OPERATOR_STOP: (LossClass.INTERRUPTED, False, CAUSES),
    EndEvent.NO_REQUEST: (None, False, CAUSES),
    EndEvent.OTHER_TEXT: (LossClass.CONTAMINATED, False, CAUSES),
}


@pytest.mark.parametrize(("event", "cause", "within"), [*product(EndEvent, CAUSES, (True, False))])
def test_each_row_of_the_table(event: EndEvent, cause: Cause, within: bool) -> None:
    loss, by_share, causes = EXPECTED[event]
    expected = loss if cause in causes and (within or not by_share) else None
    assert loss_of_event(event, cause=cause, within_limits=within) is expected


def test_every_loss_of_the_table_is_decided_by_it() -> None:
    """No code names the loss of such an event by itself: it asks the table."""
    root = Path(__file__).parents[3]
    sources = [*root.glob("runner_image/**/*.py"), *root.glob("controller/**/*.py")]
    texts = [path.read_text(encoding="utf-8") for path in sources if path.name != "attempt_ends.py"]
    losses = [event for event, rule in END_RULES.items() if rule.loss is not None]
    assert [event for event in losses if not any(f"EndEvent.{event.name}" in text for text in texts)] == []


@pytest.mark.parametrize("event", EndEvent)
def test_the_reference_shows_each_row_with_its_witness_and_loss(event: EndEvent) -> None:
    (row,) = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {event} |"))
    _, _, witness, end, _ = (cell.strip() for cell in row.split("|"))
    rule = END_RULES[event]
    assert witness == rule.witness
    assert end.startswith("a verdict" if rule.loss is None else f"`{rule.loss}`")


@pytest.mark.parametrize("deaths", range(6))
@pytest.mark.parametrize("fix_bytes", [None, 1, 50, 51, 100, 200])
def test_the_tests_are_beyond_their_limits_by_deaths_and_by_the_fix(deaths: int, fix_bytes: int | None) -> None:
    within = are_tests_within(deaths, fix_bytes=fix_bytes, limit_bytes=100)
    assert within is not (deaths >= TESTS_DEATHS and fix_bytes is not None and fix_bytes <= FIX_SHARE * 100)
