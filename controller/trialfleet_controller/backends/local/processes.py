"""Starts a runner as a process that dies with its parent, and watches it exit."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from trialfleet_ledger.records.verdicts import MESSAGE_CHARS
from trialfleet_runner.attempt.parent import LAST_WORDS, PARENT

RUNNER = (sys.executable, "-m", "trialfleet_runner.attempt")


def start(argv: Sequence[str], log: Path, *, last_words: Path | None = None) -> subprocess.Popen[bytes]:
    """Start the runner `argv` in a new session; its output is appended to the file `log`. `last_words`: where it
    leaves its end when it is told to stop; None: it commits that end itself.

    It has the kernel kill it when the calling thread ends, by SIGKILL too (`attempt.parent`), so call this from a
    thread that lives as long as the runner should.
    """
    words = {} if last_words is None else {LAST_WORDS: str(last_words)}
    with log.open("ab") as out:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # the terminal's Ctrl-C is for the controller, which then decides
            env={**os.environ, PARENT: str(os.getpid()), **words},
        )


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
            file.seek(max(0, log.stat().st_size - 4 * MESSAGE_CHARS))
            return file.read().decode(errors="replace")[-MESSAGE_CHARS:]
    except FileNotFoundError:
        return ""
