"""The tables of a finished campaign, kept in its store: a cache, sealed to the records that it was made from.

What proves that kept tables are fresh, each time they are opened: the contents of plan, amendments, halts and
quarantine; the listing of outcomes and attempts with the store's tags, or in a copy the contents of their records;
the digests of the files; that they say what a campaign of this plan can say; and some outcomes, drawn at random,
beside their rows. Trials that were refused when the tables were made are read again.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from trialfleet_analysis.attempt_listing import are_as_written
from trialfleet_analysis.evidence import read_evidence
from trialfleet_analysis.ledger import CampaignRecords, Frame, few_of, parsed
from trialfleet_analysis.tables.columns import integers, known, numbers, some, texts, words
from trialfleet_analysis.tables.kept_bytes import NotThese, pack_table, unpack_table
from trialfleet_analysis.tables.made_of_rows import evidence_of, trials_table
from trialfleet_analysis.tables.rows import TaskRow, Use, trial_row
from trialfleet_analysis.tables.schema import ATTEMPT_COLUMNS, TRIAL_COLUMNS, Column
from trialfleet_analysis.tables.table import Table
from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json, digest, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.base import Frozen, Record, Sha256
from trialfleet_ledger.records.measurements import Coverage
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict
from trialfleet_ledger.stage_reached import Stage
from trialfleet_ledger.store.observed import ObservedReads
from trialfleet_ledger.store.protocol import ListedKey, Store, StoreError
from trialfleet_ledger.stored_journal import StoredJournal

_FEW = re.compile(r"campaign\.json|(amendments|halts|quarantine)/.*")
_OUTCOMES = "outcomes/"
_LISTED = (keys.PLAN, _OUTCOMES, "attempts/")
_REPLACED = "/live.log.zst"


class RecordDigests(Frozen):
    """Digests of the records that tables rest on. `few`: of the contents of plan, amendments, halts and
    quarantine; `outcomes`: of the contents of all outcomes; `listed`: of the listing of plan, outcomes, attempts
    with its tags, which stands for their contents in the one store that it was made in; `place`: the plan's tag,
    which tells that store from a copy. None: the store gives no tags."""

    few: Sha256
    outcomes: Sha256
    listed: Sha256 | None
    place: str | None = None


@dataclass(frozen=True)
class ReadDigests(ObservedReads):
    """Remembers the digests of what the store gave. `known`: the listing of the outcomes, if the caller has just
    made it."""

    known: Sequence[ListedKey] | None = None
    few: dict[str, str] = field(default_factory=dict[str, str])
    outcomes: dict[str, str] = field(default_factory=dict[str, str])
    listed: dict[str, str | None] = field(default_factory=dict[str, "str | None"])

    def remember(self, key: str, raw: bytes | None) -> None:
        name = key.removeprefix(f"{self.campaign}/")
        seen = self.outcomes if name.startswith(_OUTCOMES) else self.few if _FEW.fullmatch(name) else None
        if seen is not None and raw is not None:
            seen[name] = sha256(raw)

    def list(self, prefix: str) -> Iterator[ListedKey]:
        whole = f"{self.campaign}/{_OUTCOMES}"
        start = len(self.campaign) + 1
        sealed = prefix.startswith(_LISTED, start)
        for entry in self.known if self.known is not None and prefix == whole else self.store.list(prefix):
            key, size, tag, _ = entry
            if sealed and not key.endswith(_REPLACED):
                self.listed[key[start:]] = f"{size} {tag}" if tag else None
            yield entry

    def sources(self) -> RecordDigests:
        """Of everything that was read and listed until now."""
        return RecordDigests(
            few=_digest(self.few.items()),
            outcomes=_digest(self.outcomes.items()),
            listed=self.listing(),
            place=self.listed.get(keys.PLAN),
        )

    def listing(self) -> str | None:
        """The listing's digest alone."""
        tags = [(name, tag) for name, tag in self.listed.items() if tag is not None]
        return _digest(tags) if len(tags) == len(self.listed) else None


