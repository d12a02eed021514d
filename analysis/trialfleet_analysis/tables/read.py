"""A campaign as tables: those that its store keeps where they hold, else made from its records and bundles."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

import pyarrow as pa

from trialfleet_analysis.evidence import Evidence, read_evidence
from trialfleet_analysis.ledger import Frame, Ledger, LostAttempt, few_of, read_frame, read_ledger
from trialfleet_analysis.tables.arrow import attempts_table, trials_table
from trialfleet_analysis.tables.attempts import attempt_rows
from trialfleet_analysis.tables.compact import Kept, keep, kept
from trialfleet_analysis.tables.restore import evidence_of, lost_of, outcome_of, trial_rows_of
from trialfleet_analysis.tables.rows import (
    TaskRow,
    TrialRow,
    task_rows,
    trial_rows,
    unplanned,
    usable_blocks,
)
from trialfleet_analysis.tables.witness import Witness
from trialfleet_runner.contract import Outcome
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store, StoreError


@dataclass(frozen=True)
class Campaign:
    """One campaign, read. Arrow tables by the schemas `TRIALS` and `ATTEMPTS`; the same as rows, when asked for.

    `blocks`: complete blocks. `terminal`: trials with an outcome, those that the plan has no place for included.
    `verified`: bundles were read, not only looked up. `source`: `tables` where the store's own were used.
    """

    frame: Frame
    tasks: tuple[TaskRow, ...]
    blocks: int
    trials: pa.Table
    attempts: pa.Table
    unplanned: tuple[str, ...]
    terminal: int
    verified: bool
    source: Literal["records", "tables"]
    refused: tuple[Outcome, ...] = ()  # outcomes of refused trials
    read: Ledger | None = None

    @property
    def interim(self) -> bool:
        """Whether a planned trial has no outcome yet."""
        return self.trials.num_rows < self.frame.planned

    @property
    def monitored(self) -> bool:
        """Whether numbers seen now may still change: blocks are open. What a halted task lacks changes none."""
        return self.interim and self.blocks < self.frame.reps

    @cached_property
    def rows(self) -> tuple[TrialRow, ...]:
        """One per trial with an outcome, in launch order."""
        return trial_rows_of(self.trials)

    @cached_property
    def lost(self) -> tuple[LostAttempt, ...]:
        """Every lost attempt but those that the reading itself refused (see `quarantined`)."""
        return lost_of(self.attempts)

    @cached_property
    def evidence(self) -> dict[str, Evidence]:
        """What was found of each measured or refused trial, by trial id."""
        return evidence_of(self.attempts)

    @cached_property
    def ledger(self) -> Ledger:
        """All records as one value. Made from the tables, it takes seconds for 100,000 trials: use the columns."""
        if self.read is not None:
            return self.read
        real = {outcome.trial.id: outcome for outcome in self.refused}
        outcomes = tuple(real.get(row.trial) or outcome_of(row) for row in self.rows)
        return Ledger(**few_of(self.frame), outcomes=outcomes, lost=self.lost)


def open_campaign(store: Store, campaign: str, *, verify: bool = True, tables: bool = True) -> Campaign:
    """A campaign as it stands. Of a finished one, the store's own tables are used where they hold, and are made
    there, silently, where it may be written.

    `verify`: read every bundle; otherwise look up that they exist, and keep nothing. `tables`: False reads records
    and bundles whatever is kept, and keeps the result. Raises `OperatorError` when there is no such campaign, or a
    record is of another version, and names its key; `StoreError` when the store cannot answer.
    """
    witness = Witness(store, campaign)
    frame = read_frame(cast("Store", witness), campaign)
    tasks = task_rows(frame)
    held = kept(witness, frame, tasks) if tables else None
    if held is not None:
        return _from_tables(frame, tasks, held)
    # A fresh witness: what the check of the kept tables saw may be older than what is read now.
    witness = Witness(store, campaign)
    made = _from_records(witness, campaign, verify=verify)
    if verify and made.unplanned == () and not made.interim:
        with suppress(StoreError, OperatorError):
            keep(store, made.frame, witness.sources(), made.trials, made.attempts)
    return made


def _from_tables(frame: Frame, tasks: tuple[TaskRow, ...], held: Kept) -> Campaign:
    return Campaign(
        frame=frame,
        tasks=tasks,
        blocks=held.blocks,
        trials=held.trials,
        attempts=held.attempts,
        unplanned=(),
        terminal=held.trials.num_rows,
        verified=True,
        source="tables",
        refused=held.refused,
    )


def _from_records(witness: Witness, campaign: str, *, verify: bool) -> Campaign:
    ledger = read_ledger(cast("Store", witness), campaign)
    tasks = task_rows(ledger)
    blocks = usable_blocks(ledger, tasks)
    evidence = read_evidence(witness.store, ledger, verify=verify)
    rows = trial_rows(ledger, evidence, blocks)
    return Campaign(
        frame=ledger,
        tasks=tasks,
        blocks=blocks,
        trials=trials_table(rows, tasks),
        attempts=attempts_table(attempt_rows(ledger, evidence)),
        unplanned=unplanned(ledger),
        terminal=len(ledger.outcomes),
        verified=verify,
        source="records",
        read=ledger,
    )
