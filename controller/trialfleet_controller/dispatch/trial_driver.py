"""The life of a trial, from its launch to its outcome.

Each trial is a generator. It yields an I/O call, and continues with the result; or it yields `Parked`, and
continues when the backend or the ledger says something new about its runner. So a trial reads from top to bottom,
while one thread drives thousands of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from trialfleet_controller.backends.protocol import AttemptId, Backend, Finished, Liveness
from trialfleet_controller.backends.runner_termination import RunnerTermination, stopped_by_operator
from trialfleet_controller.dispatch.breaker import ProviderHealth
from trialfleet_controller.dispatch.events import CampaignEvent, Detail, EventKind, Note
from trialfleet_controller.dispatch.io_pool import IoPool
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_controller.dispatch.stop_conditions import PollIntervals, StopConditions
from trialfleet_controller.dispatch.trial_steps import UNKNOWN, Seen, TrialSteps, belongs
from trialfleet_controller.dispatch.trial_table import SHOWN, OpenTrial, TrialState, TrialTable
from trialfleet_ledger.fold import Conclude, Intend, LaunchAttempt, Step, WatchAttempt
from trialfleet_ledger.kill_points import checkpoint
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.records.verdicts import HaltScope, Loss, LossClass
from trialfleet_ledger.trial_order import Planned

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parked:
    """The trial continues when its runner has gone (it is then sent a `RunnerTermination`) or, while it is
    watched, when it is time to look at it."""

    trial: str


Request = Callable[[], object] | Parked
Life = Generator[Request, Any, T]


def _io(call: Callable[[], T]) -> Life[T]:
    """Run `call` in the pool and return its result."""
    result: T = yield call
    return result


class TrialDriver:
    """Every method must be called by the thread that owns the table. `deadline_s`: no attempt takes longer;
    `patience_s`: how long a runner may take to stop."""

    def __init__(
        self,
        table: TrialTable,
        steps: TrialSteps,
        io_pool: IoPool,
        stop_conditions: StopConditions,
        backend: Backend,
        provider_health: ProviderHealth,
        *,
        deadline_s: float,
        patience_s: float,
        intervals: PollIntervals,
        tell: Callable[[str], None],
        note: Note,
    ) -> None:
        self.provider_health = provider_health
        self._table, self._steps, self._io_pool = table, steps, io_pool
        self._stop_conditions, self._backend, self._tell = stop_conditions, backend, tell
        self._deadline_s, self._patience_s, self._intervals, self._note = deadline_s, patience_s, intervals, note
        self.launched_at: dict[str, float] = {}  # by trial, of its last launch here, by time.monotonic
        self._parked: dict[str, Life[None]] = {}
        self._early: dict[AttemptId, RunnerTermination] = {}  # gone before their launch was noted here
        self._told_to_stop: dict[AttemptId, str] = {}  # by the operator, and why
        self.interrupted: list[OpenTrial] = []  # lost to that
        self._next_watch = 0.0

    # --- what makes a trial continue ----------------------------------------------------------------

    def launch(self, opened: OpenTrial) -> None:
        self._continue(self._launch(opened))

    def read(self, trial: Planned) -> None:
        """Take up a trial that an earlier controller began."""
        self._continue(self._take_up(trial))

    def finished(self, finished: Finished) -> None:
        """The backend says that a runner has gone."""
        if (stop := self._told_to_stop.get(finished.id)) is not None:
            finished = replace(finished, departure=stopped_by_operator(finished.departure, stop))
        if (why := finished.departure.unplanned) is not None:
            self.halted(self._stop_conditions.halt(None, why))  # also if the attempt has its end
        trial = finished.id.trial
        opened, state = self._table.get(trial), self._table.state(trial)
        if state is TrialState.LAUNCHING:
            self._early[finished.id] = finished.departure
        elif opened is not None and state is TrialState.RUNNING and opened.id == finished.id:
            self._continue(self._parked.pop(trial), finished.departure)

    def look_at_watched(self, now: float) -> None:
        """Look at the watched trials if it is time to; one that is still being looked at is left out."""
        if now < self._next_watch:
            return
        self._next_watch = now + self._intervals.watch_s
        for opened in self._table.in_state(TrialState.WATCHED):
            if (life := self._parked.pop(opened.trial.id, None)) is not None:
                self._continue(life)

    def follow_ends(self, ends: Set[tuple[str, int]]) -> None:
        """Continue the running trials whose attempts are among `ends`, without waiting for the backend."""
        for opened in self._table.in_state(TrialState.RUNNING):
            if opened.id in ends and (life := self._parked.pop(opened.trial.id, None)) is not None:
                self._continue(life, UNKNOWN)

    def _continue(self, life: Life[None], value: object = None) -> None:
        """Send `value` to the trial, and do what it asks for next."""
        try:
            request = life.send(value)
        except StopIteration:
            return
        if isinstance(request, Parked):
            self._parked[request.trial] = life
        else:
            self._io_pool.do(request, partial(self._continue, life))

    # --- the life of a trial ------------------------------------------------------------------------

    def _launch(self, opened: OpenTrial) -> Life[None]:
        """From the start of an attempt to the trial's outcome, or until it waits for another attempt."""
        self._table.put(opened, TrialState.LAUNCHING)
        self.launched_at[opened.trial.id] = began = time.monotonic()
        opened, step = yield from _io(partial(self._steps.launch, opened))
        if isinstance(step, LaunchAttempt):
            self._say(EventKind.LAUNCHED, opened, {"latency_s": round(time.monotonic() - began, 3)})
            opened = yield from self._follow_runner(opened, tracked=True)
        elif isinstance(step, Conclude):
            opened = self._table.charged(opened)
        yield from self._drive(opened)

    def _take_up(self, trial: Planned) -> Life[None]:
        """As `_launch`, from the records of an earlier controller. That controller has learned from the losses,
        except for a halt that it may have had no time to write."""
        opened = yield from _io(partial(self._steps.read, trial))
        for attempt in opened.chain:
            if attempt.end is not None and attempt.end.loss is not None:
                self._table.tally.lost(trial.condition, attempt.end.loss.loss)
        opened = self._table.charged(opened)
        if opened.chain and (end := opened.last.end) is not None and end.loss is not None:
            self._halt_again(opened, end.loss)
        yield from self._drive(opened)

    def _drive(self, opened: OpenTrial) -> Life[None]:
        """Do what the records ask for, until the trial has its outcome or waits for another attempt."""
        while True:
            match self._steps.next(opened):
                case Conclude() as step:
                    self._table.put(opened, TrialState.CONCLUDING)
                    outcome = yield from _io(partial(self._steps.conclude, step))
                    self._stop_conditions.crash_watch.learn(outcome)
                    return self._table.conclude(opened.trial, outcome)
                case WatchAttempt():
                    tracked = self._adopt(opened)
                case LaunchAttempt() if self._adopt(opened):
                    tracked = True  # launched before, and without a place until now
                case LaunchAttempt() if self._stop_conditions.cancelled_now:
                    tracked = False  # it may have been launched unseen, and its runner must find an end
                case Intend() | LaunchAttempt():
                    self._say(EventKind.RETRIED, opened, {})
                    return self._table.wait(opened)
            opened = yield from self._follow_runner(opened, tracked=tracked)

    def _follow_runner(self, opened: OpenTrial, *, tracked: bool) -> Life[OpenTrial]:
        """Until the last attempt has its end, or must be launched again. `tracked`: the backend will say when the
        runner has gone; otherwise only the ledger can."""
        opened = yield from self._until_over(opened, tracked=tracked)
        return opened if opened.last.end is None else self._learn(opened)

    def _until_over(self, opened: OpenTrial, *, tracked: bool) -> Life[OpenTrial]:
        while True:
            if not tracked:
                opened = yield from self._watch(opened)
                if opened.last.end is not None:
                    return opened
            gone = yield from self._run(opened)
            checkpoint("finish.before")
            self._table.put(opened, TrialState.SETTLING)
            seen = yield from _io(partial(self._steps.look, opened, gone))
            opened = seen.opened
            if opened.last.end is not None:
                return opened
            if seen.runner is Liveness.ALIVE:
                tracked = self._adopt(opened)  # our runner left because another runner had claimed the attempt
            elif seen.runner is Liveness.UNKNOWN:
                tracked = False
            elif gone.requeued and opened.last.start is None:
                return opened
            else:
                return (yield from self._lose(opened, gone))

    def _run(self, opened: OpenTrial) -> Life[RunnerTermination]:
        """Until the backend says that the runner has gone."""
        self._put_with_runner(opened, TrialState.RUNNING)
        if (early := self._early.pop(opened.id, None)) is not None:
            return early
        gone: RunnerTermination = yield Parked(opened.trial.id)
        return gone

    def _watch(self, opened: OpenTrial) -> Life[OpenTrial]:
        """Until the ledger has the attempt's end, or the backend knows its runner: it can then say more about how
        the runner went. A cancelled attempt gets its end from `cancel`: as a loss it would be tried again."""
        since = time.monotonic()
        self._put_with_runner(opened, TrialState.WATCHED)
        while True:
            yield Parked(opened.trial.id)
            seen = yield from _io(partial(self._steps.look, opened))
            if seen.opened.last.end is not None:
                self._table.put(seen.opened, TrialState.SETTLING)
                return seen.opened
            if self._adopt(seen.opened):
                return seen.opened
            if self._stop_conditions.cancelled_now:
                continue
            if (gone := self._termination(seen, since)) is not None:
                return (yield from self._lose(seen.opened, gone))

    def _lose(self, opened: OpenTrial, gone: RunnerTermination) -> Life[OpenTrial]:
        if gone.last_words is not None and not belongs(gone, opened.last):
            self._tell(f"{opened.id}: the runner's last words are about another attempt and are ignored")
        self._table.put(opened, TrialState.SETTLING)
        return (yield from _io(partial(self._steps.lose, opened, gone)))

    # --- runners ------------------------------------------------------------------------------------

    def _put_with_runner(self, opened: OpenTrial, state: TrialState) -> None:
        self._table.put(opened, state)
        if self._stop_conditions.cancelled_now:
            self._cancel(opened)

    def _adopt(self, opened: OpenTrial) -> bool:
        """Whether the backend knows the runner and will say when it has gone. A runner of an earlier controller
        gets new credentials."""
        adopted = self._backend.adopt(opened.id, opened.last.start)
        if adopted and self._is_earlier(opened) and not self._stop_conditions.cancelled_now:
            self._io_pool.do(partial(self._steps.renew, opened), lambda _: None)
        return adopted

    def _is_earlier(self, opened: OpenTrial) -> bool:
        """Whether an earlier controller began the last attempt."""
        return opened.last.intent.epoch < self._steps.epoch

    def _termination(self, seen: Seen, since: float) -> RunnerTermination | None:
        """How a runner that is watched since `since` went; None while it may still run."""
        match seen.runner:
            case Liveness.ALIVE:
                return None
            case Liveness.GONE | None:
                return RunnerTermination()
            case Liveness.REBOOTED:
                return RunnerTermination(rebooted=True)
            case Liveness.UNKNOWN:
                late = time.monotonic() - since > self._deadline_s
                return RunnerTermination(unreachable=True) if late else None

    # --- what an end says about the campaign --------------------------------------------------------

    def _learn(self, opened: OpenTrial) -> OpenTrial:
        """Charge the attempt that has ended, report it, and halt or slow the campaign if its end calls for it."""
        opened = self._table.charged(opened)
        self._backend.settled(opened.id)
        end = opened.last.end
        assert end is not None
        if end.loss is not None:
            self._say(EventKind.LOST, opened, {"loss": end.loss.loss.value, "message": end.loss.message})
            self._learn_loss(opened, end.loss)
        else:
            self._say(EventKind.FINISHED, opened, {})
            self.provider_health = self.provider_health.measured(opened.trial.task)
        return opened

    def _learn_loss(self, opened: OpenTrial, loss: Loss) -> None:
        trial = opened.trial
        self._table.tally.lost(trial.condition, loss.loss)
        if loss.loss is LossClass.INTERRUPTED:  # it says nothing of provider, machine or harness
            self.interrupted.append(opened)
            return
        self.provider_health = self.provider_health.lost(
            trial.task,
            loss,
            in_flight=self._table.busy + 1,
            working=self._backend.working,
            now=time.monotonic(),
            back_off_s=self._intervals.back_off_s,
            earlier=self._is_earlier(opened),
        )
        scope = self.provider_health.scope(trial.task, loss)
        if scope is not HaltScope.NONE:
            self.halted(self._stop_conditions.halt(trial.task if scope is HaltScope.TASK else None, loss))
        if self.provider_health.outage.over(trial.task):
            self._stop_conditions.stop(
                Ending.OUTAGE, f"stopped: attempts are lost in a row: {loss.loss}: {loss.message}"
            )

    def _halt_again(self, opened: OpenTrial, loss: Loss) -> None:
        """A halt that was lifted stays lifted."""
        task, epoch = opened.trial.task if loss.halt is HaltScope.TASK else None, opened.last.intent.epoch
        if loss.halt is not HaltScope.NONE and not self._steps.ledger.directives.halt_known(task, epoch=epoch):
            self.halted(self._stop_conditions.halt(task, loss))

    def halted(self, halts: list[Halt]) -> None:
        for halt in halts:
            self._table.queue.halt(halt)

    def _say(self, kind: EventKind, opened: OpenTrial, detail: Detail) -> None:
        self._note(CampaignEvent(time.time(), kind, opened.trial.id, opened.id.n, detail))

    # --- stopping -----------------------------------------------------------------------------------

    def cancel_all(self) -> None:
        """Mark what runs as lost, then stop it."""
        for opened in self._table.in_state(*SHOWN):
            self._cancel(opened)

    def _cancel(self, opened: OpenTrial) -> None:
        def stop(_: None) -> None:
            self._backend.stop([opened.id], grace_s=self._patience_s)

        self._io_pool.do(partial(self._steps.cancel, opened), stop)

    def withdraw(self) -> None:
        """Nothing more is to start: give up the launches that wait for a place."""
        steps = [
            (opened.trial.id, self._steps.next(opened)) for opened in self._table.in_state(TrialState.LAUNCHING)
        ]
        waiting = [AttemptId(trial, step.n) for trial, step in steps if isinstance(step, Intend | LaunchAttempt)]
        if waiting:
            self._backend.withdraw(waiting)

    def interrupt(self, why: str, *, grace_s: float) -> None:
        """Stop the runners of this backend for the operator. To be repeated: a launch may end meanwhile."""
        running = [opened.id for opened in self._table.in_state(TrialState.RUNNING)]
        new = [attempt for attempt in running if attempt not in self._told_to_stop]
        self._told_to_stop.update(dict.fromkeys(new, why))
        if new:
            self._backend.stop(new, grace_s=grace_s)

    def next_step(self, opened: OpenTrial) -> Step:
        return self._steps.next(opened)

    def stop(self, *, grace_s: float) -> None:
        """Tell the runners of this backend to stop."""
        self._backend.stop([opened.id for opened in self._table.in_state(TrialState.RUNNING)], grace_s=grace_s)
