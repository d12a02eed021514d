"""Which attempts' records the store lists, and which of those that no number needs are read all the same.

Intent and patch of an attempt with a verdict say nothing that its outcome does not. They are compared with what
was written if the store took them after the attempt's end, which closes an attempt, or if they are absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from pydantic import ValidationError

from trialfleet_analysis.ledger import expect_of
from trialfleet_ledger import keys
from trialfleet_ledger.records.attempt import End
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.stored_journal import CheckedReads, StoredJournal, check_reads

_BUNDLE, _END, _PATCH = "bundle.tar.zst", "end.json", "patch.json"


@dataclass(frozen=True)
class AttemptListing:
    """Keys. `bundles`: with their bytes; `late`: records that the store took after their attempt's end."""

    bundles: Mapping[str, int]
    patches: frozenset[str]
    late: tuple[str, ...]


def list_attempts(reads: CheckedReads) -> AttemptListing:
    """List them before they are read: what is written later is then not in a seal."""
    bundles, patches, late = dict[str, int](), set[str](), list[str]()
    folder, ended_at = "", None
    for key, size, _, at in reads.list(keys.attempts(reads.campaign)):
        above, _, name = key.rpartition("/")
        if above != folder:
            folder, ended_at = above, None
        if name == _END:  # its key sorts before those of the other records
            ended_at = at
        elif name == _BUNDLE:
            bundles[key] = size
        elif name.endswith(".json"):
            patches.update([key] if name == _PATCH else [])
            if at is None or ended_at is None or at > ended_at:
                late.append(key)
    return AttemptListing(bundles, frozenset(patches), tuple(late))


def read_suspects(reads: CheckedReads, listing: AttemptListing) -> None:
    """Read what was written late, and patches that an end names and the listing lacks. `reads` compares them."""
    absent = (key for key in reads.written if key.endswith(f"/{_PATCH}") and key not in listing.patches)
    for _ in reads.get_many([key for key in (*listing.late, *absent) if key not in reads.read]):
        pass


def are_as_written(store: Store, campaign: str, journal: StoredJournal, listed: Iterable[str]) -> bool:
    """Whether the records of attempts are what the journal and the attempts' ends say. `listed`: keys below
    `attempts/`. Bundles are not read."""
    reads, folder = check_reads(store, campaign, journal), keys.attempts(campaign)
    named = {key for key in reads.written if key.startswith(folder)}
    for end in _read_ends(reads, sorted(named.union(key for key in listed if key.endswith(".json")))):
        expect_of(reads, end)
    absent = [key for key in reads.written if key.startswith(folder) and key not in reads.read]
    for _ in reads.get_many(absent):
        pass
    return not reads.find_faults()


def _read_ends(reads: CheckedReads, wanted: list[str]) -> Iterator[End]:
    """Read all of `wanted`; the ends among them, without those that are none."""
    for key, raw in reads.get_many(wanted):
        if key.endswith(f"/{_END}") and raw is not None:
            with suppress(ValidationError):
                yield End.model_validate_json(raw)
