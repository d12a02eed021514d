"""A campaign's records, read from its store: the one place where analysis reads the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from pydantic import ValidationError

from trialfleet_runner.campaign import Amendment, Cancel, Halt, Look, Plan, Quarantine
from trialfleet_runner.canonical import canonical_json, sha256
from trialfleet_runner.contract import End, Intent, LossClass, Outcome, Record, Start
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.stages import Stage, stage
from trialfleet_runner.store.protocol import Store

R = TypeVar("R", bound=Record)
_LATEST = 253_402_300_799  # the last second of 9999, where calendars of several readers end


@dataclass(frozen=True)
class Run:
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


NOBODY = Run()


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
    run: Run = NOBODY


@dataclass(frozen=True)
class Frame:
    """What a campaign's few records say: the plan, and what was decided about it since."""

    plan: Plan
    plan_sha256: str
    reps: int  # planned per cell, amendments included
    amendments: tuple[Amendment, ...]
    halts: tuple[Halt, ...]  # those that no amendment lifted
    cancel: Cancel | None
    looks: tuple[Look, ...]
    quarantine: tuple[Quarantine, ...]

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names in the campaign file's order, which only the cells keep (stored mappings are sorted)."""
        return tuple(dict.fromkeys(cell.condition.name for cell in self.plan.cells))

    @property
    def planned(self) -> int:
        """Trials: cells × reps."""
        return len(self.plan.cells) * self.reps


@dataclass(frozen=True)
class Ledger(Frame):
    """All that a report needs of a campaign but the bundles. Outcomes in launch order (block, position)."""

    outcomes: tuple[Outcome, ...]
    lost: tuple[LostAttempt, ...]

    @property
    def interim(self) -> bool:
        """Whether a planned trial has no outcome yet."""
        return len(self.outcomes) < self.planned


def read_frame(store: Store, campaign: str) -> Frame:
    """Raises `OperatorError` when there is no such campaign or a record is not of this version."""
    key = f"{campaign}/campaign.json"
    raw = store.get(key)
    if raw is None:
        raise OperatorError(
            f"no campaign {campaign!r} in {store.url}",
            where=f"{store.url}/{key}",
            hint="name the campaign file, or the campaign's folder in its store; `trialfleet run` makes one",
        )
    plan = parsed(store, Plan, key, raw)
    amendments = _numbered(store, Amendment, f"{campaign}/amendments/", lambda a: a.number)
    lifted = {number for amendment in amendments for number in amendment.lifts}
    halts = _numbered(store, Halt, f"{campaign}/halts/", lambda h: h.number)
    return Frame(
        plan=plan,
        plan_sha256=sha256(raw),
        reps=max([plan.reps, *(a.reps for a in amendments if a.reps is not None)]),
        amendments=amendments,
        halts=tuple(halt for halt in halts if halt.number not in lifted),
        cancel=_cancel(store, campaign),
        looks=_numbered(store, Look, f"{campaign}/looks/", lambda look: look.number),
        quarantine=tuple(record for _, record in _records(store, Quarantine, f"{campaign}/quarantine/")),
    )


def read_ledger(store: Store, campaign: str, *, frame: Frame | None = None) -> Ledger:
    """All records of a campaign; `frame`: the few, where they were read already. Raises as `read_frame`."""
    frame = frame or read_frame(store, campaign)
    outcomes = _outcomes(store, campaign)
    finished = len(outcomes) >= frame.planned
    lost = tuple(_lost(store, campaign, outcomes, unfinished=not finished))
    return Ledger(**few_of(frame), outcomes=outcomes, lost=lost)


def few_of(frame: Frame) -> dict[str, Any]:
    """A frame's fields, to make a `Ledger` of."""
    return {field.name: getattr(frame, field.name) for field in fields(Frame)}


def record_look(store: Store, ledger: Ledger, *, complete_blocks: int, at: float, by: str) -> Look:
    """Write that results were seen before the campaign's end, under the first free number. Seeing the same
    results again is no new look."""
    newest = ledger.looks[-1] if ledger.looks else None
    if newest and (newest.terminal, newest.complete_blocks) == (len(ledger.outcomes), complete_blocks):
        return newest
    number = newest.number + 1 if newest else 1
    while True:
        look = Look(
            number=number,
            at=at,
            planned=ledger.planned,
            terminal=len(ledger.outcomes),
            complete_blocks=complete_blocks,
            by=by,
        )
        if store.create(f"{ledger.plan.campaign}/looks/{number}.json", canonical_json(look)):
            return look
        number += 1


def _cancel(store: Store, campaign: str) -> Cancel | None:
    for key in (f"{campaign}/cancel-now.json", f"{campaign}/cancel.json"):
        raw = store.get(key)
        if raw is not None:
            return parsed(store, Cancel, key, raw)
    return None


