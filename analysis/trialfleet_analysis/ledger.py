"""A campaign's records, read from its store: the one place where analysis reads the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pydantic import ValidationError

from trialfleet_runner.campaign import Amendment, Cancel, Halt, Look, Plan, Quarantine
from trialfleet_runner.canonical import canonical_json, sha256
from trialfleet_runner.contract import End, Intent, LossClass, Outcome, Record, Start
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store

R = TypeVar("R", bound=Record)


class Stage(StrEnum):
    """How far a lost attempt had come: which decides whether its loss can depend on the outcome."""

    BEFORE_AGENT = "before_agent"  # ignorable: nothing of the outcome had begun
    MID_RUN = "mid_run"  # informative: long runs are lost more often, and failures run longer
    AFTER_PATCH = "after_patch"  # the agent's work is kept; only scoring is repeated
    UNKNOWN = "unknown"  # its end cannot be read


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


@dataclass(frozen=True)
class Ledger:
    """All that a report needs of a campaign but the bundles. Outcomes in launch order (block, position)."""

    plan: Plan
    plan_sha256: str
    reps: int  # planned per cell, amendments included
    outcomes: tuple[Outcome, ...]
    lost: tuple[LostAttempt, ...]
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

    @property
    def interim(self) -> bool:
        """Whether a planned trial has no outcome yet."""
        return len(self.outcomes) < self.planned


def read_ledger(store: Store, campaign: str) -> Ledger:
    """Raises `OperatorError` when there is no such campaign or a record is not of this version."""
    key = f"{campaign}/campaign.json"
    raw = store.get(key)
    if raw is None:
        raise OperatorError(
            f"no campaign {campaign!r} in {store.url}",
            where=f"{store.url}/{key}",
            hint="name the campaign file, or the campaign's folder in its store; `trialfleet run` makes one",
        )
    plan = _parsed(store, Plan, key, raw)
    amendments = _numbered(store, Amendment, f"{campaign}/amendments/", lambda a: a.number)
    lifted = {number for amendment in amendments for number in amendment.lifts}
    halts = _numbered(store, Halt, f"{campaign}/halts/", lambda h: h.number)
    reps = max([plan.reps, *(a.reps for a in amendments if a.reps is not None)])
    outcomes = _outcomes(store, campaign)
    finished = len(outcomes) >= len(plan.cells) * reps
    return Ledger(
        plan=plan,
        plan_sha256=sha256(raw),
        reps=reps,
        outcomes=outcomes,
        lost=tuple(_lost(store, campaign, outcomes, unfinished=not finished)),
        amendments=amendments,
        halts=tuple(halt for halt in halts if halt.number not in lifted),
        cancel=_cancel(store, campaign),
        looks=_numbered(store, Look, f"{campaign}/looks/", lambda look: look.number),
        quarantine=tuple(record for _, record in _records(store, Quarantine, f"{campaign}/quarantine/")),
    )


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
            return _parsed(store, Cancel, key, raw)
    return None


def _outcomes(store: Store, campaign: str) -> tuple[Outcome, ...]:
    found = [outcome for _, outcome in _records(store, Outcome, f"{campaign}/outcomes/")]
    return tuple(sorted(found, key=lambda outcome: (outcome.trial.block, outcome.trial.position)))


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
    records = _Attempts(store, campaign, [(trial, number) for trial, number, _ in folded])
    for trial, number, loss in folded:
        end, start = records.one(End, trial, number, "end"), records.one(Start, trial, number, "start")
        intent = records.one(Intent, trial, number, "intent")
        yield LostAttempt(
            trial,
            number,
            loss,
            stage(end, score_only=bool(intent and intent.score_only), patched=records.patched(trial, number)),
            end.loss.message if end and end.loss else "",
            end.at - start.at if end and start else None,
        )


def stage(end: End | None, *, score_only: bool, patched: bool) -> Stage:
    """How far a lost attempt had come: the rule by which the controller's fold spends its budgets, on the same
    records. `score_only`: as its intent says; `patched`: its patch is in the store."""
    if end is None:
        return Stage.UNKNOWN
    if end.loss is None:
        return Stage.AFTER_PATCH  # a verdict whose bundle was quarantined
    by_runner = end.by == "runner"
    if score_only:
        return Stage.AFTER_PATCH if by_runner or end.loss.agent_started else Stage.BEFORE_AGENT
    if end.loss.patched or (by_runner and patched):
        return Stage.AFTER_PATCH
    return Stage.MID_RUN if end.loss.agent_started else Stage.BEFORE_AGENT


def _open_ends(store: Store, campaign: str, terminal: set[str]) -> Iterator[End]:
    prefix = f"{campaign}/attempts/"
    keys = [entry.key for entry in store.list(prefix) if entry.key.endswith("/end.json")]
    wanted = [key for key in keys if key[len(prefix) :].split("/", 1)[0] not in terminal]
    for key, raw in store.get_many(wanted):
        if raw is not None:
            yield _parsed(store, End, key, raw)


class _Attempts:
    """Records of some attempts, read together."""

    def __init__(self, store: Store, campaign: str, attempts: Sequence[tuple[str, int]]) -> None:
        self._store, self._campaign = store, campaign
        names = ("intent", "start", "patch", "end")
        self._raw = dict(store.get_many([self._key(*attempt, name) for attempt in attempts for name in names]))

    def one(self, model: type[R], trial: str, number: int, name: str) -> R | None:
        key = self._key(trial, number, name)
        raw = self._raw.get(key)
        return None if raw is None else _parsed(self._store, model, key, raw)

    def patched(self, trial: str, number: int) -> bool:
        return self._raw.get(self._key(trial, number, "patch")) is not None

    def _key(self, trial: str, number: int, name: str) -> str:
        return f"{self._campaign}/attempts/{trial}/{number}/{name}.json"


def _numbered(store: Store, model: type[R], prefix: str, number: Callable[[R], int]) -> tuple[R, ...]:
    return tuple(sorted((record for _, record in _records(store, model, prefix)), key=number))


def _records(store: Store, model: type[R], prefix: str) -> Iterator[tuple[str, R]]:
    keys = [entry.key for entry in store.list(prefix) if entry.key.endswith(".json")]
    for key, raw in store.get_many(keys):
        if raw is not None:
            yield key, _parsed(store, model, key, raw)


def _parsed(store: Store, model: type[R], key: str, raw: bytes) -> R:
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
