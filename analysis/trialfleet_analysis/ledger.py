"""A campaign's records, read from its store: the one place where analysis reads the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, cast

from trialfleet_ledger import keys
from trialfleet_ledger.amendments import effective_reps, ending_look, explain_end, planned_reps, word_resume
from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.designs.looks import Decision
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.parsed_records import parse_record, parse_with_bytes
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.attempt import End, Intent, Quarantine, Start
from trialfleet_ledger.records.base import Record
from trialfleet_ledger.records.directives import Amendment, Cancel, Halt, Look
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.stage_reached import Stage, stage
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import WHILE_READING_S, is_listed
from trialfleet_ledger.stored_journal import (
    CheckedReads,
    StoredJournal,
    by_trial,
    check_reads,
    describe_fault,
    of_campaign,
    read_begun,
    read_journal,
    stand_in_outcomes,
)
from trialfleet_ledger.stored_records import read_listed

R = TypeVar("R", bound=Record)
_LATEST = 253_402_300_799  # the last second of 9999, where calendars of several readers end


@dataclass(frozen=True)
class AttemptRun:
    """Who ran an attempt, where and when, as its start and end say. Times are seconds since the epoch, by the
    clock of who wrote the record, to the microsecond. None: no such record, or it does not say."""

    started_at: float | None = None
    ended_at: float | None = None
    by: str | None = None  # who wrote the end: runner or controller
    host: str | None = None
    node: str | None = None
    pod: str | None = None
    image: str | None = None
    bundle_bytes: int | None = None
    score_only: bool = False


NOBODY = AttemptRun()


@dataclass(frozen=True)
class LostAttempt:
    """One attempt without a verdict. `elapsed_s`: from its start record to its end; None without both.
    `message` comes from the attempt's end: show it escaped."""

    trial: str
    attempt: int
    loss: LossClass
    stage: Stage
    message: str
    elapsed_s: float | None
    run: AttemptRun = NOBODY


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What a campaign's few records say: the plan, and what was decided about it since. `faults`: one sentence
    about each record that is not as it was written, by its name (key below the campaign)."""

    plan: Plan
    plan_sha256: str
    reps: int  # planned per cell, amendments included
    amendments: tuple[Amendment, ...]
    halts: tuple[Halt, ...]  # those that no amendment lifted
    cancel: Cancel | None
    out_of_time: bool  # the wall-clock limit, amendments included, is behind us
    looks: tuple[Look, ...]
    decisions: tuple[Decision, ...]  # of declared looks
    quarantine: tuple[Quarantine, ...]
    journal: StoredJournal = field(default_factory=StoredJournal)
    faults: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def tampered(self) -> tuple[str, ...]:
        """What is wrong with records that are not of one trial."""
        return of_campaign(self.faults)

    @property
    def ended(self) -> Decision | None:
        """The look that ended the campaign; None: none did, or reps were added since."""
        return ending_look(self.decisions, self.amendments)

    def describe_way_on(self, *, out_of_money: bool) -> str:
        """What runs the trials that are missing."""
        limits = {"out_of_time": self.out_of_time, "out_of_money": out_of_money}
        resume = f"{word_resume(halted=bool(self.halts), **limits)} runs what is missing"
        return explain_end(self.decisions, self.amendments, cancelled=self.cancel is not None) or resume

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names in the campaign file's order."""
        return self.plan.condition_names

    @property
    def halted_conditions(self) -> dict[str, str]:
        """Name -> why: none of their trials is in a rate or a comparison."""
        return {halt.condition: halt.reason for halt in self.halts if halt.condition is not None}

    def blocks_in_use(self, condition: str, complete: int) -> int:
        """How many of the complete blocks a condition's trials count in."""
        return 0 if condition in self.halted_conditions else self.blocks_counted(complete)

    def blocks_counted(self, complete: int) -> int:
        """Of the complete blocks, those up to the look that ended the campaign: what ran on until it stopped is in
        no number. All of them where reps were added since."""
        return complete if self.ended is None else min(complete, self.ended.blocks)

    @property
    def planned_reps(self) -> PlannedReps:
        """Of every cell: `reps`, fewer where a decision has left it out."""
        return planned_reps(self.plan, self.amendments, self.decisions, self.halts)

    @property
    def planned(self) -> int:
        """Trials of all cells, without those that a look is certain to leave out."""
        return self.planned_reps.trials(self.plan.cell_names)


@dataclass(frozen=True, kw_only=True)
class CampaignRecords(Frame):
    """All that a report needs of a campaign but the bundles. Outcomes in launch order (block, position).
    `replaced`: planned trials whose outcome, or attempts without one, were changed or deleted: an outcome that
    says nothing stands in their place."""

    outcomes: tuple[Outcome, ...]
    lost: tuple[LostAttempt, ...]
    replaced: frozenset[str] = frozenset()


