"""The core that drives one campaign: launches in plan order, settles what ended, obeys the ledger.

One thread, no Ray, no cluster: a `Backend` runs the attempts. Every step may be cut by `kill -9`; a new dispatcher
rebuilds its state from the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from trialfleet_controller import keys
from trialfleet_controller.backend import AttemptId, Backend, Finished, Order
from trialfleet_controller.breaker import Breaker, Health, Outage
from trialfleet_controller.classify import Departure, classify
from trialfleet_controller.epochs import Driver
from trialfleet_controller.fault import checkpoint
from trialfleet_controller.fold import Attempt, BrokenChain, Conclude, Intend, Place, Watch, next_step, score_from
from trialfleet_controller.ledger import Ledger, Survey
from trialfleet_controller.lifecycle import Budgets
from trialfleet_controller.machine import Liveness
from trialfleet_controller.money import Purse
from trialfleet_controller.orders import Granter, attempt_deadline_s
from trialfleet_controller.plan import Planned
from trialfleet_controller.queue import Queue
from trialfleet_controller.tally import Tally
from trialfleet_runner.campaign import Plan
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.contract import End, HaltScope, Loss, LossClass, Outcome, Trial
from trialfleet_runner.errors import OperatorError

COMMIT_S = 5.0  # a runner told to stop gives its agent the whole grace; then it must still commit what was lost


class Ending(StrEnum):
    """Why a dispatcher stopped."""

    COMPLETE = "complete"
    CANCELLED = "cancelled"
    HALTED = "halted"  # by a campaign-wide halt, or because what is open belongs to halted tasks
    OUT_OF_MONEY = "out of money"
    OUTAGE = "outage"  # attempts were lost in a row to the machine or the store: what is open waits for a resume
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Rhythm:
    """Seconds between looks at what others may have changed."""

    poll_s: float = 0.5
    steer_s: float = 2.0  # cancel.json and halts
    watch_s: float = 2.0  # attempts that another controller launched
    wind_down_s: float = 15.0  # beyond the runners' grace, at an interruption
    back_off_s: float = 1.0  # the first pause when attempts end before their agents begin; then doubled


@dataclass
class Interrupt:
    """Set by signal handlers. `now`: asked twice."""

    asked: bool = False
    now: bool = False

    def ask(self) -> None:
        self.now = self.asked
        self.asked = True


@dataclass
class _Open:
    """A trial with attempts and no outcome."""

    trial: Planned
    record: Trial
    chain: tuple[Attempt, ...] = ()
    charged: float = 0.0  # US dollars of `chain` that are in the purse
    watched_since: float = field(default_factory=time.monotonic)

    @property
    def attempt(self) -> AttemptId:
        return AttemptId(self.trial.id, len(self.chain))

    @property
    def scores_only(self) -> bool:
        """Its agent has run: the attempt that runs, or comes next, buys nothing."""
        return score_from(self.chain) is not None


class Dispatcher:
    """Drives `trials` to their outcomes. `on_change` is called with the tally whenever it may have changed."""

    def __init__(
        self,
        plan: Plan,
        trials: Sequence[Planned],
        ledger: Ledger,
        backend: Backend,
        driver: Driver,
        *,
        interrupt: Interrupt | None = None,
        on_change: Callable[[Tally], None] = lambda _: None,
        tell: Callable[[str], None] = lambda _: None,
        rhythm: Rhythm | None = None,
    ) -> None:
        self._plan, self._ledger, self._backend, self._driver = plan, ledger, backend, driver
        self._interrupt = interrupt or Interrupt()
        self._on_change, self._tell = on_change, tell
        self._rhythm = rhythm or Rhythm()
        self._trials = {trial.id: trial for trial in trials}
        self._budgets = Budgets.of(plan.retries)
        self._granter = Granter(plan, ledger.store)
        self._deadline_s = attempt_deadline_s(plan)
        self._patience_s = plan.limits.stop_grace_s + COMMIT_S
        self._metered = plan.agent.model is not None
        self._purse = Purse.of(plan)
        self._breaker = Breaker.closed(min(plan.parallel, backend.slots))
        self._health = Health()
        self._outage = Outage()
        self._queue = Queue(trials, (), plan.blocks_ahead)
        self._open: dict[str, _Open] = {}
        self._running: dict[AttemptId, _Open] = {}
        self._watched: dict[str, _Open] = {}
        self._halts: dict[str | None, str] = {}
        self._ending: Ending | None = None  # set: nothing more starts
        self._cancelled_now = False
        self._no_start_before = 0.0
        self._next_steer = 0.0
        self._next_watch = 0.0
        self.tally = Tally.of(trials)

    def run(self) -> Ending:
        """To the end. Raises `OperatorError` (superseded, store refuses), `StoreError` (store does not answer);
        then and always, no attempt launched here is left running."""
        try:
            self._recover(self._ledger.survey())
            while not self._over():
                self._turn()
            return self._ending or self._natural_end()
        finally:
            self._backend.close()

    def _turn(self) -> None:
        self._driver.beat()
        if self._interrupt.asked and self._ending is not Ending.INTERRUPTED:
            return self._wind_down()
        self._steer()
        self._launch_what_may()
        for finished in self._backend.poll(self._rhythm.poll_s):
            self._finished(finished)
        self._look_at_watched()
        self._on_change(self.tally)
        return None

    def _over(self) -> bool:
        if self._running or self._watched:
            return False
        return self._ending is not None or self._queue.open == 0

    def _natural_end(self) -> Ending:
        total = self.tally.total()
        return Ending.COMPLETE if total.terminal >= total.planned else Ending.HALTED

    # --- rebuilding ---------------------------------------------------------------------------------

    def _recover(self, survey: Survey) -> None:
        done = survey.done & self._trials.keys()
        self._queue = Queue(list(self._trials.values()), done, self._plan.blocks_ahead)
        outcomes = list(self._ledger.outcomes(sorted(done)))
        for outcome in outcomes:
            self.tally.earlier(outcome)
        self._settle_purse(outcomes)
        self._steer()
        for trial_id in survey.open:
            if (trial := self._trials.get(trial_id)) is not None:
                self._reopen(trial)

    def _settle_purse(self, outcomes: Sequence[Outcome]) -> None:
        """What earlier controllers spent on finished trials. Only a cap makes it worth the reading."""
        if self._purse.cap is None or not self._metered:
            return
        for outcome in outcomes:
            alone = outcome.attempts == 1 and outcome.scored is not None
            chain = () if alone else self._ledger.chain(outcome.trial.id)
            cost = self._purse.price(1, outcome.scored) if alone else self._purse.cost(chain)
            self._purse = self._purse.charged(cost)

    def _reopen(self, trial: Planned) -> None:
        opened = _Open(trial, trial.record(), self._ledger.chain(trial.id))
        self._queue.hold(trial)
        self._open[trial.id] = opened
        for attempt in opened.chain:
            if attempt.end is not None and attempt.end.loss is not None:
                self.tally.lost(trial.condition, attempt.end.loss.loss)
        self._charge(opened)
        if opened.chain and (end := opened.chain[-1].end) is not None:
            opened.chain = (*opened.chain[:-1], self._ledger.verify(opened.chain[-1]))
            self._halt_again(trial, end)
        self._drive(opened)

    def _halt_again(self, trial: Planned, end: End) -> None:
        """A kill may have come between a loss that halts and its halt; a halt that was lifted stays lifted."""
        if end.loss is None or end.loss.halt is HaltScope.NONE:
            return
        task = trial.task if end.loss.halt is HaltScope.TASK else None
        if not self._ledger.halt_known(task, since=end.at):
            self._halt_if(trial, end.loss)

    # --- starting -----------------------------------------------------------------------------------

    def _launch_what_may(self) -> None:
        while self._may_start() and (trial := self._take()) is not None:
            self._launch(trial)

    def _may_start(self) -> bool:
        busy = len(self._running) + len(self._watched)
        return self._ending is None and busy < self._breaker.width and time.monotonic() >= self._no_start_before

    def _take(self) -> Planned | None:
        """The next trial that can be paid: scoring alone costs nothing, and reserves nothing."""
        busy = (*self._running.values(), *self._watched.values())
        if self._purse.allows(sum(not opened.scores_only for opened in busy)):
            return self._queue.take()
        trial = self._queue.take_again(lambda trial: self._open[trial.id].scores_only)
        if trial is None and not busy and self._queue.open:
            self._stop(Ending.OUT_OF_MONEY, "the campaign's cost cap is reached")
        return trial

    def _launch(self, trial: Planned) -> None:
        opened = self._open.setdefault(trial.id, _Open(trial, trial.record()))
        while True:
            match self._next(opened):
                case Intend() as step:
                    attempt = self._ledger.intend(trial.id, step, epoch=self._driver.number)
                    opened.chain = self._ledger.chain(trial.id) if attempt is None else (*opened.chain, attempt)
                case Place(_, score_from):
                    return self._place(opened, score_from)
                case Watch():
                    return self._watch(opened)
                case Conclude() as step:
                    return self._conclude(opened, step)

    def _place(self, opened: _Open, score_from: int | None) -> None:
        grants = self._granter.grants(opened.trial, opened.chain[-1].intent, score_from)
        self._ledger.grant(grants)
        checkpoint("launch.before")
        self._backend.launch(Order(opened.attempt, canonical_json(grants)))
        checkpoint("launch.after")
        self._running[opened.attempt] = opened
        self.tally.running(opened.trial.condition, +1)

    def _watch(self, opened: _Open) -> None:
        opened.watched_since = time.monotonic()
        self._watched[opened.trial.id] = opened
        self.tally.running(opened.trial.condition, +1)

    # --- settling -----------------------------------------------------------------------------------

    def _finished(self, finished: Finished) -> None:
        opened = self._running.pop(finished.id, None)
        if opened is None:
            return None
        self.tally.running(opened.trial.condition, -1)
        checkpoint("finish.before")
        attempt = self._ledger.refresh(opened.chain[-1])
        if attempt.end is None and self._may_live(attempt):
            opened.chain = (*opened.chain[:-1], attempt)
            return self._watch(opened)  # ours left because another's start was there
        return self._settle(opened, attempt, finished.departure)

    def _may_live(self, attempt: Attempt) -> bool:
        start = attempt.start
        return start is not None and self._backend.alive(start) in (Liveness.ALIVE, Liveness.UNKNOWN)

    def _settle(self, opened: _Open, attempt: Attempt, departure: Departure) -> None:
        """An attempt that nobody runs any more gets its end, and the trial its next step."""
        if attempt.end is None:
            loss = classify(departure, started=attempt.start is not None, patched=attempt.patched)
            self._ledger.lose(attempt.intent, loss)
            attempt = self._ledger.refresh(attempt)
        attempt = self._ledger.verify(attempt)
        opened.chain = (*opened.chain[:-1], attempt)
        self._charge(opened)
        self._learn(opened.trial, attempt)
        self._drive(opened)

    def _drive(self, opened: _Open) -> None:
        """The step after an end: keep the outcome, try again, or watch who runs it."""
        match self._next(opened):
            case Conclude() as step:
                self._conclude(opened, step)
            case Watch():
                self._watch(opened)
            case Intend() | Place():
                self._queue.again(opened.trial)

    def _next(self, opened: _Open) -> Intend | Place | Watch | Conclude:
        try:
            return next_step(opened.record, opened.chain, self._budgets)
        except BrokenChain as error:
            raise OperatorError(
                f"the records contradict each other: {error}",
                where=f"{self._ledger.store.url}/{keys.attempts(self._plan.campaign, opened.trial.id)}",
                hint="somebody changed the ledger: put its file back as it was, from a copy that was pulled",
            ) from error

    def _conclude(self, opened: _Open, step: Conclude) -> None:
        outcome = self._ledger.conclude(step.outcome)
        self.tally.concluded(outcome)
        self._queue.finish(opened.trial)
        self._open.pop(opened.trial.id, None)

    def _charge(self, opened: _Open) -> None:
        """The whole chain's cost at once, as a resume will see it: a verdict tells what a lost run had cost."""
        cost = self._purse.cost(opened.chain) if self._metered else 0.0
        self._purse = self._purse.charged(cost - opened.charged)
        opened.charged = cost

    def _learn(self, trial: Planned, attempt: Attempt) -> None:
        """What an end says about the provider, the task and the harness."""
        end = attempt.end
        loss = end.loss if end is not None else None
        if loss is None:
            self._breaker = self._breaker.answered()
            self._health = self._health.measured(trial.task)
            self._outage = self._outage.measured(trial.task)
            return
        self.tally.lost(trial.condition, loss.loss)
        if loss.loss is LossClass.PROVIDER:
            self._breaker = self._breaker.lost()
        self._health = self._health.lost(trial.task, loss.loss)
        self._outage = self._outage.lost(trial.task, loss)
        pause_s = max(self._breaker.pause_s, self._outage.pause_s(self._rhythm.back_off_s))
        self._no_start_before = max(self._no_start_before, time.monotonic() + pause_s)
        self._halt_if(trial, loss)
        if self._outage.over(trial.task):
            self._stop(Ending.OUTAGE, f"stopped, attempts are lost in a row: {loss.loss}: {loss.message}")

    def _halt_if(self, trial: Planned, loss: Loss) -> None:
        scope = loss.halt if loss.halt is not HaltScope.NONE else self._health.verdict(trial.task)
        task = trial.task if scope is HaltScope.TASK else None
        if scope is HaltScope.NONE or task in self._halts:
            return
        self._ledger.halt(task, f"{loss.loss}: {loss.message}")
        self._read_halts()

    # --- what others say ----------------------------------------------------------------------------

    def _steer(self) -> None:
        if time.monotonic() < self._next_steer:
            return
        self._next_steer = time.monotonic() + self._rhythm.steer_s
        self._read_halts()
        cancel = self._ledger.cancelled()
        if cancel is None:
            return
        self._stop(Ending.CANCELLED, f"cancelled by {cancel.by}")
        if cancel.now and not self._cancelled_now:
            self._cancelled_now = True
            self._lose_all("the campaign was cancelled")

    def _read_halts(self) -> None:
        for halt in self._ledger.halts():
            if halt.task in self._halts:
                continue
            self._halts[halt.task] = halt.reason
            if halt.task is None:
                self._stop(Ending.HALTED, f"halted: {halt.reason}")
            else:
                self._queue.halt(halt.task)
                self._tell(f"task {halt.task} is halted in all conditions: {halt.reason}")

    def _stop(self, ending: Ending, why: str) -> None:
        if self._ending is None:
            self._ending = ending
            self._tell(why)

    def _lose_all(self, message: str) -> None:
        """Mark what runs as lost, then stop it: a verdict that is there already stands."""
        for opened in (*self._running.values(), *self._watched.values()):
            attempt = self._ledger.refresh(opened.chain[-1])
            if attempt.end is None:
                loss = Loss(
                    loss=LossClass.CANCELLED,
                    message=message,
                    agent_started=attempt.start is not None,
                    patched=attempt.patched,
                )
                self._ledger.lose(attempt.intent, loss)
        self._backend.stop(list(self._running), grace_s=self._patience_s)

    def _look_at_watched(self) -> None:
        if not self._watched or time.monotonic() < self._next_watch:
            return
        self._next_watch = time.monotonic() + self._rhythm.watch_s
        for opened in list(self._watched.values()):
            attempt = self._ledger.refresh(opened.chain[-1])
            gone = self._departure(opened, attempt)
            if gone is not None:
                del self._watched[opened.trial.id]
                self.tally.running(opened.trial.condition, -1)
                # It may have committed its end between our look and its going.
                self._settle(opened, self._ledger.refresh(attempt), gone)

    def _departure(self, opened: _Open, attempt: Attempt) -> Departure | None:
        """How a watched attempt ended; None while it may still run."""
        if attempt.end is not None or attempt.start is None:
            return Departure()
        match self._backend.alive(attempt.start):
            case Liveness.ALIVE:
                return None
            case Liveness.GONE:
                return Departure()
            case Liveness.REBOOTED:
                return Departure(rebooted=True)
            case Liveness.UNKNOWN:
                late = time.monotonic() - opened.watched_since > self._deadline_s
                return Departure(unreachable=True) if late else None

    def _wind_down(self) -> None:
        """Ctrl-C: stop the children, settle what they say; everything else waits for a resume."""
        self._ending = Ending.INTERRUPTED
        self._tell("stopping; once more to stop at once")
        self._backend.stop(list(self._running), grace_s=self._patience_s)
        until = time.monotonic() + self._patience_s + self._rhythm.wind_down_s
        hurried = False
        while self._running and time.monotonic() < until:
            if self._interrupt.now and not hurried:
                hurried = True
                self._backend.stop(list(self._running), grace_s=0)
            for finished in self._backend.poll(self._rhythm.poll_s):
                self._finished(finished)
        self._running.clear()
        self._watched.clear()
