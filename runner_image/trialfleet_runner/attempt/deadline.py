"""Ends a set-up, which no sandbox ends, and says where an attempt's time went."""

from __future__ import annotations

import json
import resource
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_runner.attempt.loss import Lost


@contextmanager
def within(limit_s: float, stop: threading.Event) -> Generator[None]:
    """The block raises `Lost(setup)` when it takes longer: a package index or a store may hang for ever. SIGTERM
    sets `stop` and raises `Lost(terminated)`.

    Both interrupt blocking calls (a child that was being waited for is killed). In the main thread only.
    """

    def late(*_: object) -> None:
        raise Lost(LossClass.SETUP, f"the set-up took longer than {limit_s:.0f} s")

    def told(*_: object) -> None:
        stop.set()
        raise Lost(LossClass.TERMINATED, "the runner was told to stop during the set-up")

    before = signal.signal(signal.SIGALRM, late), signal.signal(signal.SIGTERM, told)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        if stop.is_set():
            told()
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, before[1])
        signal.signal(signal.SIGALRM, before[0])


def core_s() -> float:
    """CPU time of this process and of its children that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


@dataclass
class Clock:
    """Laps of one process. `given_core_s`: core seconds that belong to agent or tests, not to the harness."""

    began: float = field(default_factory=time.monotonic)
    laps: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    _wall: float = field(default_factory=time.monotonic)
    _core: float = 0.0  # the interpreter's start counts as the first lap's
    _given: float = 0.0

    def lap(self, name: str, given_core_s: float | None = 0.0) -> None:
        """End the step `name`: everything since the last lap."""
        wall, core, given = time.monotonic(), core_s(), given_core_s or 0.0
        self.laps[name] = (wall - self._wall, max(core - self._core - given, 0.0))
        self._wall, self._core, self._given = wall, core, self._given + given

    def wall_s(self) -> float:
        """Since the clock was made."""
        return time.monotonic() - self.began

    def own_core_s(self) -> float:
        """The harness's own core seconds so far."""
        return max(core_s() - self._given, 0.0)

    def json(self) -> str:
        """Step -> {wall_s, core_s}; `core_s` without what agent and tests used."""
        steps = {
            name: {"wall_s": round(wall, 4), "core_s": round(core, 4)} for name, (wall, core) in self.laps.items()
        }
        return json.dumps(steps) + "\n"
