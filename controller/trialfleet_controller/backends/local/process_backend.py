"""Runners as children of this process: the local backend without Ray."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

from trialfleet_controller.backends.local import processes
from trialfleet_controller.backends.local.local_runners import Launched, RunnersHere
from trialfleet_controller.backends.protocol import Finished, Order


class ProcessBackend(RunnersHere):
    """Use from the main thread: children die with the thread that started them. `runner`: as in `RunnersHere`."""

    def __init__(self, *, slots: int, runner: Sequence[str] | None = None, work: Path | None = None) -> None:
        super().__init__(slots=slots, work=work)
        self._launcher = processes.create_launcher(runner, self._work.path)
        self._children: dict[int, processes.RunnerProcess] = {}  # by pidfd, as `_launched`

    def launch(self, order: Order) -> None:
        files = self._work.files(order)
        child = self._launcher.start(files.grants, files.log, last_words=files.last_words)
        self._children[child.pidfd] = child
        self._launched[child.pidfd] = Launched(order.id, files)

    def close(self) -> None:
        for fd in self._children:
            self._kill(fd)
        for fd in list(self._children):
            self._collect(fd)
        self._launcher.close()
        self._work.close()

    def _over(self, timeout_s: float) -> Iterable[int]:
        return processes.wait_any(self._children, timeout_s)

    def _collect(self, key: int) -> Finished:
        launched = self._launched.pop(key)
        code = self._children.pop(key).reap()
        return launched.finished(code, processes.tail(launched.files.log))

    def _ask_to_stop(self, key: int) -> None:
        processes.send_signal(key, signal.SIGTERM)

    def _kill(self, key: int) -> None:
        processes.send_signal(key, signal.SIGKILL)
