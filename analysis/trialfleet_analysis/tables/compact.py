"""The tables of a finished campaign, kept in its store: a cache, sealed to the records that it was made from.

What proves that kept tables are fresh, each time they are opened: the contents of plan, amendments, halts and
quarantine; the listing of all outcomes with the store's tags, or else their contents; the digests of the files;
that they say what a campaign of this plan can say; and some outcomes, drawn at random, beside their rows. What was
found in a bundle or a chain is as of the day when they were made; trials that were refused then are read again.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from trialfleet_analysis.evidence import read_evidence
from trialfleet_analysis.ledger import Frame, Ledger, few_of, parsed
from trialfleet_analysis.tables.columns import known, some, texts
from trialfleet_analysis.tables.parquet import NotThese, from_parquet, to_parquet
from trialfleet_analysis.tables.restore import evidence_of, trial_rows_of
from trialfleet_analysis.tables.rows import TaskRow, TrialRow, trial_row
from trialfleet_analysis.tables.schema import ATTEMPTS, TRIALS
from trialfleet_analysis.tables.sound import blocks_of, is_sound
from trialfleet_analysis.tables.witness import Sources, Witness
from trialfleet_runner.canonical import canonical_json, sha256
from trialfleet_runner.contract import Outcome, Record, Sha256
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store, StoreError

SAMPLE = 64  # outcomes that are compared with their rows at each opening
_NAMES = ("trials", "attempts")


class Seal(Record):
    """`tables/seal.json`: what the files beside it are, and what they were made from."""

    campaign: str
    uid: str
    tables: Literal[2] = 2  # `schema.VERSION`
    sources: Sources
    trials: Sha256
    attempts: Sha256


@dataclass(frozen=True)
class Kept:
    """Tables that were kept and hold. `refused`: outcomes of the refused trials, as the store has them."""

    trials: pa.Table
    attempts: pa.Table
    blocks: int
    refused: tuple[Outcome, ...]


def keep(store: Store, frame: Frame, sources: Sources, trials: pa.Table, attempts: pa.Table) -> None:
    """Write the tables, then the seal. Raises `StoreError` or `OperatorError` where that cannot be."""
    campaign = frame.plan.campaign
    about = {"campaign": campaign, "uid": frame.plan.uid, "sources": sources.model_dump(mode="json")}
    files = {name: to_parquet(table, about) for name, table in zip(_NAMES, (trials, attempts), strict=True)}
    for name, raw in files.items():
        store.put(f"{campaign}/tables/{name}.parquet", raw)
    seal = Seal(
        campaign=campaign,
        uid=frame.plan.uid,
        sources=sources,
        trials=sha256(files["trials"]),
        attempts=sha256(files["attempts"]),
    )
    store.put(f"{campaign}/tables/seal.json", canonical_json(seal))


def kept(witness: Witness, frame: Frame, tasks: tuple[TaskRow, ...]) -> Kept | None:
    """The tables that the store keeps, if they hold; None: there are none, or they are not to be believed.

    `witness`: through which `frame` was read.
    """
    store, folder = witness.store, f"{frame.plan.campaign}/tables"
    seal = _seal(store.get(f"{folder}/seal.json"))
    if seal is None or (seal.campaign, seal.uid) != (frame.plan.campaign, frame.plan.uid):
        return None
    seen = _same_sources(witness, seal.sources)
    if seen is None:
        return None
    files = dict(store.get_many([f"{folder}/{name}.parquet" for name in _NAMES]))
    try:
        trials = _opened(files[f"{folder}/trials.parquet"], seal.trials, TRIALS)
        attempts = _opened(files[f"{folder}/attempts.parquet"], seal.attempts, ATTEMPTS)
        if not is_sound(frame, tasks, trials, attempts):
            return None
        held = _compared(witness.store, frame, trials, attempts)
    except NotThese:
        return None
    if held is not None and seen != seal.sources:
        with suppress(StoreError, OperatorError):  # next time, the listing will do
            store.put(f"{folder}/seal.json", canonical_json(seal.model_copy(update={"sources": seen})))
    return held


def _seal(raw: bytes | None) -> Seal | None:
    try:
        return None if raw is None else Seal.model_validate_json(raw)
    except ValidationError:
        return None


def _same_sources(witness: Witness, sealed: Sources) -> Sources | None:
    """What the store's records are now, if that is what was sealed. The listing's tags are enough where they are
    the same; a copy of the store has others, and its outcomes are read."""
    keys = [entry.key for entry in witness.list(f"{witness.campaign}/outcomes/")]
    if sealed.few != witness.sources().few:
        return None
    if sealed.listed is not None and witness.listing() == sealed.listed:
        return sealed
    for _ in witness.get_many(keys):
        pass
    now = witness.sources()
    return now if now.outcomes == sealed.outcomes else None


def _opened(raw: bytes | None, sealed: str, schema: pa.Schema) -> pa.Table:
    if raw is None or sha256(raw) != sealed:
        raise NotThese("missing, or not the one that was sealed")
    return from_parquet(raw, schema)


def _compared(store: Store, frame: Frame, trials: pa.Table, attempts: pa.Table) -> Kept | None:
    """The tables, if a sample of their rows and the refused ones are what the store says now."""
    examined = known(trials, "fault")
    examined[random.SystemRandom().sample(range(trials.num_rows), min(SAMPLE, trials.num_rows))] = True
    rows = trial_rows_of(some(trials, examined))
    outcomes = _outcomes(store, frame, rows)
    blocks = blocks_of(frame, trials)
    if not _rows_follow(rows, attempts, outcomes, blocks):
        return None
    again = tuple(outcomes[row.trial] for row in rows if row.fault is not None)
    if again and not _still_refused(store, frame, again):
        return None
    return Kept(trials, attempts, blocks, again)


def _outcomes(store: Store, frame: Frame, rows: Sequence[TrialRow]) -> dict[str, Outcome]:
    names = [row.trial for row in rows]
    prefix = f"{frame.plan.campaign}/outcomes/"
    read = store.get_many([f"{prefix}{name}.json" for name in names])
    found = [parsed(store, Outcome, key, raw) for key, raw in read if raw is not None]
    return {outcome.trial.id: outcome for outcome in found}


def _rows_follow(
    rows: Sequence[TrialRow], attempts: pa.Table, outcomes: Mapping[str, Outcome], blocks: int
) -> bool:
    """Whether these rows are what their outcomes give, with what was found of them."""
    names = {row.trial for row in rows}
    theirs = np.array([name in names for name in texts(attempts, "trial")], np.bool_)
    evidence = evidence_of(some(attempts, theirs))
    return all(
        row.trial in outcomes
        and trial_row(outcomes[row.trial], evidence.get(row.trial), row.mid_run_losses, blocks) == row
        for row in rows
    )


def _still_refused(store: Store, frame: Frame, outcomes: tuple[Outcome, ...]) -> bool:
    few = Ledger(**few_of(frame), outcomes=outcomes, lost=())
    now = read_evidence(store, few, verify=True)
    return all((found := now.get(outcome.trial.id)) is not None and found.fault for outcome in outcomes)
