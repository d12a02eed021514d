"""Running a program that must not see or outlive more than it is given."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol


@dataclass(frozen=True)
class Mount:
    """`source` of the host appears at `target`."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class Job:
    """One program in a sandbox. Paths in `argv`, `env` and `cwd` are as the program sees them.

    `gateway`: a unix socket of the host that appears inside as loopback port `gateway_port`; there is no other
    network. `stdout`/`stderr`: files of the host, appended as output arrives. `memory_bytes` counts the whole
    tree's RSS; `disk_bytes` the growth of the writable mounts.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    mounts: tuple[Mount, ...]
    stdout: Path
    stderr: Path
    timeout_s: float
    stdin: bytes | None = None
    gateway: Path | None = None
    gateway_port: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    grace_s: float = 5.0
    on_output: Callable[[bytes], None] | None = None  # each chunk of stdout, from a thread of the sandbox
    extra_time_s: Callable[[], float] = field(default=lambda: 0.0)  # throttled time so far: added to the budget
    stop: threading.Event = field(default_factory=threading.Event)  # set by another thread: end the program now
    followed: bool = False  # another job comes after it, for a place that else ends with its first


@dataclass(frozen=True)
class Exit:
    """How it ended. `cause` is why the sandbox ended it; "itself" when it exited alone."""

    code: int
    cause: Literal["itself", "timeout", "memory", "disk", "stopped"]
    wall_s: float
    core_s: float | None


class Sandbox(Protocol):
    """Bubblewrap, another uid, or a plain subreaper: one contract suite."""

    @property
    def name(self) -> str: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...

    def run(self, job: Job) -> Exit:
        """Run to the end. When it returns or the caller dies (also by SIGKILL), no process of the job lives.
        Raises `SandboxError` when the program could not be started at all."""
        ...

    def path_inside(self, path: Path, mounts: tuple[Mount, ...]) -> str:
        """Where a host path below one of `mounts` appears inside (without bubblewrap: where it is)."""
        ...


class SandboxError(Exception):
    """The sandbox itself failed: an infrastructure loss, never the agent's failure."""
