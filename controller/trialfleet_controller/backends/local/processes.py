"""Starts a runner as a process that dies with its parent, and watches it exit."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from trialfleet_ledger.child_program import python_module
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.local_launch import LARGEST_MESSAGE, LAST_WORDS, PARENT, ForkRequest
from trialfleet_ledger.records.verdicts import MESSAGE_CHARS

# The fork server takes milliseconds, and a second of imports before its first answer; a full machine gives it a
# fraction of a core. One that has died is noticed at once.
ANSWER_S = 300.0
ENDS_WITHIN_S = 60.0
FORK_SERVER = python_module("trialfleet_runner.attempt.fork_server")


class RunnerProcess(Protocol):
    """A runner that was started. `pidfd` is readable once it has ended, and closed by `reap`."""

    @property
    def pid(self) -> int: ...

    @property
    def pidfd(self) -> int: ...

    def reap(self) -> int | None:
        """Kill what is left of its session, when it has ended; its exit code, None if nobody saw it."""
        ...


class RunnerLauncher(Protocol):
    """Starts runners of one kind. They die with the thread that called it: it should live as long as they."""

    def start(self, grants: Path, log: Path, *, last_words: Path | None = None) -> RunnerProcess:
        """Start the runner of the file `grants` in a new session; its output is appended to the file `log`.
        `last_words`: where it leaves its end when it is told to stop; None: it commits that end itself."""
        ...

    def close(self) -> None: ...


class CommandLauncher:
    """Executes a command for each runner, with the path of its grants as the last argument."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)

    def start(self, grants: Path, log: Path, *, last_words: Path | None = None) -> RunnerProcess:
        words = {} if last_words is None else {LAST_WORDS: str(last_words)}
        with log.open("ab") as out:
            return _ExecutedRunner(
                subprocess.Popen(
                    (*self._command, str(grants)),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,  # the terminal's Ctrl-C is for the controller, which then decides
                    env={**os.environ, PARENT: str(os.getpid()), **words},
                )
            )

    def close(self) -> None:
        return


class _ExecutedRunner:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid, self.pidfd = process.pid, os.pidfd_open(process.pid)

    def reap(self) -> int:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # before it is reaped: until then its number cannot be reused
        os.close(self.pidfd)
        return self._process.wait()


class ForkLauncher:
    """Forks runners from a process that has imported what they need (`attempt.fork_server`). It starts with the
    first runner, and another when it has died: its runners died with it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._server: _ForkServer | None = None

    def begin(self) -> None:
        """Start the process now, so that it imports while the caller does something else."""
        if self._server is None:
            self._server = _ForkServer(self._log)

    def start(self, grants: Path, log: Path, *, last_words: Path | None = None) -> RunnerProcess:
        launch = ForkRequest(str(grants), None if last_words is None else str(last_words))
        with log.open("ab") as out:
            for _ in range(2):
                self.begin()
                assert self._server is not None
                try:
                    return self._server.start(launch, out.fileno())
                except (ConnectionError, TimeoutError):
                    self.close()
                except OSError:  # no process is free; the server goes on
                    raise
                except BaseException:  # nobody knows a runner that it has started meanwhile
                    self.close()
                    raise
        raise OperatorError(
            f"the process that starts runners ends at once: {tail(self._log).strip() or 'no error output'}",
            where=FORK_SERVER[0],
            hint="the installation is damaged, or its memory is limited: fix what the message names",
        )

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._server = None


class _ForkServer:
    def __init__(self, log: Path) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.settimeout(ANSWER_S)
        with theirs, log.open("ab") as out:
            self._process = subprocess.Popen(
                (*FORK_SERVER, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, PARENT: str(os.getpid())},
            )

    def start(self, launch: ForkRequest, log: int) -> RunnerProcess:
        socket.send_fds(self._line, [launch.encode()], [log])
        pid, descriptors, _, _ = socket.recv_fds(self._line, LARGEST_MESSAGE, maxfds=1)
        if not pid:
            raise ConnectionResetError
        if not descriptors:
            raise OSError(int(pid), os.strerror(int(pid)))
        return _ForkedRunner(self, int(pid), *descriptors)

    def reap(self, pid: int) -> int | None:
        with suppress(OSError):  # it has died, or was closed
            self._line.send(str(pid).encode())
            if code := self._line.recv(LARGEST_MESSAGE):
                return int(code)
        return None

    def close(self) -> None:
        self._line.close()
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:  # somebody has stopped it
            self._process.kill()
            self._process.wait()


class _ForkedRunner:
    def __init__(self, server: _ForkServer, pid: int, pidfd: int) -> None:
        self._server = server
        self.pid, self.pidfd = pid, pidfd

    def reap(self) -> int | None:
        os.close(self.pidfd)
        return self._server.reap(self.pid)


def create_launcher(command: Sequence[str] | None, folder: Path) -> RunnerLauncher:
    """That of `command`; None: runners are forked by a process that starts now, with its log in `folder`."""
    if command is not None:
        return CommandLauncher(command)
    forks = ForkLauncher(folder / "fork-server.log")
    forks.begin()
    return forks


def send_signal(pidfd: int, number: signal.Signals) -> None:
    """To a runner, if it is still there: one that was forked vanishes with its server."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)


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
