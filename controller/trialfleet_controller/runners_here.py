"""What holds for runners that are processes of this machine and die with their controller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from trialfleet_controller import machine
from trialfleet_controller.backend import AttemptId
from trialfleet_controller.machine import Liveness
from trialfleet_controller.work import WorkFolder
from trialfleet_runner.contract import Start


class RunnersHere:
    """The part of `Backend` that both local backends share. `runner`: its command, the grants' path left out."""

    def __init__(self, *, slots: int, runner: Sequence[str], work: Path | None) -> None:
        self._slots = slots
        self._runner = tuple(runner)
        self._work = WorkFolder(work)

    @property
    def slots(self) -> int:
        return self._slots

    @property
    def concurrency(self) -> int:
        return 1

    @property
    def detachable(self) -> bool:
        return False

    def adopt(self, attempt: AttemptId, start: Start | None) -> bool:
        return False  # its process is another's child: only the lock on its folder tells

    def settled(self, attempt: AttemptId) -> None:
        """Nothing is left of a process."""

    def alive(self, start: Start) -> Liveness:
        return machine.runner_liveness(start)

    def withdraw(self, attempts: Iterable[AttemptId]) -> None:
        """No launch waits here."""
