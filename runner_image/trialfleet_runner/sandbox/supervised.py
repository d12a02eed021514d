"""Starting a program below `supervisor.py`: what the two sandboxes without namespaces share."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from trialfleet_runner.interpreters import interpreters
from trialfleet_runner.sandbox import processes
from trialfleet_runner.sandbox.descriptors import Descriptors
from trialfleet_runner.sandbox.drive import drive, stdin_of
from trialfleet_runner.sandbox.forwarding import FORWARDER, forwarded, not_started
from trialfleet_runner.sandbox.protocol import Exit, Job, SandboxError
from trialfleet_runner.sandbox.watch import Watch

SUPERVISOR = Path(__file__).resolve().with_name("supervisor.py")
_PYTHON = getattr(sys, "_base_executable", None) or sys.executable
_KILLED = 128 + 9
_VERSIONS = ("3.11", "3.12", "3.13")


def wrapped(job: Job, *, other_uid: bool) -> tuple[str, ...]:
    """The job's argv, behind the gateway's forwarder when there is a gateway."""
    if job.gateway is None:
        return job.argv
    python = _python_of_others() if other_uid else _PYTHON
    return forwarded(job, python=python, script=str(FORWARDER), socket=str(job.gateway))


def _python_of_others() -> str:
    for found in interpreters(_VERSIONS, for_other_uid=True):
        return str(found.path)
    raise SandboxError("no Python that the agent's user may execute, for the gateway's forwarder")


@dataclass
class _Hold:
    process: subprocess.Popen[bytes]
    lifeline: int
    status_fd: int
    _said: bytearray = field(default_factory=bytearray)

    def root(self) -> int | None:
        return self.process.pid

    def terminate(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self.lifeline, b"T")

    def kill(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self.lifeline, b"K")

    def settle(self) -> None:
        """The supervisor ends last. Only when the program has killed it are there orphans, and they come to
        us."""
        processes.kill_adopted()

    def said(self) -> dict[str, list[str]]:
        """The supervisor's lines, by first word; some are missing when it was killed."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.status_fd, 4096):
                self._said += chunk
        lines = [line.split(" ") for line in bytes(self._said).decode().splitlines()]
        return {line[0]: line[1:] for line in lines}


def run_supervised(job: Job, uid: int | None) -> Exit:
    """Run `job` on the host's own paths, as `uid` (None: as ourselves). Raises `SandboxError`."""
    with Descriptors() as held, processes.adopting():
        lifeline_read, lifeline = held.pipe()
        status, status_write = held.pipe()
        os.set_blocking(status, False)
        stdin = held.keep(stdin_of(job))
        user = () if uid is None else ("--uid", str(uid))
        told = ("--lifeline", str(lifeline_read), "--status", str(status_write), *user, "--cwd", job.cwd)
        watch = Watch(job)
        try:
            process = subprocess.Popen(
                [_PYTHON, "-I", "-S", str(SUPERVISOR), *told, "--", *wrapped(job, other_uid=uid is not None)],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=job.env,
                pass_fds=(lifeline_read, status_write),
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(f"{_PYTHON}: {error}") from error
        held.close(lifeline_read, status_write, stdin)
        hold = _Hold(process, lifeline, status)
        processes.own(process.pid)
        try:
            ended = drive(job, process, hold, watch)
        finally:
            processes.disown(process.pid)
        said = hold.said()
    if "started" not in said and ended.cause is None:
        raise SandboxError(f"could not start {' '.join(said.get('error', [job.argv[0]]))}")
    code, core_s = said.get("exit", [str(_KILLED), "0"])
    why = not_started(job, int(code))
    if why is not None:
        raise SandboxError(f"could not start {why}")
    cause = ended.cause or watch.afterwards(killed_unasked=int(code) == _KILLED)
    return Exit(int(code), cause or "itself", ended.wall_s, max(float(core_s), ended.core_s))