def _outcomes(store: Store, campaign: str) -> tuple[Outcome, ...]:
    prefix = f"{campaign}/outcomes/"
    found: dict[tuple[str, str, int], Outcome] = {}
    for key, outcome in _records(store, Outcome, prefix):
        trial = outcome.trial
        twin = found.setdefault((trial.task, trial.condition, trial.rep), outcome)
        if key != f"{prefix}{trial.id}.json" or twin is not outcome:
            raise OperatorError(
                f"a second outcome, or one under another name: {trial.task} × {trial.condition}, rep {trial.rep}",
                where=f"{store.url}/{key}",
                hint="a copied or renamed record would be counted twice: remove it",
            )
    return tuple(sorted(found.values(), key=lambda outcome: (outcome.trial.block, outcome.trial.position)))


def _lost(store: Store, campaign: str, outcomes: Iterable[Outcome], *, unfinished: bool) -> Iterator[LostAttempt]:
    """Every lost attempt: of terminal trials as their outcome folds them, of the others as their ends say."""
    outcomes = tuple(outcomes)
    folded = [
        (outcome.trial.id, number, loss)
        for outcome in outcomes
        for number, loss in enumerate(outcome.losses, start=1)
    ]
    open_ends = list(_open_ends(store, campaign, {o.trial.id for o in outcomes})) if unfinished else []
    folded += [(end.trial, end.attempt, end.loss.loss) for end in open_ends if end.loss is not None]
    records = AttemptRecords(store, campaign, [(trial, number) for trial, number, _ in folded])
    for trial, number, loss in folded:
        end, start = records.one(End, trial, number, "end"), records.one(Start, trial, number, "start")
        yield LostAttempt(
            trial,
            number,
            loss,
            stage(end, score_only=records.score_only(trial, number), patched=records.patched(trial, number)),
            end.loss.message if end and end.loss else "",
            end.at - start.at if end and start else None,
            run_of(start, end, score_only=records.score_only(trial, number)),
        )


def run_of(start: Start | None, end: End | None, *, score_only: bool = False) -> Run:
    """What an attempt's start and end say of who ran it."""
    return Run(
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
    prefix = f"{campaign}/attempts/"
    keys = [entry.key for entry in store.list(prefix) if entry.key.endswith("/end.json")]
    wanted = [key for key in keys if key[len(prefix) :].split("/", 1)[0] not in terminal]
    for key, raw in store.get_many(wanted):
        if raw is not None:
            yield parsed(store, End, key, raw)


class AttemptRecords:
    """Intent, start, patch and end of some attempts, and the intents that follow them, read together."""

    def __init__(self, store: Store, campaign: str, attempts: Sequence[tuple[str, int]]) -> None:
        self._store, self._campaign = store, campaign
        names = ("intent", "start", "patch", "end")
        wanted = {self._key(*attempt, name) for attempt in attempts for name in names}
        wanted |= {self._key(trial, number + 1, "intent") for trial, number in attempts}
        self._raw = dict(store.get_many(sorted(wanted)))

    def raw(self, trial: str, number: int, name: str) -> bytes | None:
        return self._raw.get(self._key(trial, number, name))

    def one(self, model: type[R], trial: str, number: int, name: str) -> R | None:
        raw = self.raw(trial, number, name)
        return None if raw is None else parsed(self._store, model, self._key(trial, number, name), raw)

    def patched(self, trial: str, number: int) -> bool:
        """Whether its patch was there in time: one that came after the next intent is not what that one scores."""
        following = self.one(Intent, trial, number + 1, "intent")
        late = following is not None and not following.score_only
        return self.raw(trial, number, "patch") is not None and not late

    def score_only(self, trial: str, number: int) -> bool:
        intent = self.one(Intent, trial, number, "intent")
        return intent is not None and intent.score_only

    def _key(self, trial: str, number: int, name: str) -> str:
        return f"{self._campaign}/attempts/{trial}/{number}/{name}.json"


def _numbered(store: Store, model: type[R], prefix: str, number: Callable[[R], int]) -> tuple[R, ...]:
    return tuple(sorted((record for _, record in _records(store, model, prefix)), key=number))


def _records(store: Store, model: type[R], prefix: str) -> Iterator[tuple[str, R]]:
    keys = [entry.key for entry in store.list(prefix) if entry.key.endswith(".json")]
    for key, raw in store.get_many(keys):
        if raw is not None:
            yield key, parsed(store, model, key, raw)


def parsed(store: Store, model: type[R], key: str, raw: bytes) -> R:
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "file"
        raise OperatorError(
            f"not a record of this version: {place}: {first['msg']}",
            where=f"{store.url}/{key}",
            hint="read it with the version of trialfleet that wrote it; a record that was edited is lost",
        ) from None
