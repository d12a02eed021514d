"""Compares the records that a campaign's store holds with what its journal says was written."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from trialfleet_ledger import keys
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.journal import list_entries
from trialfleet_ledger.parsed_records import parse_record
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.directives import Epoch
from trialfleet_ledger.records.journal import JournalEntry
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.store.observed import ObservedReads
from trialfleet_ledger.store.protocol import ListedKey, Store
from trialfleet_ledger.store.rereading import WHILE_READING_S, WrongValue, require_digest, settle_value
from trialfleet_ledger.thread_pools import open_pool
from trialfleet_ledger.trial_order import trials

RESTORE = "restore what was written, from a copy or from the store's versions"
GIVE_UP = (
    f"{RESTORE}; nothing starts until then. If nothing can be restored, run a campaign of another name: the "
    "report of this one stays"
)
THREADS = 16  # that read again what differs
MOST_NAMED = 100  # entries that are absent


@dataclass(frozen=True)
class StoredJournal:
    """`records`: name (key below the campaign) -> SHA-256 of the bytes that were written; `faults`: name of an
    entry that was changed or deleted -> one sentence; `plan`: the plan that the first entry names, whatever
    later ones do, which may be of a time when it was edited; `absent`: the version of trialfleet that drives the
    campaign keeps no journal."""

    records: Mapping[str, str] = field(default_factory=dict[str, str])
    faults: Mapping[str, str] = field(default_factory=dict[str, str])
    plan: str | None = None
    absent: bool = False

    def of_other_plan(self, plan_sha256: str) -> dict[str, str]:
        """The fault of the plan, if the journal names another. `plan_sha256`: of the bytes of `campaign.json`."""
        return {} if self.plan in (None, plan_sha256) else describe_fault(f"/{keys.PLAN}", "changed")

    def refusal(self, plan_sha256: str) -> dict[str, str]:
        """Faults for which nothing starts: which trials have run, and under which plan, is not known."""
        return {**self.faults, **self.of_other_plan(plan_sha256)}

    def names_below(self, folder: str) -> dict[str, str]:
        """Records of trials in this folder, by name: the trial."""
        named = ((name, keys.trial_of(name)) for name in self.records if name.startswith(folder))
        return {name: trial for name, trial in named if trial is not None}


def read_journal(store: Store, campaign: str, *, over_s: float = WHILE_READING_S) -> StoredJournal:
    """Read it before the records that it names: they were written before it. What two entries say differently, the
    first says right. Raises `StoreError` if the store's answers do not agree."""
    faults: dict[str, str] = {}
    epoch = _newest_epoch(store, campaign, faults, over_s=over_s)  # before the entries that it counts
    listed = list_entries(store, campaign)
    last = max({*listed, 0 if epoch is None else epoch.journal}, default=0)
    unlisted = islice((n for n in range(1, last + 1) if n not in listed), MOST_NAMED)
    wanted = [keys.numbered(campaign, "journal", n) for n in sorted({*listed, *unlisted})]
    values = dict(store.get_many(wanted))
    records: dict[str, str] = {}
    plan: str | None = None
    for key in wanted:
        try:
            entry = parse_record(store, key, values.get(key), JournalEntry, listed=True, over_s=over_s)
        except OperatorError:
            faults |= describe_fault(key, "changed")
            continue
        if entry is None or entry.number != keys.number_of(key):
            faults |= describe_fault(key, "deleted" if entry is None else "changed")
            continue
        for name, digest in entry.records.items():
            records.setdefault(name, digest)
        plan = plan or entry.plan
        if entry.previous is not None:
            before = keys.numbered(campaign, "journal", entry.number - 1)
            faults |= _compare(store, before, values.get(before), entry.previous, over_s=over_s)
    absent = epoch is not None and epoch.plan is None and not wanted
    return StoredJournal(records, faults, plan, absent=absent)


def _compare(store: Store, key: str, raw: bytes | None, written: str, *, over_s: float) -> dict[str, str]:
    """What is wrong with a record. `raw`: as it was read; `written`: the SHA-256 of what was written."""
    try:
        settle_value(store, key, raw, partial(require_digest, written), over_s=over_s)
    except WrongValue as error:
        return describe_fault(key, "deleted" if error.value is None else "changed")
    return {}


