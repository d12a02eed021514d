"""Whether a job's program was executed, and why not.

The last program of ours before it says so over a pipe that is closed when the program is executed, or before: the
supervisor (its status line), bubblewrap (its status messages) or the gateway's forwarder (`report` here).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trialfleet_sandbox.interpreter import last_line
from trialfleet_sandbox.processes import read_available
from trialfleet_sandbox.protocol import InterpreterMissing, Job, SandboxError
from trialfleet_sandbox.watch import Cause

_EXECUTING = b"R"
_FIRST_LINE_BYTES = 4096


@dataclass(frozen=True)
class StartReport:
    """The runner's end of the forwarder's pipe; `fd` None: the job has no forwarder."""

    fd: int | None

    def failure(self, job: Job, cause: Cause | None) -> str | None:
        """Why the forwarder did not execute the program; None: it did, there is no forwarder, or `cause`, which
        ended the job, is neither the job itself nor its time limit: the program cannot spend time before it is
        executed."""
        if self.fd is None or cause not in (None, "timeout"):
            return None
        os.set_blocking(self.fd, False)
        said = read_available(self.fd)
        if not said.startswith(_EXECUTING):
            how = "ended before it" if cause is None else "did not execute it within the time limit"
            return f"the gateway's forwarder {how}: {last_line(job.stderr)}"
        return said.removeprefix(_EXECUTING).decode(errors="replace") or None


def start_failure(job: Job, why: str, wall_s: float) -> SandboxError:
    """What to raise when the program was not executed, for the reason `why`."""
    line = _missing_interpreter(job) if _is_of_program(job, why) else None
    if line is None:
        return SandboxError(f"could not start {job.argv[0]}: {why}")
    message = f"could not start {job.argv[0]}: its first line names an interpreter that is not there: {line}"
    return InterpreterMissing(message, wall_s)


def _is_of_program(job: Job, why: str) -> bool:
    """Whether `why` is "no such file" from executing the job's program: the forwarder, which executes nothing
    else, says it alone; the supervisor and bubblewrap name what they execute: it may be the forwarder's Python."""
    name, absent = job.argv[0], os.strerror(2)
    return why == absent or (absent in why and why.startswith((f"{name}: ", f"bwrap: execvp {name}: ")))


def _missing_interpreter(job: Job) -> str | None:
    """The first line of a program that is there, as is its folder: "no such file" is then about what that line
    names."""
    if not _on_the_host(job, job.cwd).is_dir():
        return None
    for path in _candidates(job):
        if path.is_file() and os.access(path, os.X_OK):
            with path.open("rb") as file:
                line = file.readline(_FIRST_LINE_BYTES)
            return line.decode(errors="replace").strip() if line.startswith(b"#!") else None
    return None


def _candidates(job: Job) -> list[Path]:
    """Where the host has the program, in the order in which it is looked up."""
    name = job.argv[0]
    if "/" in name:
        return [_on_the_host(job, str(PurePosixPath(job.cwd, name)))]
    folders = [folder for folder in job.env.get("PATH", "").split(":") if folder]
    return [_on_the_host(job, f"{folder}/{name}") for folder in folders]


def _on_the_host(job: Job, path: str) -> Path:
    """The reverse of `inside`: the host's path of what the program sees at `path`."""
    holding = [mount for mount in job.mounts if PurePosixPath(path).is_relative_to(mount.target)]
    if not holding:
        return Path(path)
    deepest = max(holding, key=lambda mount: len(PurePosixPath(mount.target).parts))
    return deepest.source / PurePosixPath(path).relative_to(deepest.target)
