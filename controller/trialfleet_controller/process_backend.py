"""Runners as children of this process: the local backend without Ray."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trialfleet_controller import processes
from trialfleet_controller.backend import AttemptId, Finished, Order
from trialfleet_controller.classify import Departure
from trialfleet_controller.runners_here import RunnersHere
from trialfleet_controller.work import Desk


@dataclass
class _Child:
    id: AttemptId
    desk: Desk
    process: subprocess.Popen[bytes]
    pidfd: int
    kill_at: float | None = None  # monotonic: when patience with a stop is over


class ProcessBackend(RunnersHere):
    """Use from the main thread: children die with the thread that started them."""

    def __init__(self, *, slots: int, runner: Sequence[str] = processes.RUNNER, work: Path | None = None) -> None:
        super().__init__(slots=slots, runner=runner, work=work)
        self._children: dict[int, _Child] = {}  # by pidfd

    @property
    def working(self) -> int:
        return len(self._children)

    def launch(self, order: Order) -> None:
        desk = self._work.desk(order)
        process = processes.start((*self._runner, str(desk.grants)), desk.log)
        fd = os.pidfd_open(process.pid)
        self._children[fd] = _Child(order.id, desk, process, fd)

    def poll(self, timeout_s: float) -> list[Finished]:
        self._kill_late()
        if not self._children:
            time.sleep(timeout_s)
            return []
        return [self._reap(fd) for fd in processes.wait_any(self._children, timeout_s)]

    def stop(self, attempts: Iterable[AttemptId], *, grace_s: float) -> None:
        wanted = set(attempts)
        for child in self._children.values():
            if child.id in wanted:
                signal.pidfd_send_signal(child.pidfd, signal.SIGTERM)
                child.kill_at = time.monotonic() + grace_s

    def close(self) -> None:
        for child in self._children.values():
            child.process.kill()
        for fd in list(self._children):
            self._reap(fd)
        self._work.close()

    def _reap(self, fd: int) -> Finished:
        child = self._children.pop(fd)
        code = processes.end_group(child.process)
        os.close(fd)
        words = processes.tail(child.desk.log)
        child.desk.clear()
        return Finished(child.id, Departure(code=code, words=words))

    def _kill_late(self) -> None:
        now = time.monotonic()
        for child in self._children.values():
            if child.kill_at is not None and now >= child.kill_at:
                child.process.kill()
