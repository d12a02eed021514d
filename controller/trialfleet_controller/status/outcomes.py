"""Outcomes as plain JSON: parsing thousands of them as records would take seconds."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from trialfleet_ledger import keys
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.store.protocol import Store


def read_outcomes(store: Store, campaign: str) -> list[dict[str, Any]]:
    """Every outcome as it is stored."""
    found = [entry.key for entry in store.list(keys.outcomes(campaign))]
    return [from_json(raw) for _, raw in store.get_many(found) if raw is not None]


def quarantined_attempts(store: Store, campaign: str) -> set[tuple[str, int]]:
    """Trial and attempt of every bundle that did not match its end."""
    listed = (keys.parse_quarantine(campaign, entry.key) for entry in store.list(keys.quarantines(campaign)))
    return {found for found in listed if found is not None}


def without_quarantined(outcome: dict[str, Any], quarantined: set[tuple[str, int]]) -> dict[str, Any]:
    """A measurement whose bundle was quarantined at any time is missing data, as in the report."""
    if outcome["scored"] is None or (outcome["trial"]["id"], outcome["attempts"]) not in quarantined:
        return outcome
    lost = LossClass.QUARANTINED.value
    return {**outcome, "scored": None, "abandoned": lost, "losses": [*outcome["losses"], lost]}
