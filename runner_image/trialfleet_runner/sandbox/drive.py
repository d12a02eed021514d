"""One loop that every sandbox shares: output to files, limits, and the order in which a program is ended."""

from __future__ import annotations

import os
import selectors
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Protocol

from trialfleet_runner.sandbox.protocol import Job
from trialfleet_runner.sandbox.pump import CappedFile
from trialfleet_runner.sandbox.watch import Cause, Watch

TICK_S = 0.1
CHUNK = 2**16
DRAIN_S = 2.0


class Hold(Protocol):
    """What the loop may do to a started program."""

    def root(self) -> int | None:
        """The process below which the program's tree hangs; None while it is not known."""
        ...

    def terminate(self) -> None:
        """SIGTERM to the program."""
        ...

    def kill(self) -> None:
        """SIGKILL to everything."""
        ...

    def settle(self) -> None:
        """Called when the outer process has ended or was told to; returns when no process of the job lives."""
        ...


@dataclass(frozen=True)
class Outer:
    """The process on which a job hangs, as descriptors: its output, and one that is readable once it has ended.
    The caller closes them."""

    stdout: int
    stderr: int
    ended: int


@dataclass(frozen=True)
class Ended:
    """What the loop saw. `core_s` is the last sample: a lower bound."""

    cause: Cause | None
    wall_s: float
    core_s: float


def stdin_of(job: Job) -> int:
    """A descriptor that reads as `job.stdin`, to be closed by the caller. Memory, not a pipe: a program that
    never reads cannot block us."""
    if job.stdin is None:
        return os.open(os.devnull, os.O_RDONLY)
    fd = os.memfd_create("stdin")
    with open(fd, "wb", closefd=False) as file:
        file.write(job.stdin)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class _Pumps:
    """stdout and stderr of the outer process, into their files."""

    def __init__(self, job: Job, outer: Outer, selector: selectors.BaseSelector) -> None:
        self._job, self._selector = job, selector
        self._files = {"stdout": CappedFile(job.stdout), "stderr": CappedFile(job.stderr)}
        self._open = {"stdout": outer.stdout, "stderr": outer.stderr}
        for name, fd in self._open.items():
            os.set_blocking(fd, False)
            selector.register(fd, selectors.EVENT_READ, name)

    @property
    def done(self) -> bool:
        return not self._open

    def move(self, name: str) -> None:
        """One chunk."""
        try:
            chunk = os.read(self._open[name], CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._selector.unregister(self._open.pop(name))
            return
        self._files[name].write(chunk)
        if name == "stdout" and self._job.on_output is not None:
            self._job.on_output(chunk)

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def drive(job: Job, outer: Outer, hold: Hold, watch: Watch) -> Ended:
    """Run the started job to its end and leave nothing alive.

    SIGTERM, `grace_s`, SIGKILL; for memory and disk SIGKILL at once: a grace would let the growth go on.
    """
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        pumps = stack.enter_context(closing(_Pumps(job, outer, selector)))
        selector.register(outer.ended, selectors.EVENT_READ, "exit")
        try:
            cause = _until_exit(job, selector, pumps, hold, watch)
        except BaseException:
            hold.kill()
            hold.settle()
            raise
        wall_s = time.monotonic() - watch.started
        hold.settle()
        selector.unregister(outer.ended)
        _drain(selector, pumps)
        return Ended(cause, wall_s, watch.core_s)


def _until_exit(
    job: Job, selector: selectors.BaseSelector, pumps: _Pumps, hold: Hold, watch: Watch
) -> Cause | None:
    cause: Cause | None = None
    kill_at: float | None = None
    while True:
        for key, _ in selector.select(TICK_S):
            if key.data == "exit":
                return cause
            pumps.move(key.data)
        if cause is None:
            cause = watch.cause(hold.root())
            if cause is None:
                continue
            root = hold.root()
            if root is not None:
                watch.sample(root)  # the last look at CPU time that a kill would hide
            kill_at = time.monotonic()
            if cause in ("timeout", "stopped"):
                hold.terminate()
                kill_at += job.grace_s
        if kill_at is not None and time.monotonic() >= kill_at:
            hold.kill()
            kill_at = None


def _drain(selector: selectors.BaseSelector, pumps: _Pumps) -> None:
    """What is still in the pipes. Everyone who could write is dead, so this ends; the clock is for a
    descriptor that was passed out of the sandbox over a socket. However late it is, the pipes are read once:
    this process may have been held up, and a chunk is all that a pipe holds."""
    until = time.monotonic() + DRAIN_S
    while not pumps.done:
        late = time.monotonic() >= until
        for key, _ in selector.select(TICK_S):
            pumps.move(key.data)
        if late:
            return
