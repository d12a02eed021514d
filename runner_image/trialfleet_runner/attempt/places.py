"""Where an attempt's folders appear to its agent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trialfleet_runner.attempt.scratch import Scratch
from trialfleet_runner.sandbox.protocol import Mount, Sandbox
from trialfleet_runner.testrun import mounts_of

CONTEXT = "/opt/trialfleet/context"


@dataclass(frozen=True)
class Place:
    """A scratch folder seen through a sandbox."""

    scratch: Scratch
    sandbox: Sandbox
    mounts: tuple[Mount, ...]

    @property
    def isolated(self) -> bool:
        """Whether the sandbox has a file system and a network of its own."""
        return self.sandbox.name == "bubblewrap"

    def inside(self, path: Path) -> str:
        """Where a host path appears."""
        return self.sandbox.path_inside(path, self.mounts)


def place_of(scratch: Scratch, environment: Path, sandbox: Sandbox, *, hook: bool) -> Place:
    """Workspace and HOME to write; environment, interpreter and the hook's nodes to read; nothing else."""
    isolated = sandbox.name == "bubblewrap"
    mounts = mounts_of(environment, scratch.workspace, scratch.home, isolated=isolated)
    if hook:
        mounts += (Mount(scratch.context, CONTEXT if isolated else str(scratch.context)),)
    return Place(scratch, sandbox, mounts)
