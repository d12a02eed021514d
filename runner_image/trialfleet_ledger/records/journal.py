"""What the journal of a campaign holds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trialfleet_ledger.records.base import BoundRecord, Moment, Ordinal, Sha256

RecordName = Annotated[str, Field(pattern=r"^(?:[a-z0-9]{1,40}/){0,3}[a-z0-9-]{1,40}\.json$")]


class JournalEntry(BoundRecord):
    """`journal/<k>.json`: records that the store had taken before this entry was written. `records`: key below the
    campaign -> SHA-256 of its bytes. Entry *k* exists only after entry *k* - 1, so a missing one was deleted;
    `previous`: the SHA-256 of its bytes, so an edited one is seen once another follows it."""

    number: Ordinal
    at: Moment
    previous: Sha256 | None = None
    records: dict[RecordName, Sha256] = Field(default_factory=dict[RecordName, Sha256])
