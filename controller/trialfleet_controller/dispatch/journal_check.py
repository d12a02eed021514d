"""What a resumed campaign compares with its journal before anything starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger, LedgerListing
from trialfleet_ledger.parsed_records import parse_with_bytes
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.directives import Epoch
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import BEFORE_A_RECORD_S
from trialfleet_ledger.stored_journal import (
    GIVE_UP,
    RESTORE,
    StoredJournal,
    by_trial,
    check_reads,
    of_campaign,
    read_begun,
    read_journal,
)

SHOWN = 5
OLDER = (
    "the campaign was begun by a version of trialfleet that keeps no journal: whether its records were edited or "
    "deleted until now is not known"
)


@dataclass(frozen=True)
class CheckedLedger:
    """What is in the store, and what is wrong with it. `tampered`: trials without an outcome whose records were
    changed or deleted, and which; `faults`: of the campaign's other records; `older`: a version without a journal
    has driven the campaign until now."""

    listing: LedgerListing
    journal: StoredJournal
    tampered: Mapping[str, str]
    faults: tuple[str, ...]
    older: bool

    def sentences(self) -> list[str]:
        """For the operator."""
        few = [*self.faults, *self.tampered.values()]
        rest = [] if len(few) <= SHOWN else [f"… and {len(few) - SHOWN} more"]
        held = f"{plural(len(self.tampered), 'trial')} left out, never run again; " if self.tampered else ""
        return [OLDER] * self.older + ([f"tampered: {held}{RESTORE}:", *few[:SHOWN], *rest] if few else [])


def check_ledger(ledger: Ledger) -> CheckedLedger:
    """Read the journal, then list the records, and compare those that decide which trials run. Raises
    `OperatorError` when the plan is not the one that the records name, or when an entry of the journal is not as
    it was written: which trials have run is not known then."""
    store, campaign = ledger.store, ledger.campaign
    journal = read_journal(store, campaign, over_s=BEFORE_A_RECORD_S)
    if refusal := journal.refusal(ledger.journal.plan_sha256() or ""):
        first, fault = min(refusal.items())
        why = "its records name another plan" if first == keys.PLAN else "a trial that has run could run again"
        raise OperatorError(f"{fault}: {why}", where=f"{store.url}/{campaign}/{first}", hint=GIVE_UP)
    reads = check_reads(store, campaign, journal)
    checked = Ledger(cast("Store", reads), campaign)
    listing = checked.survey()
    _read_directives(checked)
    read_begun(reads, journal, listing.done)
    faults = reads.find_faults(over_s=BEFORE_A_RECORD_S)
    tampered = {trial: fault for trial, fault in by_trial(faults).items() if trial not in listing.done}
    return CheckedLedger(listing, journal, tampered, of_campaign(faults), _is_older(ledger, journal))


def _is_older(ledger: Ledger, journal: StoredJournal) -> bool:
    first = ledger.read(keys.numbered(ledger.campaign, "epochs", 1), Epoch)
    return first is not None and first.plan is None and not journal.names_below("outcomes/")


def _read_directives(ledger: Ledger) -> None:
    """What is wrong with them is remembered; what they say is read later."""
    for kind in ("amendments", "halts", "decisions"):
        for _ in ledger.store.get_many(ledger.numbers(kind)):
            pass


def read_unchanged(ledger: Ledger, trials: Sequence[str]) -> list[Outcome]:
    """Outcomes of these trials, for a decision. One that is not as it was written counts as lost, as in tables."""
    reads = check_reads(ledger.store, ledger.campaign, read_journal(ledger.store, ledger.campaign))
    outcomes = list(Ledger(cast("Store", reads), ledger.campaign).attempts.outcomes(trials))
    changed = by_trial(reads.find_faults(over_s=BEFORE_A_RECORD_S))
    lost = {"scored": None, "abandoned": LossClass.QUARANTINED}
    return [one.model_copy(update=lost) if one.trial.id in changed else one for one in outcomes]


def note_outcomes(ledger: Ledger, journal: StoredJournal, done: Iterable[str]) -> None:
    """Outcomes that a killed controller wrote and did not name."""
    named = set(journal.names_below("outcomes/").values())
    unnamed = [keys.outcome(ledger.campaign, trial) for trial in sorted(set(done) - named)]
    for key, raw in ledger.store.get_many(unnamed):
        stored = parse_with_bytes(ledger.store, key, raw, Outcome, listed=True)
        if stored is not None and key == keys.outcome(ledger.campaign, stored[0].trial.id):
            ledger.journal.note(key, stored[1])
    ledger.journal.flush()
