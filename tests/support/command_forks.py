"""Runs commands of `trialfleet` as processes that are forked from one that has imported them.

Imports are most of a short command's core time.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.costs import add_core_seconds
from trialfleet_controller.backends.local.processes import wait_any

CONSOLE = "trialfleet_runner.console"
PROGRAMS = (CONSOLE, "trialfleet_runner.cli")
SERVER = Path(__file__).with_name("command_server.py")
# They take turns: a command and the next one order sets by other hashes, as two that were executed.
SERVERS = 2
# What an interpreter and its libraries read when they start: not what Ray sets for debuggers.
AT_START = re.compile(r"PYTHON(?!BREAKPOINT$)|LC_|LD_|LANG|TZ$|OPENBLAS|OMP|MALLOC|FAKETIME")


class CommandForks:
    """Executes the first call of every command: it then imports by itself what it needs. Forks those that follow,
    unless their environment would make another interpreter."""

    def __init__(self) -> None:
        self._executed: set[tuple[str, ...]] = set()
        self._environment = dict(os.environ)  # nothing of a test, which looks for processes by what these carry
        self._folder = Path.cwd()
        self._servers = deque[_CommandServer]()
        self._lock = threading.Lock()

    def accepts(self, module: str, words: tuple[str, ...], env: Mapping[str, str]) -> bool:
        """Whether the command may be forked. `tests.executed` counts what processes execute that it has seen
        start."""
        command = (module, *words[:1]) if module in PROGRAMS else (module,)
        with self._lock:
            is_first = command not in self._executed
            self._executed.add(command)
        return not (
            is_first or "execution_hook" in sys.modules or _read_at_start(env) != _read_at_start(self._environment)
        )

    def start(
        self,
        module: str,
        words: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        new_session: bool,
        output: int,
        errors: int,
    ) -> ForkedCommand:
        """`output`, `errors`: descriptors."""
        request = {
            "module": module,
            "words": words,
            "cwd": str(cwd),
            "env": dict(env),
            "new_session": new_session,
        }
        with self._lock:
            self._servers.rotate()
            if len(self._servers) < SERVERS:
                self._servers.appendleft(_CommandServer(self._environment, self._folder))
            server = self._servers[0]
        return server.start(request, output, errors)

    def close(self) -> None:
        while self._servers:
            self._servers.pop().close()


class ForkedCommand(NamedTuple):
    """`pidfd` is readable once it has ended, and closed by `wait`."""

    server: _CommandServer
    pid: int
    pidfd: int

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code as subprocess has it; None when it was killed after `timeout_s`."""
        ended = False
        try:
            ended = bool(wait_any([self.pidfd], timeout_s))
        finally:
            if not ended:
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
            os.close(self.pidfd)
            code = self.server.reap(self.pid)
        return code if ended else None


class ForkedProcess:
    """A forked command that runs, with what tests ask of a `subprocess.Popen`. `stderr`: None where it is this
    process's."""

    def __init__(self, command: ForkedCommand, stdout: IO[bytes], stderr: IO[bytes] | None) -> None:
        self.pid, self.stdout, self.stderr = command.pid, stdout, stderr
        self._command = command
        self._code: int | None = None

    def __enter__(self) -> ForkedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float = 600) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._command.pidfd, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout_s: float) -> int | None:
        if self._code is None and wait_any([self._command.pidfd], timeout_s):
            self._code = self._command.server.reap(self.pid)
            os.close(self._command.pidfd)
        return self._code


class _CommandServer:
    """The process that forks, and this end of its socket."""

    def __init__(self, env: Mapping[str, str], cwd: Path) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._core_seconds = 0.0
        with theirs:
            argv = [sys.executable, str(SERVER), str(theirs.fileno())]
            null = subprocess.DEVNULL
            self._process = subprocess.Popen(
                argv, env=env, cwd=cwd, stdin=null, stdout=null, pass_fds=(theirs.fileno(),)
            )

    def start(self, request: dict[str, Any], output: int, errors: int) -> ForkedCommand:
        with tempfile.TemporaryFile("w+", encoding="ascii") as file:
            json.dump(request, file)
            file.seek(0)
            with self._lock:
                socket.send_fds(self._line, [b"start"], [file.fileno(), output, errors])
                pid, descriptors, _, _ = socket.recv_fds(self._line, 64, maxfds=1)
        assert pid, f"{SERVER.name} ended: its errors are those of this process"
        return ForkedCommand(self, int(pid), *descriptors)

    def reap(self, pid: int) -> int:
        with self._lock:
            self._line.send(str(pid).encode())
            code, core_seconds = json.loads(self._line.recv(256))
            self._core_seconds += core_seconds
        add_core_seconds(core_seconds)
        return int(code)

    def close(self) -> None:
        self._line.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        self._process.kill()
        self._process.wait()
        add_core_seconds(-self._core_seconds)  # the system counts them, too


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if AT_START.match(name)}


_shared = CommandForks()  # of this process's session; begun before a test changes its environment


def end_forks() -> None:
    """At the session's end."""
    _shared.close()


def run_command(
    *words: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    module: str = CONSOLE,
    timeout_s: float = 600,
    new_session: bool = False,
) -> subprocess.CompletedProcess[str]:
    """`python -m module words`, with its outputs, as `subprocess.run` has it. `env`: what differs from this
    process's environment. Raises `subprocess.TimeoutExpired`."""
    argv, environ = [sys.executable, "-m", module, *words], {**os.environ, **(env or {})}
    if not _shared.accepts(module, words, environ):
        return subprocess.run(
            argv,
            cwd=cwd,
            env=environ,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            start_new_session=new_session,
        )
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        descriptors = {"output": output.fileno(), "errors": errors.fileno()}
        started = _shared.start(module, words, cwd=cwd, env=environ, new_session=new_session, **descriptors)
        code = started.wait(timeout_s)
        if code is None:
            raise subprocess.TimeoutExpired(argv, timeout_s, _text(output), _text(errors))
        return subprocess.CompletedProcess(argv, code, _text(output), _text(errors))


def start_command(
    *words: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    module: str = CONSOLE,
    pipe_errors: bool = True,
    new_session: bool = False,
) -> subprocess.Popen[bytes] | ForkedProcess:
    """`python -m module words` that runs, with pipes for its outputs. `env`: all of its environment, None: this
    process's. `pipe_errors`: else its errors are this process's."""
    environ = os.environ if env is None else env
    if not _shared.accepts(module, words, environ):
        return subprocess.Popen(
            [sys.executable, "-m", module, *words],
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if pipe_errors else None,
            start_new_session=new_session,
        )
    output, output_end = os.pipe()
    errors, errors_end = os.pipe() if pipe_errors else (None, os.dup(2))
    try:
        started = _shared.start(
            module,
            words,
            cwd=cwd or Path.cwd(),
            env=environ,
            new_session=new_session,
            output=output_end,
            errors=errors_end,
        )
    finally:
        os.close(output_end)
        os.close(errors_end)
    return ForkedProcess(started, os.fdopen(output, "rb"), None if errors is None else os.fdopen(errors, "rb"))


def _text(file: IO[bytes]) -> str:
    """As `text=True` reads a pipe."""
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n").replace("\r", "\n")
