"""The local backend: Ray schedules attempts on this machine by CPU and memory, each a runner process.

A Ray task supervises one runner: it dies with its worker (the kernel sees to that) and with the controller (the
task watches it), so nothing survives a `kill -9` of either.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from trialfleet_controller.backends.local import processes
from trialfleet_controller.backends.local.local_runners import Launched, LaunchFiles, RunnersHere
from trialfleet_controller.backends.protocol import Finished, Order
from trialfleet_controller.hosting.private_ray import PrivateRay
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.exit_codes import RunnerExit


def supervise(runner: tuple[str, ...] | None, files: LaunchFiles, controller: int) -> int | None:
    """Run one runner to its end; its exit code. Kills it when process `controller` is gone."""
    try:
        controller_fd = os.pidfd_open(controller)
    except ProcessLookupError:
        return -signal.SIGKILL
    try:
        launcher = _launcher_of(runner, files.stem.parent)
        process = launcher.start(files.grants, files.log, last_words=files.last_words)
    except OperatorError as error:
        os.close(controller_fd)
        files.log.write_text(str(error), encoding="utf-8")
        return RunnerExit.BUG
    try:
        files.pid.write_text(str(process.pid), encoding="utf-8")
        while process.pidfd not in (over := processes.wait_any((process.pidfd, controller_fd), 3600)):
            if controller_fd in over:
                processes.send_signal(process.pidfd, signal.SIGKILL)
        with suppress(FileNotFoundError):
            files.pid.unlink()  # before the process is reaped: until then the number is its own
    except BaseException:
        processes.send_signal(process.pidfd, signal.SIGKILL)
        raise
    finally:
        os.close(controller_fd)
        code = process.reap()
    return code


@cache
def _launcher_of(runner: tuple[str, ...] | None, folder: Path) -> processes.RunnerLauncher:
    """One for all attempts of a worker of Ray: it dies with it."""
    return processes.create_launcher(runner, folder)


def ray_for(*, slots: int, cpu: float, memory_bytes: int) -> PrivateRay:
    """A Ray of this machine that has room for so many attempts; it starts now."""
    return PrivateRay(cpus=math.ceil(slots * cpu), memory_bytes=slots * memory_bytes)


class RayBackend(RunnersHere):
    """Ray tasks with `max_retries=0`: only the ledger decides about another attempt. `private`: a Ray that was
    started for it, and is closed with it; None: one starts now."""

    def __init__(
        self,
        *,
        slots: int,
        cpu: float,
        memory_bytes: int,
        runner: Sequence[str] | None = None,
        work: Path | None = None,
        private: PrivateRay | None = None,
    ) -> None:
        super().__init__(slots=slots, work=work)
        self._runner = None if runner is None else tuple(runner)
        self._private = private or ray_for(slots=slots, cpu=cpu, memory_bytes=memory_bytes)
        self._ray = self._private.ray
        task = self._ray.remote(max_retries=0)(supervise)
        self._remote = task.options(num_cpus=cpu, memory=memory_bytes)

    def launch(self, order: Order) -> None:
        files = self._work.files(order)
        ref = self._remote.remote(self._runner, files, os.getpid())
        self._launched[ref] = Launched(order.id, files)

    def close(self) -> None:
        for ref in self._launched:
            self._kill(ref)
        self._private.close()  # with its workers; a runner that is only now being started dies with its worker
        self._launched.clear()
        self._work.close()

    def _over(self, timeout_s: float) -> Iterable[Any]:
        refs = list(self._launched)
        first, _ = self._ray.wait(refs, num_returns=1, timeout=timeout_s)
        return self._ray.wait(refs, num_returns=len(refs), timeout=0)[0] if first else ()

    def _collect(self, key: Any) -> Finished:
        launched = self._launched.pop(key)
        code: int | None
        try:
            code, words = self._ray.get(key), processes.tail(launched.files.log)
        except self._ray.exceptions.TaskCancelledError:
            code, words = -signal.SIGTERM, ""
        except self._ray.exceptions.RayError as error:  # the worker died, and the runner with it
            code, words = None, f"{processes.tail(launched.files.log)}\n{type(error).__name__}"
        return launched.finished(code, words)

    def _ask_to_stop(self, key: Any) -> None:
        if not _sent(self._launched[key].files.pid, signal.SIGTERM):
            self._ray.cancel(key)  # not placed yet

    def _kill(self, key: Any) -> None:
        _sent(self._launched[key].files.pid, signal.SIGKILL)


def _sent(pid_file: Path, number: signal.Signals) -> bool:
    """Whether the runner was there to get the signal."""
    try:
        fd = os.pidfd_open(int(pid_file.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return False
    try:
        # Still named after we hold it: then the descriptor is of the runner, not of a reused number.
        if pid_file.exists():
            signal.pidfd_send_signal(fd, number)
            return True
    except ProcessLookupError:
        pass
    finally:
        os.close(fd)
    return False
