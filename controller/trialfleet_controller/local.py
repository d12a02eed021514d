"""The local backend: Ray schedules attempts on this machine by CPU and memory, each a runner process.

A Ray task supervises one runner: it dies with its worker (the kernel sees to that) and with the controller (the
task watches it), so nothing survives a `kill -9` of either.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialfleet_controller import processes
from trialfleet_controller.backend import AttemptId, Finished, Order
from trialfleet_controller.classify import Departure
from trialfleet_controller.private_ray import PrivateRay
from trialfleet_controller.runners_here import RunnersHere
from trialfleet_controller.work import Desk


def supervise(argv: Sequence[str], log: str, pid_file: str, controller: int) -> int:
    """Run one runner to its end; its exit code. Kills it when process `controller` is gone."""
    try:
        controller_fd = os.pidfd_open(controller)
    except ProcessLookupError:
        return -signal.SIGKILL
    process = processes.start(argv, Path(log))
    runner_fd = os.pidfd_open(process.pid)
    try:
        Path(pid_file).write_text(str(process.pid))
        while runner_fd not in (over := processes.wait_any((runner_fd, controller_fd), 3600)):
            if controller_fd in over:
                process.kill()
        with suppress(FileNotFoundError):
            Path(pid_file).unlink()  # before the process is reaped: until then the number is its own
        return processes.end_group(process)
    finally:
        process.kill()
        os.close(runner_fd)
        os.close(controller_fd)


@dataclass
class _Task:
    id: AttemptId
    desk: Desk
    kill_at: float | None = None  # monotonic: when patience with a stop is over


class RayBackend(RunnersHere):
    """Ray tasks with `max_retries=0`: only the ledger decides about another attempt."""

    def __init__(
        self,
        *,
        slots: int,
        cpu: float,
        memory_bytes: int,
        runner: Sequence[str] = processes.RUNNER,
        work: Path | None = None,
    ) -> None:
        super().__init__(slots=slots, runner=runner, work=work)
        self._tasks: dict[Any, _Task] = {}  # by Ray's object reference
        self._private = PrivateRay(cpus=math.ceil(slots * cpu), memory_bytes=slots * memory_bytes)
        self._ray = self._private.ray
        task = self._ray.remote(max_retries=0)(supervise)
        self._remote = task.options(num_cpus=cpu, memory=memory_bytes)

    @property
    def working(self) -> int:
        return len(self._tasks)

    def launch(self, order: Order) -> None:
        desk = self._work.desk(order)
        argv = (*self._runner, str(desk.grants))
        ref = self._remote.remote(argv, str(desk.log), str(desk.pid), os.getpid())
        self._tasks[ref] = _Task(order.id, desk)

    def poll(self, timeout_s: float) -> list[Finished]:
        self._kill_late()
        if not self._tasks:
            time.sleep(timeout_s)
            return []
        refs = list(self._tasks)
        first, _ = self._ray.wait(refs, num_returns=1, timeout=timeout_s)
        if not first:
            return []
        ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0)
        return [self._collect(ref) for ref in ready]

    def stop(self, attempts: Iterable[AttemptId], *, grace_s: float) -> None:
        wanted = set(attempts)
        for ref, task in self._tasks.items():
            if task.id in wanted:
                task.kill_at = time.monotonic() + grace_s
                if not self._signal(task, signal.SIGTERM):
                    self._ray.cancel(ref)  # not placed yet

    def close(self) -> None:
        for task in self._tasks.values():
            self._signal(task, signal.SIGKILL)
        self._private.close()  # with its workers; a runner that is only now being started dies with its worker
        self._tasks.clear()
        self._work.close()

    def _collect(self, ref: Any) -> Finished:
        task = self._tasks.pop(ref)
        code: int | None
        try:
            code, words = self._ray.get(ref), processes.tail(task.desk.log)
        except self._ray.exceptions.TaskCancelledError:
            code, words = -signal.SIGTERM, ""
        except self._ray.exceptions.RayError as error:  # the worker died, and the runner with it
            code, words = None, f"{processes.tail(task.desk.log)}\n{type(error).__name__}"
        task.desk.clear()
        return Finished(task.id, Departure(code=code, words=words))

    def _signal(self, task: _Task, number: signal.Signals) -> bool:
        """True when the runner was there to be told."""
        try:
            pid = int(task.desk.pid.read_text())
            fd = os.pidfd_open(pid)
        except (FileNotFoundError, ValueError, ProcessLookupError):
            return False
        try:
            # Still named after we hold it: then the descriptor is of the runner, not of a reused number.
            if task.desk.pid.exists():
                signal.pidfd_send_signal(fd, number)
                return True
        except ProcessLookupError:
            pass
        finally:
            os.close(fd)
        return False

    def _kill_late(self) -> None:
        now = time.monotonic()
        for task in self._tasks.values():
            if task.kill_at is not None and now >= task.kill_at:
                self._signal(task, signal.SIGKILL)