def _newest_epoch(store: Store, campaign: str, faults: dict[str, str], *, over_s: float) -> Epoch | None:
    listed = (entry.key for entry in store.list(keys.folder(campaign, "epochs")) if entry.key.endswith(".json"))
    key = max(listed, key=keys.number_of, default="")
    if not keys.number_of(key):
        return None
    try:
        return parse_record(store, key, store.get(key), Epoch, listed=True, over_s=over_s)
    except OperatorError:
        faults |= describe_fault(key, "changed")
        return None


@dataclass(frozen=True)
class CheckedReads(ObservedReads):
    """Remembers what differs from what was written. `written`: key -> SHA-256; `read`: the same of what was read
    last, None: nothing was there."""

    written: dict[str, str]
    read: dict[str, str | None] = field(default_factory=dict[str, "str | None"])

    def remember(self, key: str, raw: bytes | None) -> None:
        if key.endswith(".json"):
            self.read[key] = None if raw is None else sha256(raw)

    def list(self, prefix: str) -> Iterator[ListedKey]:
        seen: set[str] = set()
        for entry in self.store.list(prefix):
            seen.add(entry.key)
            yield entry
        for key in self.written.keys() - seen - self.read.keys():
            if key.startswith(prefix):
                self.read[key] = None

    def expect(self, key: str, digest: str | None) -> None:
        """Another record says with what bytes this one was written; None: it does not say."""
        if digest is not None:
            self.written.setdefault(key, digest)

    def differs(self, key: str) -> bool:
        """Whether what was read is not what was written."""
        return key in self.read and self.written.get(key, self.read[key]) != self.read[key]

    def find_faults(self, *, over_s: float = WHILE_READING_S) -> dict[str, str]:
        """One sentence about each record that was read or listed and is not as it was written, by its name. What
        differs is read again first. Raises `StoreError` if the store's answers do not agree."""
        differing = [key for key in self.read if self.differs(key)]
        faults: dict[str, str] = {}
        with open_pool(THREADS) as pool:
            for fault in pool.map(partial(self._settle, over_s=over_s), sorted(differing)):
                faults |= fault
        return faults

    def _settle(self, key: str, *, over_s: float) -> dict[str, str]:
        return _compare(self.store, key, self.store.get(key), self.written[key], over_s=over_s)


def check_reads(store: Store, campaign: str, journal: StoredJournal) -> CheckedReads:
    """`store`, with what the journal says of its records."""
    return CheckedReads(store, campaign, {f"{campaign}/{name}": one for name, one in journal.records.items()})


def read_begun(reads: CheckedReads, journal: StoredJournal, done: Container[str]) -> None:
    """Read what the journal names of the attempts at trials that are not `done`: those with an outcome."""
    begun = [name for name, trial in journal.names_below("attempts/").items() if trial not in done]
    for _ in reads.get_many([f"{reads.campaign}/{name}" for name in begun]):
        pass


def stand_in_outcome(trial: Trial) -> Outcome:
    """In place of a trial without an outcome whose records were changed or deleted: it is missing data."""
    lost = LossClass.QUARANTINED
    return Outcome(trial=trial, attempts=1, abandoned=lost, losses=(lost,))


def stand_in_outcomes(plan: Plan, reps: int, missing: Collection[str]) -> list[Outcome]:
    """Of the planned trials among `missing`, by their ids."""
    planned = trials(plan, reps) if missing else ()
    return [stand_in_outcome(one.record()) for one in planned if one.id in missing]


def by_trial(faults: Mapping[str, str]) -> dict[str, str]:
    """Trial -> the sentence about one of its records, its outcome before those of its attempts."""
    found: dict[str, str] = {}
    for name, fault in sorted(faults.items(), reverse=True):
        trial = keys.trial_of(name)
        if trial is not None:
            found.setdefault(trial, fault)
    return found


def of_campaign(faults: Mapping[str, str]) -> tuple[str, ...]:
    """The sentences about records that are not of one trial."""
    return tuple(fault for name, fault in sorted(faults.items()) if keys.trial_of(name) is None)


_ABSENT = ("deleted after it was written", "is missing", "is missing or empty", "has no end.json")


def explain_absence(faults: Iterable[str]) -> str:
    """For a message that names these faults: where absent records may come from. Empty: none is absent."""
    if not any(fault.endswith(_ABSENT) for fault in faults):
        return ""
    return (
        " A copy that was made while the campaign ran, or that was not finished, looks like this, too: "
        "`trialfleet pull` makes a consistent one."
    )


def describe_fault(key: str, what: str) -> dict[str, str]:
    """`what`: was changed, or deleted."""
    name = key.partition("/")[2]
    return {name: f"{name} was {what} after it was written"}
