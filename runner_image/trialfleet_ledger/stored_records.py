"""Records of one campaign in a store: creating, reading and numbering them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.journal import Journal
from trialfleet_ledger.kill_points import checkpoint
from trialfleet_ledger.parsed_records import R, parse_record, parse_with_bytes
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.base import Record
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import BEFORE_A_RECORD_S, WHILE_READING_S


def new_nonce() -> str:
    """32 hexadecimal digits, from the operating system's randomness."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class RecordStore:
    """Creates and reads the records of one campaign. Threads may share it. Every method raises `StoreError` when
    the store cannot answer."""

    store: Store
    campaign: str
    clock: Callable[[], float] = time.time
    nonce: Callable[[], str] = new_nonce

    @cached_property
    def journal(self) -> Journal:
        return Journal(self.store, self.campaign, self._plan_bytes, self.clock)

    def _plan_bytes(self) -> bytes | None:
        """None: there is no plan, or none that can be read."""
        key = keys.plan(self.campaign)
        try:
            stored = parse_with_bytes(self.store, key, self.store.get(key), Plan)
        except OperatorError:
            return None
        return None if stored is None else stored[1]

    def create(self, step: str, key: str, record: Record) -> bool:
        """Create-if-absent; what this writes, the journal's next entry names."""
        raw = canonical_json(record)
        checkpoint(f"{step}.before")
        created = self.store.create(key, raw)
        checkpoint(f"{step}.after")
        if created:
            self.journal.note(key, raw)
        return created

    def read(self, key: str, model: type[R], *, listed: bool = False) -> R | None:
        """`listed`: the listing, or another record, says that it is there."""
        return parse_record(self.store, key, self.store.get(key), model, listed=listed)

    def all(self, kind: keys.Kind, model: type[R]) -> tuple[R, ...]:
        return tuple(record for _, record in read_listed(self.store, self.numbers(kind), model))

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
                self.journal.flush()
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
            raw = values.get(key)
            record = parse_record(store, key, raw, model, listed=True, over_s=WHILE_READING_S)
        except OperatorError as error:
            foreign.append(f"{error.where}: {error.message}")
        else:
            records += [] if record is None else [record]
    return Readable(tuple(records), tuple(foreign))


def read_listed(
    store: Store, listed: Sequence[str], model: type[R], *, over_s: float = BEFORE_A_RECORD_S
) -> Iterator[tuple[str, R]]:
    """The records of these keys, which a listing has shown, in any order. Raises as `parse_record`."""
    for key, raw in store.get_many(listed):
        record = parse_record(store, key, raw, model, listed=True, over_s=over_s)
        if record is not None:
            yield key, record