def read_frame(store: Store, campaign: str, journal: StoredJournal | None = None) -> Frame:
    """`journal`: if it was read before. Raises `OperatorError` when there is no such campaign or a record is of
    another version."""
    journal = journal or read_journal(store, campaign)  # before the records that it names
    reads = check_reads(store, campaign, journal)
    store = cast("Store", reads)
    key = keys.plan(campaign)
    raw = store.get(key)
    listed = raw is None and is_listed(store, key)
    stored = parse_with_bytes(store, key, raw, Plan, listed=listed, over_s=WHILE_READING_S)
    if stored is None:
        raise OperatorError(
            f"no campaign {campaign!r} in {store.url}",
            where=f"{store.url}/{key}",
            hint="name the campaign file, or the campaign's folder in its store; `trialfleet run` makes one",
        )
    plan, raw = stored
    directives = Ledger(store, campaign).directives
    amendments, decisions = directives.amendments(), directives.decisions()
    plan_sha256 = sha256(raw)
    return Frame(
        plan=plan,
        plan_sha256=plan_sha256,
        reps=effective_reps(plan, amendments, decisions),
        amendments=amendments,
        halts=directives.halts(),
        cancel=directives.cancelled(),
        out_of_time=directives.out_of_time(plan, amendments),
        looks=directives.looks(),
        decisions=decisions,
        quarantine=tuple(record for _, record in _records(store, Quarantine, keys.quarantines(campaign))),
        journal=journal,
        faults={**journal.faults, **journal.of_other_plan(plan_sha256), **_faults_of_few(reads, journal)},
    )


def _faults_of_few(reads: CheckedReads, journal: StoredJournal) -> dict[str, str]:
    for _ in reads.get_many(
        [f"{reads.campaign}/{name}" for name in journal.records if name.startswith("epochs/")]
    ):
        pass
    return reads.find_faults()


def read_ledger(store: Store, campaign: str, journal: StoredJournal | None = None) -> CampaignRecords:
    """All records of a campaign. `journal`, and what it raises: as `read_frame`."""
    frame = read_frame(store, campaign, journal)
    reads = check_reads(store, campaign, frame.journal)
    stored, faults = _outcomes(reads, frame)
    finished = len(stored) >= frame.planned
    if not finished:
        read_begun(reads, frame.journal, {outcome.trial.id for outcome in stored})
    lost = tuple(_lost(reads, stored, unfinished=not finished))
    faults |= reads.find_faults()
    if frame.journal.plan is None and not frame.journal.faults and any(outcome.plan for outcome in stored):
        faults |= describe_fault(keys.numbered(campaign, "journal", 1), "deleted")
    missing = by_trial(faults).keys() - {outcome.trial.id for outcome in stored}
    instead = stand_in_outcomes(frame.plan, frame.reps, missing)
    outcomes = sorted((*stored, *instead), key=lambda outcome: (outcome.trial.block, outcome.trial.position))
    few = few_of(replace(frame, faults={**frame.faults, **faults}))
    replaced = frozenset(outcome.trial.id for outcome in instead)
    return CampaignRecords(**few, outcomes=tuple(outcomes), lost=lost, replaced=replaced)


def few_of(frame: Frame) -> dict[str, Any]:
    """A frame's fields, to make a `Ledger` of."""
    return {field.name: getattr(frame, field.name) for field in fields(Frame)}


def record_look(
    store: Store, frame: Frame, *, terminal: int, complete_blocks: int, at: float, by: str
) -> Look | None:
    """Write that results were seen, if that was before the campaign's end (`Directives.look`)."""
    return Ledger(store, frame.plan.campaign, clock=lambda: at).directives.look(
        planned=frame.planned, terminal=terminal, complete_blocks=complete_blocks, by=by, known=frame.looks
    )


def _outcomes(reads: CheckedReads, frame: Frame) -> tuple[list[Outcome], dict[str, str]]:
    """The outcomes that are as they were written, and what is wrong with others."""
    store, campaign = cast("Store", reads), reads.campaign
    listed = [entry.key for entry in store.list(keys.outcomes(campaign)) if entry.key.endswith(".json")]
    values = list(store.get_many(listed))
    faults = reads.find_faults()
    found: dict[tuple[str, str, int], Outcome] = {}
    for key, raw in values:
        name = key.removeprefix(f"{campaign}/")
        outcome = None if name in faults else parsed(store, Outcome, key, raw, listed=True)
        if outcome is None:
            continue
        trial = outcome.trial
        twin = found.setdefault((trial.task, trial.condition, trial.rep), outcome)
        if key != keys.outcome(campaign, trial.id) or twin is not outcome:
            raise OperatorError(
                f"a second outcome, or one under another name: {trial.task} × {trial.condition}, rep {trial.rep}",
                where=f"{store.url}/{key}",
                hint="a copied or renamed record would be counted twice: remove it",
            )
        if outcome.plan not in (None, frame.plan_sha256):
            faults[name] = f"{keys.PLAN} is not the plan that {name} names"
    return list(found.values()), faults