def _digest(facts: Iterable[tuple[str, str]]) -> str:
    """Keys hold no control characters, so the lines cannot be read in two ways."""
    return hashlib.sha256("".join(f"{name}\n{fact}\n" for name, fact in sorted(facts)).encode()).hexdigest()


_WORDS: dict[str, type[StrEnum]] = {
    "use": Use,
    "verdict": Verdict,
    "stop": Stop,
    "abandoned": LossClass,
    "coverage": Coverage,
    "loss": LossClass,
    "stage": Stage,
}


def is_sound(frame: Frame, tasks: Sequence[TaskRow], trials: Table, attempts: Table) -> bool:
    """Every planned trial once, no word that does not exist, no pass without the verdict, nothing missing without
    a reason, and an attempt for each trial."""
    return (
        _words_exist(trials)
        and _words_exist(attempts)
        and _is_whole(frame, trials)
        and _agrees_with_itself(trials)
        and _uses(trials) == {(row.task, row.use.value) for row in tasks}
        and bool(np.all(_in_blocks(frame, trials) == numbers(trials, "in_blocks")))
        and _every_trial_has_attempts(trials, attempts)
    )


def _in_blocks(frame: Frame, trials: Table) -> NDArray[np.bool_]:
    counted = frame.blocks_counted(blocks_of(frame, trials))
    return (numbers(trials, "block") < counted) & ~_of_halted(frame, trials)


def _of_halted(frame: Frame, trials: Table) -> NDArray[np.bool_]:
    """Which trials belong to a halted condition."""
    found = np.zeros(trials.num_rows, dtype=np.bool_)
    for name in frame.halted_conditions:
        found |= words(trials, "condition").are(name)
    return found


def blocks_of(frame: Frame, trials: Table) -> int:
    """Complete blocks of a finished campaign: all, unless a trial was cancelled while it ran (see
    `complete_blocks`)."""
    counted = ~words(trials, "use").are(Use.HALTED) & ~_of_halted(frame, trials)
    if not counted.any():
        return 0
    cut = numbers(trials, "block")[counted & words(trials, "abandoned").are(LossClass.CANCELLED)]
    return int(cut.min()) if len(cut) else frame.reps


def _words_exist(table: Table) -> bool:
    return all(
        words(table, name).used() <= {word.value for word in kind}
        for name, kind in _WORDS.items()
        if name in table.column_names
    )


def _is_whole(frame: Frame, trials: Table) -> bool:
    """Every cell's reps, each once, and none that is not planned."""
    cells, reps = _cells(frame, trials), frame.planned_reps
    starts = [(at * reps.most, reps.of(cell)) for at, cell in enumerate(frame.plan.cell_names)]
    whole = [start + rep for start, own in starts for rep in range(own)]
    places = (numbers(trials, "block"), numbers(trials, "rep"))
    return all(
        bool(np.all((place >= 0) & (place < frame.reps)))
        and np.array_equal(np.sort(cells * frame.reps + place), whole)
        for place in places
    )


def _cells(frame: Frame, trials: Table) -> NDArray[np.int64]:
    """Which of the plan's cells each trial belongs to; −1: none."""
    task, condition = words(trials, "task"), words(trials, "condition")
    number = {(cell.task, cell.condition.name): at for at, cell in enumerate(frame.plan.cells)}
    at = np.full((len(task.names) + 1, len(condition.names) + 1), -1)  # the last of each: no word
    for t, name in enumerate(task.names):
        for c, other in enumerate(condition.names):
            at[t, c] = number.get((name, other), -1)
    return at[task.codes, condition.codes]


def _agrees_with_itself(trials: Table) -> bool:
    measured = known(trials, "verdict")
    passed = numbers(trials, "passed")
    claims: list[NDArray[np.bool_]] = [
        measured == ~known(trials, "missing"),
        measured == known(trials, "passed"),
        measured == known(trials, "stop"),
        measured == known(trials, "coverage"),
        (passed == 1) == words(trials, "verdict").are(Verdict.PASSED),
        ~(measured & known(trials, "fault")),
        ~measured | (numbers(trials, "verified") == 1),
    ]
    return all(bool(claim.all()) for claim in claims)


