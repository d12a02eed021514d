"""What a resumed campaign compares with its journal before anything starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger, LedgerListing
from trialfleet_ledger.store.rereading import BEFORE_A_RECORD_S
from trialfleet_ledger.stored_journal import PLAN, StoredJournal, campaign_faults, find_changed, read_journal

SHOWN = 5
RESTORE = "restore them from a copy or from the store's versions"


@dataclass(frozen=True)
class TamperedRecords:
    """`trials`: trials without an outcome, records of which were changed or deleted, and what; `faults`: of the
    campaign's other records."""

    trials: Mapping[str, str]
    faults: tuple[str, ...]

    def sentences(self) -> list[str]:
        """For the operator."""
        few = [*self.faults, *self.trials.values()]
        rest = [] if len(few) <= SHOWN else [f"… and {len(few) - SHOWN} more"]
        held = f": {len(self.trials)} trials do not run again" if self.trials else ""
        return [f"tampered{held}; {RESTORE}:", *few[:SHOWN], *rest] if few else []


def check_records(ledger: Ledger, survey: LedgerListing, journal: StoredJournal) -> TamperedRecords:
    """Compare trials that would run with what was written of them. `journal`: read before `survey`. Raises
    `OperatorError` when the plan is not the one that the records name."""
    store, campaign = ledger.store, ledger.campaign
    faults = campaign_faults(store, campaign, journal, ledger.journal.plan_sha256() or "")
    if any(fault.startswith(PLAN) for fault in faults):
        raise OperatorError(
            "campaign.json was changed after the campaign began: its records name another plan",
            where=f"{store.url}/{keys.plan(campaign)}",
            hint=f"{RESTORE.replace('them', 'it')}; nothing starts until then",
        )
    lost = {keys.outcome_name(trial): trial for trial in journal.outcome_ids - survey.done}
    of = lost | {name: trial for name, trial in journal.intents.items() if trial not in survey.done}
    changed = find_changed(store, campaign, journal, of, over_s=BEFORE_A_RECORD_S)
    return TamperedRecords({of[name]: fault for name, fault in sorted(changed.items())}, faults)


def note_outcomes(ledger: Ledger, journal: StoredJournal, done: Iterable[str]) -> None:
    """Outcomes that a killed controller wrote and did not name."""
    unnamed = [keys.outcome(ledger.campaign, trial) for trial in sorted(set(done) - journal.outcome_ids)]
    for key, raw in ledger.store.get_many(unnamed):
        if raw is not None:
            ledger.journal.note(key, raw)
    ledger.journal.flush()


def open_journal(ledger: Ledger) -> tuple[LedgerListing, TamperedRecords, StoredJournal]:
    """The journal first, then the listing of what it names."""
    journal = read_journal(ledger.store, ledger.campaign)
    survey = ledger.survey()
    return survey, check_records(ledger, survey, journal), journal
