"""The lives of open trials, from the launch to the outcome: keeps the book, gives the errands."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from trialfleet_controller.backend import AttemptId, Backend, Finished
from trialfleet_controller.caution import Caution
from trialfleet_controller.classify import Departure
from trialfleet_controller.errands import Errands
from trialfleet_controller.events import Detail, Event, Kind, Note
from trialfleet_controller.fault import checkpoint
from trialfleet_controller.fold import Conclude, Intend, Place, Watch
from trialfleet_controller.machine import Liveness
from trialfleet_controller.plan import Planned
from trialfleet_controller.shards import Ending
from trialfleet_controller.steering import Rhythm, Steering
from trialfleet_controller.steps import Seen, Steps, belongs
from trialfleet_controller.trialbook import SHOWN, At, Opened, Trialbook
from trialfleet_runner.contract import HaltScope, Loss, Outcome


class Lives:
    """Every method belongs to the thread that keeps the book. `deadline_s`: no attempt takes longer; `patience_s`:
    what a runner that is told to stop gets."""

    def __init__(
        self,
        book: Trialbook,
        steps: Steps,
        errands: Errands,
        steering: Steering,
        backend: Backend,
        caution: Caution,
        *,
        deadline_s: float,
        patience_s: float,
        rhythm: Rhythm,
        tell: Callable[[str], None],
        note: Note,
    ) -> None:
        self.caution = caution
        self._book, self._steps, self._errands = book, steps, errands
        self._steering, self._backend, self._tell = steering, backend, tell
        self._deadline_s, self._patience_s, self._rhythm, self._note = deadline_s, patience_s, rhythm, note
        self._early: dict[AttemptId, Finished] = {}  # over before their launch was noted here
        self._looking: set[str] = set()
        self._next_watch = 0.0

    # --- beginning ----------------------------------------------------------------------------------

    def launch(self, opened: Opened) -> None:
        self._book.put(opened, At.LAUNCHING)
        began = time.monotonic()
        self._errands.do(partial(self._steps.launch, opened), lambda result: self._launched(began, *result))

    def _launched(self, began: float, opened: Opened, step: Place | Watch | Conclude) -> None:
        match step:
            case Place():
                self._say(Kind.LAUNCHED, opened, {"latency_s": round(time.monotonic() - began, 3)})
                self._runs(opened, At.RUNNING)
                if (finished := self._early.pop(opened.id, None)) is not None:
                    self.finished(finished)
            case Watch():
                self._take_over(opened)
            case Conclude():
                self._conclude(self._book.charged(opened), step)

    def read(self, trial: Planned) -> None:
        """Take up a trial that an earlier controller had begun."""
        self._errands.do(partial(self._steps.read, trial), self._read)

    def _read(self, opened: Opened) -> None:
        """Its losses have been learned from by those who saw them, but for a halt that a kill may have cut off."""
        for attempt in opened.chain:
            if attempt.end is not None and attempt.end.loss is not None:
                self._book.tally.lost(opened.trial.condition, attempt.end.loss.loss)
        opened = self._book.charged(opened)
        if opened.chain and (end := opened.last.end) is not None and end.loss is not None:
            self._halt_again(opened, end.loss)
        self._drive(opened)

    def _halt_again(self, opened: Opened, loss: Loss) -> None:
        """A halt that was lifted stays lifted."""
        task, epoch = opened.trial.task if loss.halt is HaltScope.TASK else None, opened.last.intent.epoch
        if loss.halt is not HaltScope.NONE and not self._steps.ledger.halt_known(task, epoch=epoch):
            self.halted(self._steering.halt(task, loss))

    def _take_over(self, opened: Opened) -> None:
        """Somebody else has launched it: the backend may know its runner, or the ledger must tell."""
        if not self._adopted(opened):
            self._watch(opened)

    def _adopted(self, opened: Opened) -> bool:
        adopted = self._backend.adopt(opened.id, opened.last.start)
        if adopted:
            self._runs(opened, At.RUNNING)
        return adopted

    def _watch(self, opened: Opened) -> None:
        self._runs(replace(opened, since=time.monotonic()), At.WATCHED)

    def _runs(self, opened: Opened, at: At) -> None:
        self._book.put(opened, at)
        if self._steering.cancelled_now:
            self._cancel(opened)

    # --- ending -------------------------------------------------------------------------------------

    def finished(self, finished: Finished) -> None:
        """The backend says that a runner has gone."""
        if (why := finished.departure.unplanned) is not None:
            self.halted(self._steering.halt(None, why))  # whatever the ledger says of this one
        where = self._book.where(finished.id.trial)
        if where is At.LAUNCHING:
            self._early[finished.id] = finished
            return
        opened = self._book.get(finished.id.trial)
        if opened is None or where is not At.RUNNING or opened.id != finished.id:
            return
        checkpoint("finish.before")
        self._book.put(opened, At.SETTLING)
        gone = finished.departure
        self._errands.do(partial(self._steps.look, opened, gone), partial(self._settle, gone))

    def _settle(self, gone: Departure, seen: Seen) -> None:
        opened = seen.opened
        if opened.last.end is not None:
            self._ended(opened)
        elif seen.runner is Liveness.ALIVE:
            self._take_over(opened)  # ours left because another's start was there
        elif seen.runner is Liveness.UNKNOWN:
            self._watch(opened)
        else:
            self._lose(opened, gone)

    def _lose(self, opened: Opened, gone: Departure) -> None:
        if gone.last_words is not None and not belongs(gone, opened.last):
            self._tell(f"{opened.id}: its last words speak of another attempt, and are ignored")
        self._book.put(opened, At.SETTLING)
        self._errands.do(partial(self._steps.lose, opened, gone), self._ended)

    def _ended(self, opened: Opened) -> None:
        """An attempt has its end; the trial gets its next step."""
        opened = self._book.charged(opened)
        self._backend.settled(opened.id)
        end = opened.last.end
        assert end is not None
        if end.loss is None:
            self._say(Kind.FINISHED, opened, {})
            self.caution = self.caution.measured(opened.trial.task)
        else:
            self._say(Kind.LOST, opened, {"loss": end.loss.loss.value, "message": end.loss.message})
            self._learn(opened.trial, end.loss)
        self._drive(opened)

    def _learn(self, trial: Planned, loss: Loss) -> None:
        self._book.tally.lost(trial.condition, loss.loss)
        self.caution = self.caution.lost(
            trial.task,
            loss,
            in_flight=self._book.busy + 1,
            working=self._backend.working,
            now=time.monotonic(),
            back_off_s=self._rhythm.back_off_s,
        )
        scope = self.caution.scope(trial.task, loss)
        if scope is not HaltScope.NONE:
            self.halted(self._steering.halt(trial.task if scope is HaltScope.TASK else None, loss))
        if self.caution.outage.over(trial.task):
            self._steering.stop(Ending.OUTAGE, f"stopped, attempts are lost in a row: {loss.loss}: {loss.message}")

    def halted(self, tasks: list[str]) -> None:
        for task in tasks:
            self._book.queue.halt(task)

    def _drive(self, opened: Opened) -> None:
        """Keep the outcome, try again, or see who runs it."""
        match self._steps.next(opened):
            case Conclude() as step:
                self._conclude(opened, step)
            case Watch():
                self._take_over(opened)
            case Place() if self._adopted(opened):
                pass  # launched before, and without a place until now
            case Place() if self._steering.cancelled_now:
                self._watch(opened)  # it gets an end all the same: what was launched of it unseen finds it
            case Intend() | Place():
                self._say(Kind.RETRIED, opened, {})
                self._book.wait(opened)

    def _conclude(self, opened: Opened, step: Conclude) -> None:
        self._book.put(opened, At.CONCLUDING)
        self._errands.do(partial(self._steps.conclude, step), partial(self._concluded, opened.trial))

    def _concluded(self, trial: Planned, outcome: Outcome) -> None:
        self._book.conclude(trial, outcome)

    def _say(self, kind: Kind, opened: Opened, detail: Detail) -> None:
        self._note(Event(time.time(), kind, opened.trial.id, opened.id.n, detail))

    # --- those that others launched -----------------------------------------------------------------

    def look_at_watched(self, now: float) -> None:
        """When it is time: has any of them come to its end?"""
        if now < self._next_watch:
            return
        self._next_watch = now + self._rhythm.watch_s
        for opened in self._book.all_at(At.WATCHED):
            if opened.trial.id not in self._looking:
                self._looking.add(opened.trial.id)
                self._errands.do(partial(self._steps.look, opened), self._looked)

    def _looked(self, seen: Seen) -> None:
        """A backend that did not know its runner may know it by now: then it says more of its end than that."""
        opened = seen.opened
        self._looking.discard(opened.trial.id)
        if opened.last.end is not None:
            self._book.put(opened, At.SETTLING)
            self._ended(opened)
        elif self._adopted(opened) or self._steering.cancelled_now:
            return  # one that is cancelled gets that as its end: lost otherwise, it would wait for another attempt
        elif (gone := self._departure(seen)) is not None:
            self._lose(opened, gone)

    def _departure(self, seen: Seen) -> Departure | None:
        """How a watched attempt without an end went; None while it may still run."""
        match seen.runner:
            case Liveness.ALIVE:
                return None
            case Liveness.GONE | None:
                return Departure()
            case Liveness.REBOOTED:
                return Departure(rebooted=True)
            case Liveness.UNKNOWN:
                late = time.monotonic() - seen.opened.since > self._deadline_s
                return Departure(unreachable=True) if late else None

    # --- stopping -----------------------------------------------------------------------------------

    def cancel_all(self) -> None:
        """Mark what runs as lost, then stop it."""
        for opened in self._book.all_at(*SHOWN):
            self._cancel(opened)

    def _cancel(self, opened: Opened) -> None:
        self._errands.do(partial(self._steps.cancel, opened), self._cancelled)

    def _cancelled(self, opened: Opened) -> None:
        self._backend.stop([opened.id], grace_s=self._patience_s)

    def withdraw(self) -> None:
        """Nothing more is to start: launches that wait for room are given up."""
        steps = [(opened.trial.id, self._steps.next(opened)) for opened in self._book.all_at(At.LAUNCHING)]
        waiting = [AttemptId(trial, step.n) for trial, step in steps if isinstance(step, Intend | Place)]
        if waiting:
            self._backend.withdraw(waiting)

    def stop(self, *, grace_s: float) -> None:
        """Tell the runners of this backend to stop."""
        self._backend.stop([opened.id for opened in self._book.all_at(At.RUNNING)], grace_s=grace_s)