def _lost(reads: CheckedReads, outcomes: Sequence[Outcome], *, unfinished: bool) -> Iterator[LostAttempt]:
    """Every lost attempt: of terminal trials as their outcome folds them, of the others as their ends say."""
    store, campaign = cast("Store", reads), reads.campaign
    folded = [
        (outcome.trial.id, number, loss)
        for outcome in outcomes
        for number, loss in enumerate(outcome.losses, start=1)
    ]
    open_ends = list(_open_ends(store, campaign, {o.trial.id for o in outcomes})) if unfinished else []
    folded += [(end.trial, end.attempt, end.loss.loss) for end in open_ends if end.loss is not None]
    records = AttemptRecords(store, campaign, [(trial, number) for trial, number, _ in folded])
    for trial, number, loss in folded:
        end = records.one(End, trial, number, "end.json", listed=True)
        expect_of(reads, end)
        start = records.one(Start, trial, number, "start.json")
        yield LostAttempt(
            trial,
            number,
            loss,
            stage(end, score_only=records.score_only(trial, number), patched=records.patched(trial, number)),
            end.loss.message if end and end.loss else "",
            end.at - start.at if end and start else None,
            run_of(start, end, score_only=records.score_only(trial, number)),
        )


def expect_of(reads: CheckedReads, end: End | None) -> None:
    """What an end says of the other records of its attempt."""
    if end is not None:
        for name, digest in (("start.json", end.start), ("patch.json", end.patch)):
            reads.expect(f"{reads.campaign}/attempts/{end.trial}/{end.attempt}/{name}", digest)


def run_of(start: Start | None, end: End | None, *, score_only: bool = False) -> AttemptRun:
    """What an attempt's start and end say of who ran it."""
    return AttemptRun(
        started_at=None if start is None else to_microseconds(start.at),
        ended_at=None if end is None else to_microseconds(end.at),
        by=None if end is None else end.by,
        host=None if start is None else start.host,
        node=None if start is None else start.node,
        pod=None if start is None else start.pod,
        image=None if start is None else start.image,
        bundle_bytes=None if end is None else end.bundle_bytes,
        score_only=score_only,
    )


def to_microseconds(at: float) -> float | None:
    """Seconds, as exact as a table's time stamps are; None for what is no time after 1970 and before 10000.

    >>> to_microseconds(1790000000.1234567), to_microseconds(float("inf"))
    (1790000000.123457, None)
    """
    return round(at * 1e6) / 1e6 if 0 <= at < _LATEST else None


def _open_ends(store: Store, campaign: str, terminal: set[str]) -> Iterator[End]:
    listed = (
        (entry.key, keys.parse_attempt(campaign, entry.key)) for entry in store.list(keys.attempts(campaign))
    )
    wanted = [key for key, one in listed if one and one.name == "end.json" and one.trial not in terminal]
    for _, end in read_listed(store, wanted, End, over_s=WHILE_READING_S):
        yield end


class AttemptRecords:
    """Intent, start, patch and end of some attempts, and the intents that follow them, read together."""

    def __init__(self, store: Store, campaign: str, attempts: Sequence[tuple[str, int]]) -> None:
        self._store, self._campaign = store, campaign
        names: tuple[keys.AttemptFile, ...] = ("intent.json", "start.json", "patch.json", "end.json")
        wanted = {self._key(*attempt, name) for attempt in attempts for name in names}
        wanted |= {self._key(trial, number + 1, "intent.json") for trial, number in attempts}
        self._raw = dict(store.get_many(sorted(wanted)))

    def raw(self, trial: str, number: int, name: keys.AttemptFile) -> bytes | None:
        return self._raw.get(self._key(trial, number, name))

    def one(
        self, model: type[R], trial: str, number: int, name: keys.AttemptFile, *, listed: bool = False
    ) -> R | None:
        """`listed`: an outcome or a listing says that it is there."""
        key = self._key(trial, number, name)
        return parsed(self._store, model, key, self._raw.get(key), listed=listed)

    def patched(self, trial: str, number: int) -> bool:
        """Whether its patch was there in time: one that came after the next intent is not what that one scores."""
        following = self.one(Intent, trial, number + 1, "intent.json")
        late = following is not None and not following.score_only
        return self.raw(trial, number, "patch.json") is not None and not late

    def score_only(self, trial: str, number: int) -> bool:
        intent = self.one(Intent, trial, number, "intent.json", listed=True)
        return intent is not None and intent.score_only

    def _key(self, trial: str, number: int, name: keys.AttemptFile) -> str:
        return keys.attempt_file(self._campaign, trial, number, name)


def _records(store: Store, model: type[R], prefix: str) -> Iterator[tuple[str, R]]:
    found = [entry.key for entry in store.list(prefix) if entry.key.endswith(".json")]
    yield from read_listed(store, found, model, over_s=WHILE_READING_S)


def parsed(store: Store, model: type[R], key: str, raw: bytes | None, *, listed: bool = False) -> R | None:
    """As `parse_record`, for who only reads. None also if it cannot be read and is not what was written, which is
    named."""
    try:
        return parse_record(store, key, raw, model, listed=listed, over_s=WHILE_READING_S)
    except OperatorError:
        if isinstance(store, CheckedReads) and store.differs(key):
            return None
        raise
