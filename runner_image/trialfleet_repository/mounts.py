"""Where an attempt's folders appear to its agent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trialfleet_repository.testrun import mounts_of
from trialfleet_sandbox.protocol import Mount, Sandbox, inside, placed
from trialfleet_sandbox.scratch import Scratch

CONTEXT = "/opt/trialfleet/context"


@dataclass(frozen=True)
class MountedScratch:
    """A scratch folder seen through a sandbox."""

    scratch: Scratch
    sandbox: Sandbox
    mounts: tuple[Mount, ...]

    @property
    def gateway_socket(self) -> Path | None:
        """Where the gateway must listen for the agent; None: on loopback, because the network is shared."""
        return self.scratch.socket if self.sandbox.capabilities.isolates_network else None

    def inside(self, path: Path) -> str:
        return inside(path, self.mounts)


def place_of(scratch: Scratch, environment: Path, sandbox: Sandbox, *, hook: bool) -> MountedScratch:
    """Workspace and HOME to write; environment, interpreter and the hook's nodes to read; nothing else."""
    mounts = mounts_of(environment, scratch.workspace, scratch.home, sandbox)
    if hook:
        mounts += (placed(sandbox, scratch.context, CONTEXT),)
    return MountedScratch(scratch, sandbox, mounts)
