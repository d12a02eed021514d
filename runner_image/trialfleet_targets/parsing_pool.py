"""Several files parsed at a time, each within its time."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import IO

from trialfleet_targets.errors import TargetsError
from trialfleet_targets.parsing_worker import LENGTH, READY
from trialfleet_targets.repository import plain

PROCESSES = 2
FILE_TIMEOUT_S = 20.0
START_TIMEOUT_S = 60.0
FEW = 50  # files that one process has parsed before a second one has started

TIMED_OUT, CRASHED = b"time-out", b"the parser crashed"


def parse_all(
    files: Iterable[tuple[str, bytes]], *, processes: int = PROCESSES, timeout_s: float = FILE_TIMEOUT_S
) -> dict[str, bytes]:
    """Path -> facts as `encoding` writes them, or `TIMED_OUT` or `CRASHED`. `files` is read as they are parsed.

    Raises `TargetsError` when the grammars are not installed.
    """
    source, lock, answers = iter(files), threading.Lock(), dict[str, bytes]()

    def work(_: int) -> None:
        worker: _Worker | None = None
        try:
            while True:
                with lock:
                    item = next(source, None)
                if item is None:
                    return
                worker = worker if worker is not None and worker.alive else _Worker()
                answers[item[0]] = worker.ask(*item, timeout_s=timeout_s)
        finally:
            if worker is not None:
                worker.end()

    with ThreadPoolExecutor(processes) as pool:
        for done in [pool.submit(work, number) for number in range(processes)]:
            done.result()
    return answers


class _Worker:
    """One process. It ends when its standard input does, so it never outlives this one."""

    def __init__(self) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            (sys.executable, "-P", "-m", "trialfleet_targets.parsing_worker"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, cwd="/", env=_environment(),
        )  # fmt: skip
        self.alive = True
        if self._answer(START_TIMEOUT_S) != READY:
            self.end()
            self._said.seek(0)
            said = self._said.read()[-2000:].decode(errors="replace").strip().splitlines()
            raise TargetsError(f"the parser does not start: {plain(said[-1] if said else 'it said nothing')}")

    def ask(self, path: str, data: bytes, *, timeout_s: float) -> bytes:
        """Its answer; afterwards it is dead when that was no facts."""
        assert self._process.stdin is not None
        name = os.fsencode(path)
        try:
            for part in (LENGTH.pack(len(name)), name, LENGTH.pack(len(data)), data):
                self._process.stdin.write(part)
            self._process.stdin.flush()
        except BrokenPipeError:
            self.end()
            return CRASHED
        answer = self._answer(timeout_s)
        if answer in (TIMED_OUT, CRASHED):
            self.end()
        return answer

    def end(self) -> None:
        """Killed and reaped."""
        self.alive = False
        self._process.kill()
        with contextlib.suppress(BrokenPipeError), self._process:  # closes both pipes, and what is unsent is lost
            pass

    def _answer(self, timeout_s: float) -> bytes:
        assert self._process.stdout is not None
        descriptor, deadline = self._process.stdout.fileno(), time.monotonic() + timeout_s
        parts: list[bytes] = []
        wanted, whole = LENGTH.size, False
        while True:
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return TIMED_OUT
            got = os.read(descriptor, min(wanted, 1 << 20))
            if not got:
                return CRASHED
            parts.append(got)
            wanted -= len(got)
            if wanted == 0 and whole:
                return b"".join(parts)
            if wanted == 0:
                wanted, whole, parts = LENGTH.unpack(b"".join(parts))[0], True, []


def _environment() -> dict[str, str]:
    """No BLAS threads, no bytecode beside a read-only installation; where this process finds the package."""
    found = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": found, "OPENBLAS_NUM_THREADS": "1"}
