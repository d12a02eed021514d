"""How a dispatcher leaves when it is interrupted: everything open waits for the next one."""

from __future__ import annotations

import time

from trialfleet_controller.backend import Backend
from trialfleet_controller.errands import Errands
from trialfleet_controller.lives import Lives
from trialfleet_controller.steering import Interrupt
from trialfleet_controller.trialbook import At, Trialbook

MOMENT_S = 0.05  # the longest wait for errands: runners end, and people ask again, meanwhile


def stop_children(
    lives: Lives, book: Trialbook, errands: Errands, backend: Backend, interrupt: Interrupt, *, patience_s: float
) -> None:
    """Of a backend whose runners would die with us anyway: they are stopped, and what they say is settled. Asked
    twice, they are killed."""
    until = time.monotonic() + patience_s
    hurried = False
    while (book.count(At.RUNNING) or errands.busy) and time.monotonic() < until:
        if interrupt.now and not hurried:
            hurried = True
            lives.stop(grace_s=0)
        for finished in backend.poll(MOMENT_S):
            lives.finished(finished)
        errands.apply()


def leave_running(errands: Errands, interrupt: Interrupt, *, patience_s: float) -> None:
    """Of runners that outlive us: what has been begun here is ended, unless asked twice: then at once."""
    until = time.monotonic() + patience_s
    while errands.busy and not interrupt.now and time.monotonic() < until:
        errands.apply(MOMENT_S)
