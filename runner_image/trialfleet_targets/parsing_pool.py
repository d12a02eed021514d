"""Parse files in several worker processes, with a time limit per file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from typing import IO

from trialfleet_targets.errors import TargetsError
from trialfleet_targets.parsing_worker import READY
from trialfleet_targets.repository import printable

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
    stopped, workers = threading.Event(), dict[int, _Worker]()

    def work(number: int) -> None:
        worker: _Worker | None = None
        try:
            while not stopped.is_set():
                with lock:
                    item = next(source, None)
                if item is None:
                    return
                worker = workers[number] = worker if worker is not None and worker.alive else _Worker()
                if stopped.is_set():  # while it started
                    return
                answers[item[0]] = worker.ask(*item, timeout_s=timeout_s)
        finally:
            if worker is not None:
                worker.end()

    with ThreadPoolExecutor(processes) as pool:
        try:
            for done in [pool.submit(work, number) for number in range(processes)]:
                done.result()
        except BaseException:  # Ctrl-C, too: the pool waits for its threads
            stopped.set()
            for worker in list(workers.values()):
                worker.kill()
            raise
    return answers


class _Worker:
    """One process. It ends when the connection closes, so it never outlives this one."""

    def __init__(self) -> None:
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._connection, other = Pipe()
        with other:
            self._process = subprocess.Popen(
                (sys.executable, "-P", "-m", "trialfleet_targets.parsing_worker", str(other.fileno())),
                stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output, cwd="/", env=_environment(),
                pass_fds=(other.fileno(),),
            )  # fmt: skip
        self.alive = True
        if self._answer(START_TIMEOUT_S) != READY:
            self.end()
            self._output.seek(0)
            lines = self._output.read()[-2000:].decode(errors="replace").strip().splitlines()
            raise TargetsError(
                f"the parser does not start: {printable(lines[-1] if lines else 'no error output')}"
            )

    def ask(self, path: str, data: bytes, *, timeout_s: float) -> bytes:
        """The worker's answer. The worker is dead after `TIMED_OUT` and `CRASHED`."""
        try:
            for part in (os.fsencode(path), data):
                self._connection.send_bytes(part)
            answer = self._answer(timeout_s)
        except OSError:
            answer = CRASHED
        if answer in (TIMED_OUT, CRASHED):
            self.end()
        return answer

    def kill(self) -> None:
        """End what it does now, from any thread."""
        self._process.kill()

    def end(self) -> None:
        """Kill and reap the process."""
        self.alive = False
        self.kill()
        self._process.wait()
        self._connection.close()

    def _answer(self, timeout_s: float) -> bytes:
        try:
            return self._connection.recv_bytes() if self._connection.poll(timeout_s) else TIMED_OUT
        except (EOFError, OSError):
            return CRASHED


def _environment() -> dict[str, str]:
    """One BLAS thread, and the import path of this process."""
    found = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": found, "OPENBLAS_NUM_THREADS": "1"}