def _uses(trials: Table) -> set[tuple[str, str]]:
    task, use = words(trials, "task"), words(trials, "use")
    pairs = np.unique(np.stack([task.codes, use.codes]), axis=1)
    return {(task.names[t], use.names[u]) for t, u in pairs.T.tolist()}


def _every_trial_has_attempts(trials: Table, attempts: Table) -> bool:
    """Each has one, and of those with a verdict just one counts."""
    names = texts(trials, "trial")
    counting = texts(some(attempts, known(attempts, "verdict")), "trial")
    return (
        len(set(names)) == len(names)
        and len(set(counting)) == len(counting)
        and set(texts(attempts, "trial")) == set(names)
        and set(counting) == set(texts(some(trials, known(trials, "verdict")), "trial"))
    )


SAMPLE = 64  # outcomes that are compared with their rows at each opening
_NAMES = ("trials", "attempts")
_LEAST_BYTES, _BYTES_OF_TRIAL = 2**24, 2**16  # that a kept table may expand to


class CacheManifest(Record):
    """`tables/seal.json`: digests of the table files and of the records that they were made from."""

    campaign: str
    uid: str
    tables: Literal[2] = 2  # `schema.VERSION`
    sources: RecordDigests
    trials: Sha256
    attempts: Sha256

    @property
    def files(self) -> str:
        """Digest of both."""
        return digest([self.trials, self.attempts])


@dataclass(frozen=True)
class CachedTables:
    """Tables that were kept and hold."""

    trials: Table
    attempts: Table
    blocks: int
    sealed: str  # digest of both files


def keep(store: Store, frame: Frame, sources: RecordDigests, trials: Table, attempts: Table) -> str:
    """Write the tables, then the seal; the digest of both files. Raises `StoreError` or `OperatorError` where that
    cannot be."""
    campaign = frame.plan.campaign
    about = {"campaign": campaign, "uid": frame.plan.uid, "sources": sources.model_dump(mode="json")}
    files = {name: pack_table(table, about) for name, table in zip(_NAMES, (trials, attempts), strict=True)}
    for name, raw in files.items():
        store.put(f"{campaign}/tables/{name}.table", raw)
    seal = CacheManifest(
        campaign=campaign,
        uid=frame.plan.uid,
        sources=sources,
        trials=sha256(files["trials"]),
        attempts=sha256(files["attempts"]),
    )
    store.put(f"{campaign}/tables/seal.json", canonical_json(seal))
    return seal.files


def kept(witness: ReadDigests, frame: Frame, tasks: tuple[TaskRow, ...]) -> CachedTables | None:
    """The tables that the store keeps, if they hold; None: there are none, or they are not to be believed.

    `witness`: through which `frame` was read.
    """
    store, folder = witness.store, f"{frame.plan.campaign}/tables"
    seal = _seal(store.get(f"{folder}/seal.json"))
    if seal is None or (seal.campaign, seal.uid) != (frame.plan.campaign, frame.plan.uid):
        return None
    seen = _same_sources(witness, seal.sources, frame.journal)
    if seen is None:
        return None
    files = dict(store.get_many([f"{folder}/{name}.table" for name in _NAMES]))
    try:
        trials = _opened(files[f"{folder}/trials.table"], seal.trials, TRIAL_COLUMNS, frame.planned)
        attempts = _opened(files[f"{folder}/attempts.table"], seal.attempts, ATTEMPT_COLUMNS, frame.planned)
        if not is_sound(frame, tasks, trials, attempts):
            return None
        blocks = _compared(witness.store, frame, tasks, trials, attempts)
    except NotThese:
        return None
    if blocks is None:
        return None
    if seen != seal.sources:
        with suppress(StoreError, OperatorError):  # next time, the listing will do
            store.put(f"{folder}/seal.json", canonical_json(seal.model_copy(update={"sources": seen})))
    return CachedTables(trials, attempts, blocks, seal.files)


def _seal(raw: bytes | None) -> CacheManifest | None:
    try:
        return None if raw is None else CacheManifest.model_validate_json(raw)
    except ValidationError:
        return None


