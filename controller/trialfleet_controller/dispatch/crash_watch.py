"""Halts a condition whose agent crashed in each of its first measured trials.

The decision reads outcomes in the plan's order from the ledger alone, over all shards. Every controller decides
alike, and a resumed one writes what a killed one had no time to write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from trialfleet_ledger.amendments import select_halted_cells
from trialfleet_ledger.crashed_agents import begins_with_crashes, reason_to_halt
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.trial_order import Planned


class CrashWatch:
    """`trials`: of the whole campaign in launch order, whichever shard drives them. Only `write_halts` may be
    called by another thread."""

    def __init__(self, ledger: Ledger, trials: Callable[[], Sequence[Planned]]) -> None:
        self._ledger, self._trials = ledger, trials
        self._lock = threading.Lock()  # guards the next
        self._suspects: set[str] | None = None  # conditions to look at; None: all, because nothing is known yet

    @property
    def due(self) -> bool:
        return self._suspects is None or bool(self._suspects)

    def learn(self, outcome: Outcome) -> None:
        """An outcome may complete the first three crashes: a crash, or an abandoned trial among them."""
        with self._lock:
            if self._suspects is not None and (outcome.scored is None or outcome.scored.stop is Stop.CRASHED):
                self._suspects.add(outcome.trial.condition)

    def suspect_all(self) -> None:
        """Trials have left the plan's order: other ones may now be the first of a condition."""
        with self._lock:
            self._suspects = None

    def write_halts(self) -> None:
        with self._lock:
            suspects, self._suspects = self._suspects, set()
        trials, halts = self._trials(), self._ledger.directives.halts()
        halted = select_halted_cells(((trial.task, trial.condition) for trial in trials), halts)
        for condition in sorted({trial.condition for trial in trials} if suspects is None else suspects):
            ids = (
                trial.id
                for trial in trials
                if trial.condition == condition and (trial.task, condition) not in halted
            )
            if begins_with_crashes(map(self._ledger.attempts.outcome, ids)):
                self._ledger.directives.halt_condition(condition, reason_to_halt(condition))
