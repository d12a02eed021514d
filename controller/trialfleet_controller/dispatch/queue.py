"""Chooses the next trial: retries first, then plan order, at most a few blocks ahead. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.trial_order import Planned


class Queue:
    """`blocks_ahead`: how many blocks past the oldest incomplete one may start. Halted trials count as finished:
    they neither start nor hold others back. `oldest_elsewhere`: the oldest incomplete block of the whole
    campaign, if these are the trials of one shard; an outdated value is harmless, because it only grows."""

    def __init__(self, trials: Sequence[Planned], blocks_ahead: int) -> None:
        self._trials = trials
        self._closed: set[str] = set()
        self._ahead = blocks_ahead
        self._again: deque[Planned] = deque()
        self._held: set[str] = set()  # taken, retried, or begun before: not taken in plan order
        self._halts: list[Halt] = []
        self._unplanned: set[str] = set()
        self._cursor = 0
        self._oldest = 0
        self.oldest_elsewhere: int | None = None
        self.barrier: int | None = None  # the first block that may not start
        self._open = [0] * (max((trial.block for trial in trials), default=-1) + 1)
        for trial in trials:
            self._open[trial.block] += 1

    @property
    def open(self) -> int:
        """Trials without an outcome, without those that are halted."""
        return sum(self._open)

    @property
    def oldest(self) -> int | None:
        """The oldest block with an open trial; None: no trial is open."""
        while self._oldest < len(self._open) and self._open[self._oldest] == 0:
            self._oldest += 1
        return self._oldest if self._oldest < len(self._open) else None

    def take(self) -> Planned | None:
        """The next trial to start; None when nothing may start now."""
        while self._again:
            trial = self._again.popleft()
            if not self._is_halted(trial):
                return trial
        return self._in_order()

    def take_again(self, wanted: Callable[[Planned], bool]) -> Planned | None:
        """As `again_if`, and take it."""
        trial = self.again_if(wanted)
        if trial is not None:
            self._again.remove(trial)
        return trial

    def again_if(self, wanted: Callable[[Planned], bool]) -> Planned | None:
        """The first waiting retry that is `wanted`."""
        return next((trial for trial in self._again if not self._is_halted(trial) and wanted(trial)), None)

    def hold(self, trial: Planned) -> None:
        """A trial with attempts is not taken in plan order, only after `again`."""
        self._held.add(trial.id)

    def again(self, trial: Planned) -> None:
        """A lost trial goes to the front, in the order of losing."""
        self._held.add(trial.id)
        self._again.append(trial)

    def finish(self, trial: Planned) -> None:
        """It has an outcome."""
        if trial.id not in self._closed:
            self._closed.add(trial.id)
            self._open[trial.block] -= 1

    def halt(self, halt: Halt) -> None:
        """Nothing that it covers starts any more."""
        self._halts.append(halt)
        for trial in self._trials:
            if halt.covers(trial.task, trial.condition):
                self.finish(trial)

    def _is_halted(self, trial: Planned) -> bool:
        return any(halt.covers(trial.task, trial.condition) for halt in self._halts)

    def plan(self, planned: PlannedReps) -> tuple[list[Planned], list[Planned]]:
        """From now on these trials are planned, and others do not start; returns those that go and those that
        come. None of them may have begun."""
        gone = [one for one in self._trials if one.id not in self._closed and not _in(planned, one)]
        come = [one for one in self._trials if one.id in self._unplanned and _in(planned, one)]
        for trial in gone:
            self.finish(trial)
        self._unplanned |= {trial.id for trial in gone}
        for trial in come:
            self._unplanned.discard(trial.id)
            self._reopen(trial)
        return gone, come

    def _reopen(self, trial: Planned) -> None:
        if not self._is_halted(trial):
            self._closed.discard(trial.id)
            self._open[trial.block] += 1
            self._oldest = self._cursor = 0

    def _in_order(self) -> Planned | None:
        oldest = self.oldest if self.oldest_elsewhere is None else self.oldest_elsewhere
        while self._cursor < len(self._trials):
            trial = self._trials[self._cursor]
            if trial.id not in self._closed and trial.id not in self._held:
                if oldest is None or trial.block > oldest + self._ahead:
                    return None
                if self.barrier is not None and trial.block >= self.barrier:
                    return None
                self._cursor += 1
                self._held.add(trial.id)
                return trial
            self._cursor += 1
        return None


def _in(planned: PlannedReps, trial: Planned) -> bool:
    return planned.includes((trial.task, trial.condition), trial.block)
