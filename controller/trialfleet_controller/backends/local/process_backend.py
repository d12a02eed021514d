"""Runners as children of this process: the local backend without Ray."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from trialfleet_controller.backends.local import processes
from trialfleet_controller.backends.local.local_runners import Launched, RunnersHere
from trialfleet_controller.backends.protocol import Finished, Order


class ProcessBackend(RunnersHere):
    """Use from the main thread: children die with the thread that started them."""

    def __init__(self, *, slots: int, runner: Sequence[str] = processes.RUNNER, work: Path | None = None) -> None:
        super().__init__(slots=slots, runner=runner, work=work)
        self._children: dict[int, subprocess.Popen[bytes]] = {}  # by pidfd, as `_launched`

    def launch(self, order: Order) -> None:
        files = self._work.files(order)
        argv = (*self._runner, str(files.grants))
        process = processes.start(argv, files.log, last_words=files.last_words)
        fd = os.pidfd_open(process.pid)
        self._children[fd] = process
        self._launched[fd] = Launched(order.id, files)

    def close(self) -> None:
        for fd in self._children:
            self._kill(fd)
        for fd in list(self._children):
            self._collect(fd)
        self._work.close()

    def _over(self, timeout_s: float) -> Iterable[int]:
        return processes.wait_any(self._children, timeout_s)

    def _collect(self, key: int) -> Finished:
        launched = self._launched.pop(key)
        code = processes.end_group(self._children.pop(key))
        os.close(key)
        return launched.finished(code, processes.tail(launched.files.log))

    def _ask_to_stop(self, key: int) -> None:
        signal.pidfd_send_signal(key, signal.SIGTERM)

    def _kill(self, key: int) -> None:
        self._children[key].kill()
