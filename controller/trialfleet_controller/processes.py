"""Starting a runner as a process that dies with its parent, and watching it go."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from trialfleet_controller.classify import MESSAGE_LIMIT

RUNNER = (sys.executable, "-m", "trialfleet_runner.attempt")

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def start(argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own, output appended to `log`.

    The kernel kills it when the calling thread ends, by SIGKILL too, so call it from a thread that lives as long
    as the process should.
    """
    with log.open("ab") as out:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # the terminal's Ctrl-C is for the controller, which then decides
            preexec_fn=_dies_with(os.getpid()),
        )


def _dies_with(parent: int) -> Callable[[], None]:
    def before_exec() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return before_exec


def end_group(process: subprocess.Popen[bytes]) -> int:
    """Kill what is left of an ended process's session, reap it, return its code. Call before it is reaped: until
    then its number cannot be reused."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def wait_any(pidfds: Iterable[int], timeout_s: float) -> set[int]:
    """Which of these processes have ended; waits up to `timeout_s` for the first."""
    poller = select.poll()
    for fd in pidfds:
        poller.register(fd, select.POLLIN)
    return {fd for fd, _ in poller.poll(max(0.0, timeout_s) * 1000)}


def tail(log: Path) -> str:
    """The last words of a runner; empty when it left none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4 * MESSAGE_LIMIT))
            return file.read().decode(errors="replace")[-MESSAGE_LIMIT:]
    except FileNotFoundError:
        return ""
