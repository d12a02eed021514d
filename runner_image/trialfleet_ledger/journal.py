"""Writes the journal: numbered entries of a campaign, which name the records that were written.

A record is named only after the store has taken it. A crash may leave a record without its name, never a name
without its record: what the journal names and the store lacks was deleted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.kill_points import checkpoint
from trialfleet_ledger.parsed_records import AbsentError, parse_bytes
from trialfleet_ledger.records.base import LARGEST_COUNT
from trialfleet_ledger.records.journal import JournalEntry
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import WrongValue, settle_value

MOST_RECORDS = 10_000  # of one entry: 1.5 MB


class Journal:
    """Records that one process wrote or read, and that it has not named yet. Any thread may note and flush; other
    processes' entries are continued from. `read_plan`: the bytes of `campaign.json`."""

    def __init__(
        self, store: Store, campaign: str, read_plan: Callable[[], bytes | None], clock: Callable[[], float]
    ) -> None:
        self._store, self._campaign, self._read_plan, self._clock = store, campaign, read_plan, clock
        self._plan: str | None = None
        self._noting, self._writing = threading.Lock(), threading.Lock()
        self._noted: dict[str, str] = {}
        self._named: dict[str, str] = {}
        self._last: int | None = None  # the newest entry that is known; 0: there is none
        self._own = (0, "")  # the last entry that was created here, and its SHA-256

    def begin(self, *, after: int) -> int:
        """Name the plan, at once if there is no entry yet. `after`: how many entries there were by another record.
        Returns how many there are now."""
        self._last = max(after, self._newest())
        if (raw := self._read_plan()) is not None:
            self.note(keys.plan(self._campaign), raw)
        if self._last == 0:
            self.flush()
        return self._last

    def plan_sha256(self) -> str | None:
        """The SHA-256 of `campaign.json` as it was first read here. None: there is none yet."""
        if self._plan is None and (raw := self._read_plan()) is not None:
            self._plan = sha256(raw)
        return self._plan

    def note(self, key: str, raw: bytes) -> None:
        """The store holds these bytes. Grants are left out: `gc` removes them."""
        name, written = key.removeprefix(f"{self._campaign}/"), sha256(raw)
        if key.startswith(keys.all_grants(self._campaign)):
            return
        with self._noting:
            if self._named.get(name) != written:
                self._noted[name] = written

    def flush(self) -> None:
        """Name what was noted. Raises `StoreError` when the store does not answer: the next flush names it."""
        with self._writing:
            while names := self._next():
                self._append(names)
                with self._noting:
                    self._named |= names
                    self._noted = {name: raw for name, raw in self._noted.items() if names.get(name) != raw}

    def _next(self) -> dict[str, str]:
        with self._noting:
            return dict(list(self._noted.items())[:MOST_RECORDS])

    def _append(self, names: dict[str, str]) -> None:
        number = self._newest() if self._last is None else self._last
        created = False
        while not created:
            previous, number = self._digest_of(number), number + 1
            entry = JournalEntry(
                plan=self.plan_sha256(), number=number, at=self._clock(), previous=previous, records=names
            )
            checkpoint("journal.before")
            key, raw = keys.numbered(self._campaign, "journal", number), canonical_json(entry)
            created = self._store.create(key, raw)
            checkpoint("journal.after")
            self._last = number
            if created:
                self._own = number, sha256(raw)

    def _digest_of(self, number: int) -> str | None:
        """Of this entry's bytes; None: it is not there."""
        if number == self._own[0]:
            return self._own[1] or None
        key = keys.numbered(self._campaign, "journal", number)
        try:
            return settle_value(self._store, key, self._store.get(key), partial(_check_entry, number))
        except WrongValue as error:  # the store does hold these bytes: name them as they are
            return None if error.value is None else sha256(error.value)

    def _newest(self) -> int:
        return max(list_entries(self._store, self._campaign), default=0)


def list_entries(store: Store, campaign: str) -> frozenset[int]:
    """The numbers of the entries. A number that no record can have is a stranger's."""
    listed = (keys.number_of(entry.key) for entry in store.list(keys.folder(campaign, "journal")))
    return frozenset(number for number in listed if 0 < number < LARGEST_COUNT)


def _check_entry(number: int, raw: bytes | None) -> str:
    """The SHA-256 of this entry's bytes. One wrong read would stand in the next entry for good."""
    if raw is None:
        raise AbsentError
    if parse_bytes(raw, JournalEntry).number != number:
        raise WrongValue(f"it is not entry {number}")
    return sha256(raw)
