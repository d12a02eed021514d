"""What Ctrl-C does to the program `trialfleet`: exit 130 and no traceback, at any moment."""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  # `CommandExit.INTERRUPTED`: this module is imported before all others, and imports none of ours


def quit_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """Handles SIGINT before and after a command, when nothing needs to be cleaned up."""
    del number, frame
    os.write(2, b"trialfleet: interrupted\n")
    os._exit(INTERRUPTED)


def leave_threads() -> None:
    """Ends the process if threads of an interrupted command still wait for something, as for a store that does not
    answer: the interpreter would wait for them."""
    if all(thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(INTERRUPTED)


class Interrupts:
    """Handles SIGINT during a command: raises `KeyboardInterrupt`, and remembers it, because libraries turn it
    into errors of their own, and the interpreter drops it where it strikes in a destructor."""

    def __init__(self) -> None:
        self.seen = False

    def begin(self) -> None:
        signal.signal(signal.SIGINT, self._raise)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # then the interpreter drops all handlers
        sys.unraisablehook = self._again

    def end(self) -> None:
        signal.signal(signal.SIGINT, quit_at_once)
        # Python ends itself by SIGINT when one struck inside `exec`, as of a dataclass. This resets it.
        exec("")  # noqa: S102

    def _raise(self, number: int, frame: FrameType | None) -> NoReturn:
        del number, frame
        self.seen = True
        raise KeyboardInterrupt

    def _again(self, dropped: sys.UnraisableHookArgs) -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            _thread.interrupt_main()
        else:
            sys.__unraisablehook__(dropped)
