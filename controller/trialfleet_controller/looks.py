"""Recording that somebody saw results before all were in."""

from __future__ import annotations

from trialfleet_controller import keys
from trialfleet_controller.fault import checkpoint
from trialfleet_controller.standing import Standing
from trialfleet_runner.campaign import Look
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.store.protocol import Store


def record_look(store: Store, campaign: str, standing: Standing, *, now: float) -> None:
    """One record per state seen: looking twice at the same numbers is one look."""
    found = [entry.key for entry in store.list(keys.folder(campaign, "looks"))]
    if found:
        newest = store.get(max(found, key=keys.number_of))
        if newest is not None and Look.model_validate_json(newest).terminal == standing.terminal:
            return
    number = max(map(keys.number_of, found), default=0) + 1
    while True:
        look = Look(
            number=number,
            at=now,
            planned=standing.planned,
            terminal=standing.terminal,
            complete_blocks=standing.complete_blocks,
            by="status",
        )
        checkpoint("look.before")
        created = store.create(keys.numbered(campaign, "looks", number), canonical_json(look))
        checkpoint("look.after")
        if created:
            return
        number += 1
