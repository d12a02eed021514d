"""Asking a program of this machine: what it prints counts only when it ends with exit code 0."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_WORDS = 300  # characters of what a program prints about its failure


@dataclass(frozen=True)
class ChildOutput:
    """What a program printed."""

    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Of stdout, then stderr."""
        return (self.stdout + self.stderr).decode(errors="replace")


@dataclass(frozen=True)
class ChildFailure:
    """Why a program gave no output that counts. `command`: as it was called. `reason`: its exit code or signal,
    and the beginning of what it printed."""

    command: str
    reason: str

    def __str__(self) -> str:
        return f"`{self.command}` {self.reason}"


def python_module(name: str) -> tuple[str, ...]:
    """Words that start a module of ours with this interpreter. `-P`: the current folder, which may be a repository
    of somebody else, has no say in what it imports."""
    return (sys.executable, "-P", "-m", name)


def run_program(
    argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, stdin: bytes = b"", timeout_s: float = 60
) -> ChildOutput | ChildFailure:
    """The program's output, or why there is none: it does not start, takes too long, or its exit code is not 0.
    Its working directory is `/`.

    >>> run_program(("sh", "-c", "echo 1.2")).stdout
    b'1.2\\n'
    >>> str(run_program(("sh", "-c", "echo no toolchain >&2; exit 3")))
    '`sh -c echo no toolchain >&2; exit 3` ends with exit code 3: no toolchain'
    """
    command = " ".join(map(str, argv))
    try:
        ended = subprocess.run(
            tuple(argv), input=stdin, env=env, cwd="/", capture_output=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return ChildFailure(command, f"takes longer than {timeout_s:.0f} s")
    except OSError as error:
        return ChildFailure(command, f"does not start: {error.strerror or error}")
    if ended.returncode == 0:
        return ChildOutput(ended.stdout, ended.stderr)
    how = f"exit code {ended.returncode}" if ended.returncode > 0 else f"signal {-ended.returncode}"
    words = " ".join((ended.stderr or ended.stdout).decode(errors="replace").split())
    return ChildFailure(command, f"ends with {how}" + (f": {words[:_WORDS]}" if words else ""))
