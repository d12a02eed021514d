"""Ends a dispatcher for the operator: which runners are waited for, which are stopped, and what is said of it."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum

from trialfleet_controller.backends.protocol import Backend
from trialfleet_controller.dispatch.io_pool import IoPool
from trialfleet_controller.dispatch.stop_conditions import Interrupt, PollIntervals
from trialfleet_controller.dispatch.trial_driver import TrialDriver
from trialfleet_controller.dispatch.trial_table import OpenTrial, TrialState, TrialTable
from trialfleet_ledger.fold import Conclude, Intend, Step
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.retries import INTERRUPTIONS
from trialfleet_ledger.stage_reached import Stage, stage

MOMENT_S = 0.05  # the longest wait for an I/O result: meanwhile runners end, and the operator may ask again
PATCH_S = 10.0  # for a runner whose agent has ended: it makes the diff and stores it
_OURS = (TrialState.LAUNCHING, TrialState.RUNNING, TrialState.SETTLING, TrialState.CONCLUDING)


class Shutdown:
    """`patience_s`: how long a runner may take to stop; `deadline_s`: no attempt takes longer."""

    def __init__(
        self,
        interrupt: Interrupt,
        table: TrialTable,
        trial_driver: TrialDriver,
        io_pool: IoPool,
        backend: Backend,
        intervals: PollIntervals,
        tell: Callable[[str], None],
        *,
        patience_s: float,
        deadline_s: float,
    ) -> None:
        self._interrupt, self._table, self._trial_driver = interrupt, table, trial_driver
        self._io_pool, self._backend, self._intervals, self._tell = io_pool, backend, intervals, tell
        self._patience_s, self._deadline_s = patience_s + PATCH_S, deadline_s
        self._finish_by: float | None = None  # on the monotonic clock; None: not begun
        self._limit_s, self._waited_for = 0.0, 0

    def advance(self) -> bool:
        """Once somebody has asked to stop, in every turn. True: nothing is left to wait for."""
        if self._backend.detachable:
            if self._interrupt.requests == 1:
                self._finish_io()
            self._tell(continuing_message(self._table.busy))
            return True
        if self._finish_by is None:
            self._finish_by = self._begin()
        late = time.monotonic() >= self._finish_by
        if self._running and (late or self._interrupt.level > 1):
            self._stop_runners(late=late)
        elif self._running:
            return False
        self._finish_io()
        if self._running:
            open_ends = f"the ends of {_trials(self._running)}"
            self._tell(f"the store does not have {open_ends} yet: `trialfleet resume` settles them")
        elif self._waited_for:
            self._tell(thrown_away_message(self._trial_driver.interrupted, self._trial_driver.next_step))
        return True

    @property
    def _running(self) -> int:
        """Trials whose runners are of this process, and those whose ends it still writes."""
        return sum(self._table.count(state) for state in _OURS)

    def _begin(self) -> float:
        """When running trials must have finished, on the monotonic clock."""
        self._waited_for = self._running
        self._limit_s = min(self._intervals.finish_s, self._longest_left_s())
        if self._interrupt.level == 1 or not self._running:
            self._tell(finishing_message(self._running, self._limit_s))
        return time.monotonic() + self._limit_s

    def _longest_left_s(self) -> float:
        """Of the attempts that run, by the limits of the plan."""
        begun = [self._trial_driver.launched_at.get(one.trial.id) for one in self._table.in_state(*_OURS)]
        latest = max((at for at in begun if at is not None), default=time.monotonic())
        return max(0.0, latest + self._deadline_s - time.monotonic())

    def _finish_io(self) -> None:
        """Of the I/O that is under way. Asked again, leave at once."""
        until, requests = time.monotonic() + self._intervals.wind_down_s, self._interrupt.requests
        while self._io_pool.busy and self._interrupt.requests == requests and time.monotonic() < until:
            self._io_pool.apply(MOMENT_S)

    def _stop_runners(self, *, late: bool) -> None:
        """Stop the runners that die with this process, and settle their ends. Asked once more: kill them."""
        limit_s = self._limit_s if late else None
        self._tell(stopping_message(self._running, limit_s))
        why = "the operator stopped the controller"
        if late:
            why += f", and the attempt had not finished within {_time(self._limit_s)}"
        until = time.monotonic() + self._patience_s + self._intervals.wind_down_s
        killed = False
        while self._running and time.monotonic() < until:
            for finished in self._backend.poll(MOMENT_S):
                self._trial_driver.finished(finished)
            self._trial_driver.interrupt(why, grace_s=self._patience_s)
            if self._interrupt.level > 2 and not killed:
                killed = True
                self._tell(f"killing the runners of {_trials(self._running)}")
                self._trial_driver.stop(grace_s=0)
            self._io_pool.apply()


def continuing_message(running: int) -> str:
    """Of runners that outlive the controller.

    >>> continuing_message(1)[:82]
    'stopping: nothing more starts; 1 running trial continues without this controller. '
    """
    if not running:
        return "stopping: no trial is running"
    continues = "continues" if running == 1 else "continue"
    return (
        f"stopping: nothing more starts; {_trials(running)} {continues} without this controller. "
        "`trialfleet resume` takes them up, `trialfleet cancel --now` stops them"
    )


def finishing_message(running: int, limit_s: float) -> str:
    """
    >>> finishing_message(2, 1800)[:72]
    'stopping: nothing more starts; 2 running trials may finish within 30 min'
    """
    if not running:
        return "stopping: no trial is running"
    return (
        f"stopping: nothing more starts; {_trials(running)} may finish within {_time(limit_s)}. "
        "Ctrl-C again stops at once and throws away what their agents have done so far"
    )


def stopping_message(running: int, limit_s: float | None) -> str:
    """`limit_s`: set when this limit has passed.

    >>> stopping_message(1, 90), stopping_message(2, None)
    ('1 running trial has not finished within 90 s: stopping', 'stopping 2 running trials at once')
    """
    if limit_s is None:
        return f"stopping {_trials(running)} at once"
    return f"{_trials(running)} {'has' if running == 1 else 'have'} not finished within {_time(limit_s)}: stopping"


class StoppedWork(StrEnum):
    """When a stop met a trial, and what becomes of the trial."""

    NOT_BEGUN = "before the agent started: nothing is lost"
    SCORED_LATER = "after the agent had ended: its patch is kept, and only scoring is repeated"
    RUN_AGAIN = "while the agent ran: its work is thrown away, and the trial runs again"
    ABANDONED = f"after {INTERRUPTIONS} interruptions: the trial is not run again and has no result"


def thrown_away_message(stopped: Iterable[OpenTrial], step_of: Callable[[OpenTrial], Step]) -> str:
    """What a stop has cost, as the ledger has it. `stopped`: trials whose last loss is the operator's."""
    counts = Counter(_stopped_work(opened, step_of(opened)) for opened in stopped)
    if not counts:
        return "the running trials have ended: nothing is thrown away"
    parts = [f"{counts[work]} {work}" for work in StoppedWork if counts[work]]
    return f"interrupted by you: {counts.total()} ({'; '.join(parts)})"


def _stopped_work(opened: OpenTrial, step: Step) -> StoppedWork:
    if isinstance(step, Conclude):
        return StoppedWork.ABANDONED
    if isinstance(step, Intend) and step.score_from is not None:
        return StoppedWork.SCORED_LATER
    last = opened.last
    reached = stage(last.end, score_only=last.intent.score_only, patched=last.patched)
    return StoppedWork.NOT_BEGUN if reached is Stage.BEFORE_AGENT else StoppedWork.RUN_AGAIN


def _trials(number: int) -> str:
    return plural(number, "running trial")


def _time(seconds: float) -> str:
    """
    >>> _time(42), _time(121)
    ('42 s', '3 min')
    """
    return f"{math.ceil(seconds)} s" if seconds < 120 else f"{math.ceil(seconds / 60)} min"
