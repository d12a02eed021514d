"""No isolation at all, but nothing survives: for machines without bubblewrap and without root."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trialfleet_runner.sandbox.protocol import Exit, Job, Mount
from trialfleet_runner.sandbox.supervised import run_on_the_host


@dataclass(frozen=True)
class Subreaper:
    """The program runs as ourselves, on the host's paths, below a supervisor that inherits its orphans."""

    name: str = "subreaper"
    warnings: tuple[str, ...] = (
        "no isolation: the program runs as the same user, sees the whole file system (store, caches and task "
        "files included), other processes and the network; read-only mounts are writable; it can kill its "
        "supervisor. Install bubblewrap",
    )

    def path_inside(self, path: Path, mounts: tuple[Mount, ...]) -> str:
        """The same path."""
        del mounts
        return str(path)

    def run(self, job: Job) -> Exit:
        """See `Sandbox.run`."""
        return run_on_the_host(job, uid=None)
