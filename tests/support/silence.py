"""How long a command is silent without a word of what is waited for, also where a machine does other work."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SILENT_S = 5.0  # at most, without a word of what is waited for
_WORDS = (b"waiting for", b"is at work", b" at a time", b" running,")  # of what is waited for


class StarvedTime:
    """Seconds for which a process was ready to run while no core was free for it (`schedstat` of Linux): of its
    threads the one that waited longest, sample by sample. It cannot speak in that time, so that is no silence.
    Children do not count: while one of them is starved, the command can still say so."""

    def __init__(self, process: int) -> None:
        self._tasks, self._waited = Path(f"/proc/{process}/task"), dict[str, int]()
        self.seconds = 0.0

    def sample(self) -> float:
        """The seconds so far; those since the last sample are lost where the process has ended."""
        with suppress(OSError):
            waited = {
                task.name: int((task / "schedstat").read_text().split()[1]) for task in self._tasks.iterdir()
            }
            more = [ns - self._waited.get(task, 0) for task, ns in waited.items()]
            self.seconds += max(more, default=0) / 1e9
            self._waited = waited
        return self.seconds


class Silence:
    """The longest so far: `longest_s`. `starved_s`: seconds, as of `StarvedTime.sample`, that do not count."""

    def __init__(self, starved_s: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._now = lambda: clock() - starved_s()
        self._since, self._explained, self.longest_s = self._now(), False, 0.0

    def hear(self, output: bytes) -> None:
        """`output`: what was said just now; b"" at the end. Silence after a word of a wait is free."""
        now = self._now()
        if not self._explained:
            self.longest_s = max(self.longest_s, now - self._since)
        self._since, self._explained = now, any(word in output for word in _WORDS)
