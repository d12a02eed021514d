"""The loop that all sandboxes share: it writes output to files, enforces limits and ends the program."""

from __future__ import annotations

import os
import selectors
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trialfleet_ledger.store.full_disk import is_full
from trialfleet_sandbox.protocol import Job
from trialfleet_sandbox.watch import Cause, LimitWatch


class Descriptors:
    """Owns descriptors until they are closed here, at the latest at the end of the `with` block."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def keep(self, *fds: int) -> int:
        """Take these over; returns the first."""
        self._open.update(fds)
        return fds[0]

    def pipe(self) -> tuple[int, int]:
        """A new pipe: read end, write end."""
        read_end, write_end = os.pipe()
        self.keep(read_end, write_end)
        return read_end, write_end

    def close(self, *fds: int) -> None:
        for fd in fds:
            self._open.discard(fd)
            os.close(fd)

    def __enter__(self) -> Descriptors:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(*self._open.copy())


HEAD_BYTES = 64 * 2**20
TAIL_BYTES = 2**20


class CappedFile:
    """Appends up to `head` bytes as they arrive; of what follows it keeps the last `tail` bytes for `close`.

    The tail matters: the last line of a stream of JSON events is often the one that holds the totals.
    """

    def __init__(self, path: Path, *, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("ab", buffering=0)
        self._room = head
        self._head = head
        self._tail_bytes = tail
        self._tail = bytearray()
        self._dropped = 0

    def write(self, data: bytes) -> None:
        """Append what there is room for."""
        fits, rest = data[: self._room], data[self._room :]
        if fits:
            written = self._append(fits)
            self._room -= len(fits)
            if written < len(fits):  # a full disk is judged elsewhere, by its limit; output continues
                self._room, rest = 0, fits[written:] + rest
        if rest:
            self._tail += rest
            over = len(self._tail) - self._tail_bytes
            if over > 0:
                del self._tail[:over]
                self._dropped += over

    def close(self) -> None:
        if self._dropped:
            note = f"\n[trialfleet: {self._dropped} bytes left out after the first {self._head}]\n"
            self._append(note.encode())
        if self._tail:
            self._append(bytes(self._tail))
        self._file.close()

    def _append(self, data: bytes) -> int:
        """How many bytes found room."""
        try:
            return self._file.write(data)
        except OSError as error:
            if not is_full(error):
                raise
            return 0


TICK_S = 0.1
CHUNK = 2**16
DRAIN_S = 2.0


@dataclass(frozen=True)
class Hold(ABC):
    """What the loop may do to a started program, over its supervisor's lifeline."""

    lifeline: int

    def root(self) -> int | None:
        """The process below which the program's tree hangs; None while it is not known, or not seen from here."""
        return None

    def terminate(self) -> None:
        self._tell(b"T")

    def kill(self) -> None:
        """SIGKILL to everything."""
        self._tell(b"K")

    @abstractmethod
    def insist(self) -> None:
        """Called often after `kill`, until the outer process has ended."""

    @abstractmethod
    def settle(self) -> None:
        """Called when the outer process has ended or was told to; returns when no process of the job lives."""

    def _tell(self, word: bytes) -> None:
        with suppress(BrokenPipeError):
            os.write(self.lifeline, word)


@dataclass(frozen=True)
class Outer:
    """The outermost process of a job, as descriptors: its output, and one that is readable once it has ended. The
    caller closes them."""

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
    return os.open(os.devnull, os.O_RDONLY) if job.stdin is None else memory_file("stdin", job.stdin)


def memory_file(name: str, data: bytes) -> int:
    """A descriptor that reads as `data`, to be closed by the caller."""
    fd = os.memfd_create(name)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
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


def drive(job: Job, outer: Outer, hold: Hold, watch: LimitWatch) -> Ended:
    """Run the started job to its end and leave nothing alive.

    SIGTERM, `grace_s`, SIGKILL; for memory and disk SIGKILL at once, because growth would continue in the grace.
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
    job: Job, selector: selectors.BaseSelector, pumps: _Pumps, hold: Hold, watch: LimitWatch
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
                watch.sample(root)  # the last sample of the CPU time, before the kill
            kill_at = time.monotonic()
            if cause in ("timeout", "stopped"):
                hold.terminate()
                kill_at += job.grace_s
        if kill_at is None:
            hold.insist()
        elif time.monotonic() >= kill_at:
            hold.kill()
            kill_at = None


def _drain(selector: selectors.BaseSelector, pumps: _Pumps) -> None:
    """Read what is still in the pipes. All writers are dead, so this ends; the time limit is for a descriptor that
    was passed out of the sandbox over a socket. The pipes are read at least once, even if the time is over: this
    process may have been delayed, and a pipe holds at most one chunk."""
    until = time.monotonic() + DRAIN_S
    while not pumps.done:
        late = time.monotonic() >= until
        for key, _ in selector.select(TICK_S):
            pumps.move(key.data)
        if late:
            return
