"""Writes the journal: one chain of entries per campaign, which names the records that were written.

A record is named only after the store has taken it. A crash may leave a record without its name, never a name
without its record: what the journal names and the store lacks was deleted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.kill_points import checkpoint
from trialfleet_ledger.records.journal import JournalEntry
from trialfleet_ledger.store.protocol import Store, StoreError

MOST_RECORDS = 10_000  # of one entry: 2 MB


class Journal:
    """The records that were written through one `RecordStore` and that no entry names yet. Any thread may note and
    flush; entries of other processes are continued from. Raises `StoreError` when the store does not answer: what
    was noted is kept for the next flush."""

    def __init__(self, store: Store, campaign: str, clock: Callable[[], float]) -> None:
        self._store, self._campaign, self._clock = store, campaign, clock
        self._noting, self._writing = threading.Lock(), threading.Lock()
        self._noted: dict[str, str] = {}
        self._last: tuple[int, str | None] | None = None  # the newest entry that is known: its number, its SHA-256
        self._plan: str | None = None

    def plan_sha256(self) -> str | None:
        """The SHA-256 of `campaign.json` as it was first read here. None: there is none yet."""
        if self._plan is None and (raw := self._store.get(keys.plan(self._campaign))) is not None:
            self._plan = sha256(raw)
        return self._plan

    def note(self, key: str, raw: bytes) -> None:
        """The store holds this record. Grants are left out: `gc` removes them."""
        if not keys.is_grants(self._campaign, key):
            with self._noting:
                self._noted[key.removeprefix(f"{self._campaign}/")] = sha256(raw)

    def flush(self) -> None:
        """Name what was noted. The first entry is written even if there is nothing to name."""
        with self._writing:
            self._last = self._last or self._newest()
            while (names := self._next()) or self._last[0] == 0:
                self._append(names)
                with self._noting:
                    for key in names:
                        if self._noted[key] == names[key]:
                            del self._noted[key]

    def _next(self) -> dict[str, str]:
        with self._noting:
            return dict(list(self._noted.items())[:MOST_RECORDS])

    def _append(self, names: dict[str, str]) -> None:
        assert self._last is not None
        number, previous = self._last
        while True:
            entry = JournalEntry(
                plan=self.plan_sha256(), number=number + 1, at=self._clock(), previous=previous, records=names
            )
            raw, key = canonical_json(entry), keys.numbered(self._campaign, "journal", number + 1)
            checkpoint("journal.before")
            created = self._store.create(key, raw)
            checkpoint("journal.after")
            number, previous = number + 1, sha256(raw if created else self._existing(key))
            self._last = number, previous
            if created:
                return

    def _newest(self) -> tuple[int, str | None]:
        listed = (entry.key for entry in self._store.list(keys.folder(self._campaign, "journal")))
        number = max(map(keys.number_of, listed), default=0)
        if number == 0:
            return 0, None
        return number, sha256(self._existing(keys.numbered(self._campaign, "journal", number)))

    def _existing(self, key: str) -> bytes:
        raw = self._store.get(key)
        if raw is None:
            raise StoreError(f"{self._store.url}/{key}: it exists, and is absent when it is read")
        return raw
