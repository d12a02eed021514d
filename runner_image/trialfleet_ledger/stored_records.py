"""Records of one campaign in a store: creating, reading and numbering them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError

from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.kill_points import checkpoint
from trialfleet_ledger.records.base import Record
from trialfleet_ledger.store.protocol import Store

R = TypeVar("R", bound=Record)


def new_nonce() -> str:
    """32 hexadecimal digits, from the operating system's randomness."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class RecordStore:
    """Creates and reads the records of one campaign. Holds no state, so threads may share it. Every method raises
    `StoreError` when the store cannot answer."""

    store: Store
    campaign: str
    clock: Callable[[], float] = time.time
    nonce: Callable[[], str] = new_nonce

    def create(self, step: str, key: str, record: Record) -> bool:
        checkpoint(f"{step}.before")
        created = self.store.create(key, canonical_json(record))
        checkpoint(f"{step}.after")
        return created

    def read(self, key: str, model: type[R]) -> R | None:
        raw = self.store.get(key)
        return None if raw is None else self.parse(key, raw, model)

    def parse(self, key: str, raw: bytes, model: type[R]) -> R:
        """As the module's `parse`; the error names the key with the store's address."""
        return parse(f"{self.store.url}/{key}", raw, model)

    def all(self, kind: keys.Kind, model: type[R]) -> tuple[R, ...]:
        found = self.numbers(kind)
        values = dict(self.store.get_many(found))
        return tuple(self.parse(key, raw, model) for key in found if (raw := values.get(key)) is not None)

    def numbers(self, kind: keys.Kind) -> list[str]:
        found = (entry.key for entry in self.store.list(keys.folder(self.campaign, kind)))
        return sorted((key for key in found if keys.number_of(key)), key=keys.number_of)

    def append(self, kind: keys.Kind, step: str, record: R) -> R:
        """Create the record under the next free number, which it gets as its `number`."""
        number = max((keys.number_of(key) for key in self.numbers(kind)), default=0)
        while True:
            number += 1
            made = record.model_copy(update={"number": number})
            if self.create(step, keys.numbered(self.campaign, kind, number), made):
                return made


@dataclass(frozen=True)
class Readable(Generic[R]):
    """The numbered records of one folder that can be read, and one sentence about each thing there that cannot."""

    records: tuple[R, ...]
    unreadable: tuple[str, ...]


def readable(store: Store, campaign: str, kind: keys.Kind, model: type[R]) -> Readable[R]:
    """For who only looks: a record that cannot be read takes nothing else away. Heartbeats are left out."""
    found = [
        entry.key for entry in store.list(keys.folder(campaign, kind)) if not keys.is_beat(campaign, entry.key)
    ]
    ours = sorted((key for key in found if keys.number_of(key)), key=keys.number_of)
    foreign = [f"{key}: is not a record of trialfleet and is ignored" for key in found if not keys.number_of(key)]
    values = dict(store.get_many(ours))
    records: list[R] = []
    for key in ours:
        try:
            if (raw := values.get(key)) is not None:
                records.append(parse(key, raw, model))
        except OperatorError as error:
            foreign.append(f"{error.where}: {error.message}")
    return Readable(tuple(records), tuple(foreign))


def parse(where: str, raw: bytes, model: type[R]) -> R:
    """Raises `OperatorError`, which names `where`: this program's version did not write the record."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "file"
        raise OperatorError(
            f"not a {model.__name__} record of this version: {place}: {first['msg']}",
            where=where,
            hint="read it with the version of trialfleet that wrote it; a record that was edited is lost",
        ) from None
