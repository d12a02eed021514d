"""The volumes of a pod, as every container of it sees them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from trialfleet_runner.attempt.scratch import Scratch
from trialfleet_runner.cache import Cache


@dataclass(frozen=True)
class Volumes:
    """Folders below one root. `agent` and its gate are mounted in the agent's container, `score` and its gate in
    the scoring one, all of them in the runner's; a gate is read-only but for the runner."""

    root: Path

    @classmethod
    def here(cls) -> Volumes:
        """`$TRIALFLEET_ROOT`, or /trialfleet."""
        return cls(Path(os.environ.get("TRIALFLEET_ROOT", "/trialfleet")))

    def gate(self, role: str) -> Path:
        return self.root / f"{role}-gate"

    @property
    def cache(self) -> Cache:
        return Cache(self.root / "runner" / "cache")

    def scratch(self) -> Scratch:
        """The attempt's own: a pod runs one, so that everything is new."""
        scratch = Scratch(
            runner=self.root / "runner",
            agent=self.root / "agent",
            shown=self.gate("agent"),
            scorer=self.root / "score",
        )
        for folder in (scratch.runner, scratch.agent, scratch.shown, scratch.scorer):
            folder.mkdir(mode=0o711, exist_ok=True)
        scratch.record.mkdir(mode=0o700)
        return scratch
