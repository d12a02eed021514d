"""Signals by which an operator, or what operates in their place, stops a controller."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from trialfleet_controller.dispatch.stop_conditions import Interrupt

_HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Generator[Interrupt]:
    """SIGINT, SIGTERM and SIGHUP set it; the handlers are restored afterwards. SIGHUP: the terminal was closed, or
    its connection lost, so nobody waits for running trials. A process that was started to ignore it (nohup) goes
    on."""
    interrupt, on_terminal = Interrupt(), [fd for fd in (0, 1, 2) if os.isatty(fd)]

    def ask(number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGINT:
            interrupt.ask()
            return
        if number == signal.SIGHUP:
            _leave_terminal(on_terminal)
        interrupt.hurry()

    heeded = [one for one in _HEEDED if one != signal.SIGHUP or signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in heeded}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave_terminal(opened: list[int]) -> None:
    """`opened`: on the terminal. What is printed to a closed one fails, and would end the controller before its
    runners have ended."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in opened:
        os.dup2(nowhere, fd)
    os.close(nowhere)
