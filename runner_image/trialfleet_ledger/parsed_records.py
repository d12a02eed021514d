"""Parses the records of a store. What does not parse is read again: one wrong answer must not lose a record."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.base import Record
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import BEFORE_A_RECORD_S, WrongValue, settle_value

R = TypeVar("R", bound=Record)


class AbsentError(WrongValue):
    """A key that was listed has no value when it is read."""

    def __init__(self, message: str = "it is listed, and absent when it is read") -> None:
        super().__init__(message)


def parse_record(
    store: Store,
    key: str,
    raw: bytes | None,
    model: type[R],
    *,
    listed: bool = False,
    over_s: float = BEFORE_A_RECORD_S,
) -> R | None:
    """The record that was read from `key`; None: it is absent. What does not parse is read again (`settle_value`),
    and so is an absent record of which the listing or another record says that it is there (`listed`).

    Raises `OperatorError`, which names the key with the store's address: this program's version did not write the
    record. Raises `StoreError` if the store's answers do not agree.
    """
    found = parse_with_bytes(store, key, raw, model, listed=listed, over_s=over_s)
    return None if found is None else found[0]


def parse_with_bytes(
    store: Store,
    key: str,
    raw: bytes | None,
    model: type[R],
    *,
    listed: bool = False,
    over_s: float = BEFORE_A_RECORD_S,
) -> tuple[R, bytes] | None:
    """As `parse_record`, with the bytes that the record was made from."""

    def make(value: bytes | None) -> tuple[R, bytes] | None:
        if value is not None:
            return parse_bytes(value, model), value
        if listed:
            raise AbsentError
        return None

    try:
        return settle_value(store, key, raw, make, over_s=over_s)
    except AbsentError:
        return None
    except WrongValue as error:
        raise OperatorError(
            f"not a {model.__name__} record of this version: {error}",
            where=f"{store.url}/{key}",
            hint="read it with the version of trialfleet that wrote it; a record that was edited is lost",
        ) from None


def parse_bytes(raw: bytes, model: type[R]) -> R:
    """Raises `WrongValue`."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "file"
        raise WrongValue(f"{place}: {first['msg']}") from None
