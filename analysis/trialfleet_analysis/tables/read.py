"""A campaign as tables: those that its store keeps where they hold, else made from its records and bundles."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from trialfleet_analysis.evidence import read_evidence
from trialfleet_analysis.ledger import CampaignRecords, Frame, read_frame, read_ledger, record_look
from trialfleet_analysis.tables.columns import some, texts, truths
from trialfleet_analysis.tables.kept_tables import CachedTables, ReadDigests, keep, kept
from trialfleet_analysis.tables.made_of_rows import attempts_table, trials_table
from trialfleet_analysis.tables.rows import TaskRow, attempt_rows, task_rows, trial_rows, unplanned, usable_blocks
from trialfleet_analysis.tables.table import Table
from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.spent_money import EndedTrial, is_out_of_money
from trialfleet_ledger.store.protocol import ListedKey, Store, StoreError
from trialfleet_ledger.stored_journal import StoredJournal
from trialfleet_ledger.untrusted import finite

NAMED = 3  # tampered records


@dataclass(frozen=True)
class CampaignTables:
    """One campaign, read. Tables of `TRIAL_COLUMNS` and `ATTEMPT_COLUMNS`.

    `blocks`: complete blocks. `terminal`: trials with an outcome, those that the plan has no place for included.
    `verified`: the bundles of all verdicts were read, not only looked up; `not_pulled`: verdicts whose bundles a
    pull left out. `source`: `tables` where the store's own were used.
    """

    frame: Frame
    tasks: tuple[TaskRow, ...]
    blocks: int
    trials: Table
    attempts: Table
    unplanned: tuple[str, ...]
    terminal: int
    verified: bool
    not_pulled: int
    source: Literal["records", "tables"]
    out_of_money: bool = False  # the cost cap allows none of the open trials
    sealed: str | None = None  # digest of the tables that the store keeps; None: it keeps none

    @property
    def interim(self) -> bool:
        """Whether a planned trial has no outcome yet."""
        return self.trials.num_rows < self.frame.planned or bool(self.frame.planned_reps.undecided)

    @property
    def monitored(self) -> bool:
        """Whether numbers seen now may still change: blocks are open. What a halted task lacks changes none."""
        return self.interim and self.blocks < self.frame.reps

    @property
    def way_on(self) -> str:
        """What runs the trials that are missing."""
        return self.frame.describe_way_on(out_of_money=self.out_of_money)

    @property
    def tampered(self) -> str:
        """What is not as it was written, for a caution; empty: nothing."""
        named, trials = self.frame.tampered, int(truths(self.trials, "tampered").sum())
        more = [f"and {len(named) - NAMED} more"] if len(named) > NAMED else []
        left_out = [f"trials left out as missing data: {trials}"] if trials else []
        return "; ".join([*named[:NAMED], *more, *left_out])

    @property
    def faults(self) -> list[str]:
        """One sentence about each record, or trial, that is not as it was written."""
        of_trials = texts(some(self.trials, truths(self.trials, "tampered")), "fault")
        return [*self.frame.tampered, *(fault for fault in of_trials if fault)]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One per trial with an outcome, in launch order: the columns' values by name."""
        return self.trials.to_pylist()

    def record_look(self, store: Store, *, at: float, by: str) -> None:
        """Write that results were seen, if that was before the campaign's end: for all that shows some of them."""
        terminal = self.trials.num_rows
        record_look(store, self.frame, terminal=terminal, complete_blocks=self.blocks, at=at, by=by)


def open_campaign(
    store: Store,
    campaign: str,
    *,
    verify: bool = True,
    tables: bool = True,
    outcomes: Sequence[ListedKey] | None = None,
) -> CampaignTables:
    """A campaign as it stands. Of a finished one, the store's own tables are used where they hold, and are made
    there, silently, where it may be written.

    `verify`: read every bundle; otherwise look up that they exist, and keep nothing. `tables`: False reads records
    and bundles also where tables are kept, and keeps the result. `outcomes`: their listing, if the
    caller has just made it. Raises `OperatorError` when there is no such campaign, or a record is of another
    version, and names its key; `StoreError` when the store cannot answer.
    """
    witness = ReadDigests(store, campaign, outcomes)
    frame = read_frame(cast("Store", witness), campaign)
    tasks = task_rows(frame)
    held = kept(witness, frame, tasks) if tables else None
    if held is not None:
        return _from_tables(frame, tasks, held)
    # A fresh witness: what the check of the kept tables saw may be older than what is read now.
    witness = ReadDigests(store, campaign)
    made = _from_records(witness, campaign, frame.journal, verify=verify)
    if made.verified and made.unplanned == () and not made.interim and not made.frame.faults:
        with suppress(StoreError, OperatorError):
            sealed = keep(store, made.frame, witness.sources(), made.trials, made.attempts)
            return replace(made, sealed=sealed)
    return made


def _from_tables(frame: Frame, tasks: tuple[TaskRow, ...], held: CachedTables) -> CampaignTables:
    return CampaignTables(
        frame=frame,
        tasks=tasks,
        blocks=held.blocks,
        trials=held.trials,
        attempts=held.attempts,
        unplanned=(),
        terminal=held.trials.num_rows,
        verified=True,
        not_pulled=0,
        source="tables",
        sealed=held.sealed,
    )


def _from_records(witness: ReadDigests, campaign: str, journal: StoredJournal, *, verify: bool) -> CampaignTables:
    store = cast("Store", witness)
    for _ in store.list(keys.plan(campaign)):
        pass
    ledger = read_ledger(store, campaign, journal)
    tasks = task_rows(ledger)
    blocks = usable_blocks(ledger)
    evidence = read_evidence(store, ledger, verify=verify)
    rows = trial_rows(ledger, evidence, blocks)
    not_pulled = sum(not one.pulled for one in evidence.values())
    return CampaignTables(
        frame=ledger,
        tasks=tasks,
        blocks=blocks,
        trials=trials_table(rows, tasks),
        attempts=attempts_table(attempt_rows(ledger, evidence)),
        unplanned=unplanned(ledger),
        terminal=len(ledger.outcomes),
        out_of_money=len(rows) < ledger.planned and _is_out_of_money(store, ledger),
        verified=verify and not not_pulled,
        not_pulled=not_pulled,
        source="records",
    )


def _is_out_of_money(store: Store, ledger: CampaignRecords) -> bool:
    stored = [one for one in ledger.outcomes if one.trial.id not in ledger.replaced]
    costs = (None if one.scored is None else finite(one.scored.metrics.cost_usd) for one in stored)
    ended = [
        EndedTrial(one.trial.id, one.attempts, one.scored is not None, cost)
        for one, cost in zip(stored, costs, strict=True)
    ]
    attempts = (entry.key for entry in store.list(keys.attempts(ledger.plan.campaign)))
    plan, amendments, gone = ledger.plan, ledger.amendments, ledger.replaced
    return is_out_of_money(store, plan, amendments, ledger.reps, ended, gone, attempts)
