"""A limit on the part of an attempt that no sandbox limits: its set-up."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager

from trialfleet_runner.attempt.loss import Lost
from trialfleet_runner.contract import LossClass


@contextmanager
def within(limit_s: float) -> Generator[None]:
    """The block raises `Lost(setup)` when it takes longer: a package index or a store may hang for ever.

    Interrupts blocking calls too (a child that was being waited for is killed). In the main thread only.
    """

    def late(*_: object) -> None:
        raise Lost(LossClass.SETUP, f"the set-up took longer than {limit_s:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
