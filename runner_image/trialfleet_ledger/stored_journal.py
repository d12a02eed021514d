"""Reads a campaign's journal, and what it says against the records that the store holds.

Read it before the records that it names: they were written before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from trialfleet_ledger import keys
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.journal import JournalEntry
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import WHILE_READING_S, WrongValue, require_digest, settle_value
from trialfleet_ledger.stored_records import parse_with_bytes

PLAN = "campaign.json"
_OF_TRIALS = ("attempts/", "outcomes/")


@dataclass(frozen=True)
class StoredJournal:
    """`records`: key below the campaign -> SHA-256 of the bytes that were written. `faults`: one sentence about
    each entry that was changed or deleted. `plans`: the plans that the entries name."""

    records: Mapping[str, str] = field(default_factory=dict[str, str])
    faults: tuple[str, ...] = ()
    plans: frozenset[str] = frozenset()

    @property
    def outcome_ids(self) -> frozenset[str]:
        """Trials whose outcome it names."""
        return frozenset(filter(None, map(keys.trial_of_outcome, self.records)))

    @property
    def intents(self) -> dict[str, str]:
        """The intents that it names: key below the campaign -> trial."""
        parsed = ((name, keys.parse_attempt_name(name)) for name in self.records)
        return {name: key.trial for name, key in parsed if key is not None and key.name == "intent.json"}


def read_journal(store: Store, campaign: str, *, over_s: float = WHILE_READING_S) -> StoredJournal:
    """Raises `StoreError` if the store's answers do not agree."""
    listed = (keys.number_of(entry.key) for entry in store.list(keys.folder(campaign, "journal")))
    wanted = [keys.numbered(campaign, "journal", n) for n in range(1, max(listed, default=0) + 1)]
    values = dict(store.get_many(wanted))
    records: dict[str, str] = {}
    faults: list[str] = []
    plans: set[str] = set()
    previous: str | None = None
    for key in wanted:
        found = _entry(store, key, values.get(key), over_s)
        if isinstance(found, str):
            faults.append(found)
            previous = None
            continue
        entry, raw = found
        if previous is not None and entry.previous != previous:
            faults.append(f"journal/{entry.number}.json or the entry before it was changed after it was written")
        previous = sha256(raw)
        records |= entry.records
        plans |= set() if entry.plan is None else {entry.plan}
    return StoredJournal(records, tuple(faults), frozenset(plans))


def _entry(store: Store, key: str, raw: bytes | None, over_s: float) -> tuple[JournalEntry, bytes] | str:
    """The entry with its bytes; or what is wrong. An absent one has a successor, so it was written."""
    name = key.partition("/")[2]
    try:
        found = parse_with_bytes(store, key, raw, JournalEntry, listed=True, over_s=over_s)
    except OperatorError:
        return f"{name} was changed after it was written"
    return f"{name} was deleted after it was written" if found is None else found


def describe_change(
    store: Store, key: str, raw: bytes | None, expected: str | None, *, over_s: float = WHILE_READING_S
) -> str | None:
    """What is wrong with a record whose bytes had the SHA-256 `expected` when it was written (None: nothing says).
    `raw`: what was read; bytes that differ are read again. None: nothing is. Raises `StoreError` if the store's
    answers do not agree."""
    if expected is None:
        return None
    try:
        settle_value(store, key, raw, partial(require_digest, expected), over_s=over_s)
    except WrongValue as error:
        what = "deleted" if error.value is None else "changed"
        return f"{key.partition('/')[2]} was {what} after it was written"
    return None


def find_changed(
    store: Store, campaign: str, journal: StoredJournal, names: Iterable[str], *, over_s: float = WHILE_READING_S
) -> dict[str, str]:
    """Which of these records (keys below the campaign) the store no longer holds as they were written: a sentence
    about each, by its name. Those that no entry names are left out. Raises as `describe_change`."""
    named = {f"{campaign}/{name}": journal.records[name] for name in names if name in journal.records}
    changes = (
        (key.partition("/")[2], describe_change(store, key, raw, named[key], over_s=over_s))
        for key, raw in store.get_many(sorted(named))
    )
    return {name: change for name, change in changes if change is not None}


def campaign_faults(store: Store, campaign: str, journal: StoredJournal, plan_sha256: str) -> tuple[str, ...]:
    """What was changed or deleted of a campaign's records, but for those of single trials. `plan_sha256`: of the
    bytes of `campaign.json`."""
    few = [name for name in journal.records if name != PLAN and not name.startswith(_OF_TRIALS)]
    changed = find_changed(store, campaign, journal, few)
    plan = () if journal.plans <= {plan_sha256} else (f"{PLAN} was changed after it was written",)
    return (*plan, *journal.faults, *(changed[name] for name in sorted(changed)))