def _same_sources(witness: ReadDigests, sealed: RecordDigests, journal: StoredJournal) -> RecordDigests | None:
    """What the store's records are now, if that is what was sealed. The listing's tags are enough where they are
    the same; a copy of the store has others, and its records are read. Its bundles are as they were copied."""
    if sealed.few != witness.sources().few:
        return None
    outcomes, attempts = list_sealed(witness)
    if sealed.listed is not None and witness.listing() == sealed.listed:
        return sealed
    if sealed.place is not None and witness.sources().place == sealed.place:
        return None
    for _ in witness.get_many(outcomes):
        pass
    now = witness.sources()
    if now.outcomes != sealed.outcomes or not are_as_written(witness.store, witness.campaign, journal, attempts):
        return None
    return now


def list_sealed(witness: ReadDigests) -> tuple[list[str], list[str]]:
    """List what a seal's `listed` is made of: the keys of outcomes, and those below `attempts/`."""
    folders = (keys.plan(witness.campaign), keys.outcomes(witness.campaign), keys.attempts(witness.campaign))
    _, outcomes, attempts = ([entry.key for entry in witness.list(folder)] for folder in folders)
    return outcomes, attempts


def _opened(raw: bytes | None, sealed: str, columns: Sequence[Column], planned: int) -> Table:
    """`planned`: trials, which bound what it may expand to."""
    if raw is None or sha256(raw) != sealed:
        raise NotThese("missing, or not the one that was sealed")
    return unpack_table(raw, columns, _LEAST_BYTES + planned * _BYTES_OF_TRIAL)


def _compared(
    store: Store, frame: Frame, tasks: tuple[TaskRow, ...], trials: Table, attempts: Table
) -> int | None:
    """The complete blocks, if a sample of the rows and the refused ones are what the store says now."""
    refused = known(trials, "fault")
    examined = refused.copy()
    examined[random.SystemRandom().sample(range(trials.num_rows), min(SAMPLE, trials.num_rows))] = True
    blocks = blocks_of(frame, trials)
    outcomes = _outcomes(store, frame, texts(some(trials, examined), "trial"))
    if not _rows_follow(frame, some(trials, examined), attempts, outcomes, tasks, blocks):
        return None
    again = tuple(outcomes[name] for name in texts(some(trials, refused), "trial") if name)
    if again and not _still_refused(store, frame, again):
        return None
    return blocks


def _outcomes(store: Store, frame: Frame, trials: Sequence[str | None]) -> dict[str, Outcome]:
    prefix = f"{frame.plan.campaign}/outcomes/"
    read = store.get_many([f"{prefix}{trial}.json" for trial in trials])
    found = [parsed(store, Outcome, key, raw, listed=True) for key, raw in read]
    return {outcome.trial.id: outcome for outcome in found if outcome is not None}


def _rows_follow(
    frame: Frame,
    sample: Table,
    attempts: Table,
    outcomes: Mapping[str, Outcome],
    tasks: Sequence[TaskRow],
    blocks: int,
) -> bool:
    """Whether these rows are what their outcomes give, with what was found of them."""
    names = [name or "" for name in texts(sample, "trial")]
    if not all(name in outcomes for name in names):
        return False
    if not {outcome.trial.task for outcome in outcomes.values()} <= {task.task for task in tasks}:
        return False
    evidence = evidence_of(some(attempts, np.isin(np.array(texts(attempts, "trial")), names)))
    lost, stopped = (integers(sample, name).tolist() for name in ("mid_run_losses", "interrupted_runs"))
    rows = [
        trial_row(
            outcomes[n],
            evidence.get(n),
            mid_run,
            frame.blocks_in_use(outcomes[n].trial.condition, blocks),
            interrupted=interrupted,
        )
        for n, mid_run, interrupted in zip(names, lost, stopped, strict=True)
    ]
    return trials_table(rows, tasks).to_pylist() == sample.to_pylist()


def _still_refused(store: Store, frame: Frame, outcomes: tuple[Outcome, ...]) -> bool:
    few = CampaignRecords(**few_of(frame), outcomes=outcomes, lost=())
    now = read_evidence(store, few, verify=True)
    return all((found := now.get(outcome.trial.id)) is not None and found.fault for outcome in outcomes)
