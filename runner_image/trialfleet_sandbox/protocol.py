"""The Protocol of sandboxes: a program sees only what it is given, and nothing of it outlives the job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, Protocol


@dataclass(frozen=True)
class Mount:
    """`source` of the host appears at `target`, which is the same path unless the sandbox maps paths."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class Job:
    """One program in a sandbox. Paths in `argv`, `env` and `cwd` are as the program sees them.

    `gateway`: a unix socket of the host that appears inside as loopback port `gateway_port`; there is no other
    network. `stdout`/`stderr`: files of the host, appended as output arrives. `memory_bytes` limits the memory of
    the whole process tree, `disk_bytes` the growth of the writable mounts, `inodes` that of their files and
    folders.
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
    inodes: int | None = None
    grace_s: float = 5.0
    on_output: Callable[[bytes], None] | None = None  # each chunk of stdout, from a thread of the sandbox
    extra_time_s: Callable[[], float] = field(default=lambda: 0.0)  # throttled time so far: added to the budget
    stop: threading.Event = field(default_factory=threading.Event)  # set by another thread to end the program now
    followed: bool = False  # another job follows in the same sandbox
    network: bool = (
        False  # the machine's own network: to fetch what an environment is built of, never for an agent
    )


@dataclass(frozen=True)
class Exit:
    """How the program ended. `cause`: why the sandbox ended it; "itself": it exited by itself. `peak_bytes`: most
    memory of its tree in a sample, or of one of its processes at any time; None: not measured."""

    code: int
    cause: Literal["itself", "timeout", "memory", "disk", "stopped"]
    wall_s: float
    core_s: float | None
    peak_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SandboxCapabilities:
    """What a sandbox does that other code depends on.

    `maps_paths`: the program sees each mount at its target (`/workspace`) and nothing else of the host; otherwise
    paths are the same inside and outside. `isolates_network`: the program has no network but `Job.gateway`.
    `hides_host_folders`: folders above the workspace are not visible. `other_uid`: the program runs as another
    user, so the modes of files and folders decide what it may read. `separate_container`: the program runs in
    another container of the pod. It sees the environments of the image alone, no mount is read-only, and its CPU
    time is in the account of that container.
    """

    maps_paths: bool = False
    isolates_network: bool = False
    hides_host_folders: bool = False
    other_uid: bool = False
    separate_container: bool = False

    @property
    def protects_environment(self) -> bool:
        """Whether no program in it can write to a mount that is not writable."""
        return self.maps_paths and not self.separate_container


class Sandbox(Protocol):
    """Bubblewrap, another uid, a plain subreaper, or another container: one contract suite. `name` is for records
    and messages; decisions ask `capabilities`."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> SandboxCapabilities: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...

    def run(self, job: Job) -> Exit:
        """Run the job to its end. When this returns or the caller dies, also by SIGKILL, no process of the job
        lives. Raises `SandboxError` if the program could not be started."""
        ...


def placed(sandbox: Sandbox, source: Path, target: str, *, writable: bool = False) -> Mount:
    """`source` at `target` where the sandbox maps paths, else at its own path."""
    return Mount(source, target if sandbox.capabilities.maps_paths else str(source), writable)


def inside(path: Path, mounts: tuple[Mount, ...]) -> str:
    """The path that the program sees for a host path: through the deepest mount that holds it.

    A path that no mount holds raises `ValueError`: the program could not see it.

    >>> inside(Path("/s/ws/a.py"), (Mount(Path("/s/ws"), "/workspace", writable=True), Mount(Path("/s"), "/s")))
    '/workspace/a.py'
    """
    holding = [mount for mount in mounts if path.is_relative_to(mount.source)]
    if not holding:
        raise ValueError(f"{path} is in no mount")
    deepest = max(holding, key=lambda mount: len(mount.source.parts))
    return str(PurePosixPath(deepest.target) / path.relative_to(deepest.source))


class SandboxError(Exception):
    """The sandbox itself failed: an infrastructure loss, never the agent's failure."""


class ContainerDied(SandboxError):
    """The container of the job ended with it, killed from outside: for its memory limit, or by its node."""


class MachineMemoryLow(SandboxError):
    """The kernel killed the program for memory that the machine lacked: the program was within its limit."""


class InterpreterMissing(SandboxError):
    """The job's program is there, and the interpreter that its first line names is not: for an agent, an error of
    its own start. `wall_s`: until then."""

    def __init__(self, message: str, wall_s: float) -> None:
        super().__init__(message)
        self.wall_s = wall_s
