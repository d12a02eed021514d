"""Outcomes as plain JSON: parsing thousands of them as records would take seconds."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, cast

from pydantic_core import from_json

from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.parsed_records import AbsentError
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import WHILE_READING_S, WrongValue, settle_value


def read_outcomes(store: Store, campaign: str) -> list[dict[str, Any]]:
    """Every outcome as it is stored."""
    found = [entry.key for entry in store.list(keys.outcomes(campaign))]
    read = [settle_json(store, key, raw) for key, raw in store.get_many(found)]
    return [outcome for outcome in read if outcome is not None]


def settle_json(store: Store, key: str, raw: bytes | None) -> dict[str, Any] | None:
    """A listed record as plain JSON, read again if it is none; None: it is absent. Raises `OperatorError`."""
    try:
        return settle_value(store, key, raw, _json_of, over_s=WHILE_READING_S)
    except AbsentError:
        return None
    except WrongValue as error:
        raise OperatorError(
            str(error), where=f"{store.url}/{key}", hint="the record was changed: restore it from a copy"
        ) from None


def _json_of(raw: bytes | None) -> dict[str, Any]:
    if raw is None:
        raise AbsentError
    try:
        value: object = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise WrongValue(f"not a record of trialfleet: {error}") from None
    if not isinstance(value, dict):
        raise WrongValue("not a record of trialfleet: no JSON object")
    return cast("dict[str, Any]", value)


def quarantined_attempts(store: Store, campaign: str) -> set[tuple[str, int]]:
    """Trial and attempt of every bundle that did not match its end."""
    listed = (keys.parse_quarantine(campaign, entry.key) for entry in store.list(keys.quarantines(campaign)))
    return {found for found in listed if found is not None}


def without_quarantined(outcome: dict[str, Any], quarantined: set[tuple[str, int]]) -> dict[str, Any]:
    """A measurement whose bundle was quarantined at any time is missing data, as in the report."""
    if outcome["scored"] is None or (outcome["trial"]["id"], outcome["attempts"]) not in quarantined:
        return outcome
    return _as_missing(outcome)


def without_tampered(outcomes: Iterable[dict[str, Any]], tampered: Collection[str]) -> list[dict[str, Any]]:
    """Trials with records that are not as they were written are missing data. `tampered`: their ids."""
    return [_as_missing(outcome) if outcome["trial"]["id"] in tampered else outcome for outcome in outcomes]


def _as_missing(outcome: dict[str, Any]) -> dict[str, Any]:
    lost = LossClass.QUARANTINED.value
    return {**outcome, "scored": None, "abandoned": lost, "losses": [*outcome["losses"], lost]}


def list_equal_arms(plan: Plan, outcomes: Iterable[dict[str, Any]]) -> list[str]:
    """What is said of conditions with the same first requests. `outcomes`: of complete blocks."""
    scored = [(one["trial"], one["scored"]["delivery"]) for one in outcomes if one["scored"] is not None]
    requests = [(trial, delivery.get("first_request_sha256")) for trial, delivery in scored]
    if not any(sha256 for _, sha256 in requests):
        return []
    from trialfleet_deliveries.equal_arms import MeasuredRequest, find_equal_arms

    measured = (
        MeasuredRequest(trial["task"], trial["condition"], trial["block"], sha256) for trial, sha256 in requests
    )
    return [one.describe_equality() for one in find_equal_arms(plan, measured)]
