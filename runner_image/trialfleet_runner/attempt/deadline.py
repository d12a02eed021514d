"""Ends to the part of an attempt that no sandbox ends: its set-up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

from trialfleet_runner.attempt.loss import Lost
from trialfleet_runner.contract import LossClass


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
