"""The ledger: every step of a campaign as a conditional create in a store. Effects only; decisions are elsewhere.

Each step may be repeated after a crash at any point: what is contended has one winner, whoever comes second reads
it and obeys.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import ValidationError

from trialfleet_controller import keys
from trialfleet_controller.fault import checkpoint
from trialfleet_controller.fold import Attempt, Intend
from trialfleet_runner.campaign import Amendment, Cancel, Halt, Plan, Quarantine
from trialfleet_runner.canonical import canonical_json, sha256
from trialfleet_runner.contract import End, Grants, Intent, Loss, Outcome, Record, Start
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store

R = TypeVar("R", bound=Record)

# What may differ between two plans that measure the same: when and where they were made, how wide to run, and
# the bytes of files whose meaning (orders, conditions, limits) is compared itself.
_INCIDENTAL = {"uid", "created", "versions", "parallel", "inputs"}


@dataclass(frozen=True)
class Survey:
    """What one pass over the listings says. `open`: trials with attempts and no outcome."""

    done: frozenset[str]
    open: tuple[str, ...]


class Ledger:
    """One campaign's records. Raises `StoreError` when the store cannot answer."""

    def __init__(
        self,
        store: Store,
        campaign: str,
        *,
        clock: Callable[[], float] = time.time,
        nonce: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self.store = store
        self.campaign = campaign
        self._clock = clock
        self._nonce = nonce

    # --- the plan -----------------------------------------------------------------------------------

    def freeze(self, plan: Plan) -> tuple[Plan, bool]:
        """Write the plan; or, when the campaign exists, return its plan and False.

        Raises `OperatorError` when the name is taken by a campaign that measures something else.
        """
        if self._create("plan", keys.plan(self.campaign), plan):
            return plan, True
        stored = self.plan()
        differing = _differences(stored, plan)
        if differing:
            raise OperatorError(
                f"a different campaign of this name is in the store; they differ in: {', '.join(differing)}",
                where=f"{self.store.url}/{keys.plan(self.campaign)}",
                hint="give the campaign another name, or restore the inputs it was planned from",
            )
        return stored, False

    def plan(self) -> Plan:
        """The frozen plan. Raises `OperatorError` when there is none."""
        plan = self._read(keys.plan(self.campaign), Plan)
        if plan is None:
            raise OperatorError(
                f"no campaign {self.campaign!r}", where=self.store.url, hint="start it with `trialfleet run`"
            )
        return plan

    def exists(self) -> bool:
        return self.store.get(keys.plan(self.campaign)) is not None

    # --- reading back -------------------------------------------------------------------------------

    def survey(self) -> Survey:
        """Two listings, attempts first: a trial that somebody concludes in between is done, not open."""
        parsed = (
            keys.parse_attempt(self.campaign, entry.key) for entry in self.store.list(keys.attempts(self.campaign))
        )
        begun = list(dict.fromkeys(key.trial for key in parsed if key))
        done = frozenset(self.outcome_ids())
        return Survey(done, tuple(trial for trial in begun if trial not in done))

    def outcome_ids(self) -> Iterator[str]:
        for entry in self.store.list(keys.outcomes(self.campaign)):
            yield entry.key.rpartition("/")[2].removesuffix(".json")

    def outcomes(self, trials: list[str]) -> Iterator[Outcome]:
        for key, raw in self.store.get_many([keys.outcome(self.campaign, trial) for trial in trials]):
            if raw is not None:
                yield _parse(key, raw, Outcome)

    def outcome(self, trial: str) -> Outcome | None:
        return self._read(keys.outcome(self.campaign, trial), Outcome)

    def chain(self, trial: str) -> tuple[Attempt, ...]:
        """All attempts of a trial, in order."""
        chain: list[Attempt] = []
        while (attempt := self.attempt(trial, len(chain) + 1)) is not None:
            chain.append(attempt)
        return tuple(chain)

    def attempt(self, trial: str, n: int) -> Attempt | None:
        intent = self._read(keys.attempt_file(self.campaign, trial, n, "intent.json"), Intent)
        return None if intent is None else self.refresh(Attempt(intent))

    def refresh(self, attempt: Attempt) -> Attempt:
        """The attempt as the store has it now. Reads the end first: what it says is final."""
        trial, n = attempt.intent.trial, attempt.intent.attempt
        key = keys.attempt_file(self.campaign, trial, n, "end.json")
        raw = self.store.get(key)
        if raw is None:
            return replace(attempt, start=self._start(trial, n), patched=self.patched(trial, n))
        end = _parse(key, raw, End)
        verdict = end.scored is not None
        return replace(
            attempt,
            end=end,
            end_sha256=sha256(raw),
            patched=not verdict and self.patched(trial, n),
            quarantined=verdict and self._quarantined(trial, n),
            bundle=keys.below(trial, n, "bundle.tar.zst") if end.bundle is not None else None,
        )

    def patched(self, trial: str, n: int) -> bool:
        key = keys.attempt_file(self.campaign, trial, n, "patch.json")
        return any(entry.key == key for entry in self.store.list(key))

    def _start(self, trial: str, n: int) -> Start | None:
        return self._read(keys.attempt_file(self.campaign, trial, n, "start.json"), Start)

    def _quarantined(self, trial: str, n: int) -> bool:
        return self.store.get(keys.quarantine(self.campaign, trial, n)) is not None

    # --- one attempt --------------------------------------------------------------------------------

    def intend(self, trial: str, step: Intend, *, epoch: int) -> Attempt | None:
        """Commit the intent. None: another controller committed one; read the chain again."""
        intent = Intent(
            trial=trial,
            attempt=step.n,
            nonce=self._nonce(),
            epoch=epoch,
            at=self._clock(),
            previous_end=step.previous_end,
            score_only=step.score_from is not None,
        )
        key = keys.attempt_file(self.campaign, trial, step.n, "intent.json")
        return Attempt(intent) if self._create("intent", key, intent) else None

    def grant(self, grants: Grants) -> None:
        """Keep what the runner may do. At a relaunch those of the first launch are there and stay."""
        self._create("grants", keys.grants(self.campaign, grants.trial.id, grants.attempt), grants)

    def lose(self, intent: Intent, loss: Loss) -> None:
        """Offer the controller's loss as the attempt's end. An end that is there already stands: read it."""
        end = End(
            trial=intent.trial,
            attempt=intent.attempt,
            nonce=intent.nonce,
            at=self._clock(),
            by="controller",
            loss=loss,
        )
        self._create("end", keys.attempt_file(self.campaign, intent.trial, intent.attempt, "end.json"), end)

    def verify(self, attempt: Attempt) -> Attempt:
        """Compare a verdict's bundle with what its end says; quarantine it when they differ."""
        end = attempt.end
        if end is None or end.bundle is None or end.scored is None or attempt.quarantined:
            return attempt
        raw = self.store.get(keys.attempt_file(self.campaign, end.trial, end.attempt, "bundle.tar.zst"))
        found = None if raw is None else sha256(raw)
        if found == end.bundle:
            return attempt
        record = Quarantine(
            trial=end.trial,
            attempt=end.attempt,
            at=self._clock(),
            expected=end.bundle,
            found=found,
            reason="the bundle is missing" if found is None else "the bundle is not what its end names",
        )
        self._create("quarantine", keys.quarantine(self.campaign, end.trial, end.attempt), record)
        return replace(attempt, quarantined=True)

    def conclude(self, outcome: Outcome) -> Outcome:
        """Keep the fold; what another controller kept first stands."""
        key = keys.outcome(self.campaign, outcome.trial.id)
        if self._create("outcome", key, outcome):
            return outcome
        kept = self._read(key, Outcome)
        if kept is None:
            raise OperatorError("an outcome vanished: somebody deletes from the ledger", where=key)
        return kept

    # --- what steers a campaign ---------------------------------------------------------------------

    def amendments(self) -> tuple[Amendment, ...]:
        return self._all("amendments", Amendment)

    def amend(self, *, reps: int | None, after_look: bool, lifts: tuple[int, ...]) -> Amendment:
        def record(number: int) -> Amendment:
            return Amendment(number=number, at=self._clock(), reps=reps, after_look=after_look, lifts=lifts)

        return self._append("amendments", "amendment", record)

    def looks(self) -> int:
        return len(self._numbers("looks"))

    def halts(self) -> tuple[Halt, ...]:
        """Those in force: a lifted one is history."""
        lifted = {number for amendment in self.amendments() for number in amendment.lifts}
        return tuple(halt for halt in self._all("halts", Halt) if halt.number not in lifted)

    def halt_known(self, task: str | None, *, since: float) -> bool:
        """Whether a halt of this scope is in force, or one was lifted after `since`."""
        lifted = {number: amendment.at for amendment in self.amendments() for number in amendment.lifts}
        return any(
            halt.number not in lifted or lifted[halt.number] >= since
            for halt in self._all("halts", Halt)
            if halt.task == task
        )

    def halt(self, task: str | None, reason: str) -> Halt:
        def record(number: int) -> Halt:
            return Halt(number=number, at=self._clock(), task=task, reason=reason)

        return self._append("halts", "halt", record)

    def cancelled(self) -> Cancel | None:
        now = self._read(keys.cancel(self.campaign, now=True), Cancel)
        return now or self._read(keys.cancel(self.campaign), Cancel)

    def cancel(self, *, now: bool, by: str) -> Cancel:
        wanted = Cancel(at=self._clock(), now=now, by=by)
        if not self._create("cancel", keys.cancel(self.campaign), wanted) and now:
            there = self._read(keys.cancel(self.campaign), Cancel)
            if there is not None and not there.now:
                self._create("cancel", keys.cancel(self.campaign, now=True), wanted)
        return self.cancelled() or wanted

    # --- primitives ---------------------------------------------------------------------------------

    def _create(self, step: str, key: str, record: Record) -> bool:
        checkpoint(f"{step}.before")
        created = self.store.create(key, canonical_json(record))
        checkpoint(f"{step}.after")
        return created

    def _read(self, key: str, model: type[R]) -> R | None:
        raw = self.store.get(key)
        return None if raw is None else _parse(key, raw, model)

    def _all(self, kind: keys.Kind, model: type[R]) -> tuple[R, ...]:
        found = self._numbers(kind)
        values = dict(self.store.get_many(found))
        return tuple(_parse(key, raw, model) for key in found if (raw := values.get(key)) is not None)

    def _numbers(self, kind: keys.Kind) -> list[str]:
        """Keys of the numbered records, in the order of their numbers."""
        found = (entry.key for entry in self.store.list(keys.folder(self.campaign, kind)))
        return sorted((key for key in found if keys.number_of(key)), key=keys.number_of)

    def _append(self, kind: keys.Kind, step: str, record: Callable[[int], R]) -> R:
        number = max((keys.number_of(key) for key in self._numbers(kind)), default=0) + 1
        while not self._create(step, keys.numbered(self.campaign, kind, number), made := record(number)):
            number += 1
        return made


def _differences(stored: Plan, wanted: Plan) -> list[str]:
    return [
        name
        for name in Plan.model_fields
        if name not in _INCIDENTAL and getattr(stored, name) != getattr(wanted, name)
    ]


def _parse(key: str, raw: bytes, model: type[R]) -> R:
    """Raises `OperatorError`: a record that cannot be read was not written by this program's version."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise OperatorError(
            f"is not a {model.__name__} record: {first['msg']} at {'.'.join(map(str, first['loc']))}",
            where=key,
            hint="the ledger was edited, or another version of trialfleet wrote it",
        ) from None
