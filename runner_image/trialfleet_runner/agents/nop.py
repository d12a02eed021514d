"""`nop`: does nothing. Its solve rate must be 0, or the tests do not show the bug."""

from __future__ import annotations

from pathlib import Path

from trialfleet_runner.agents.protocol import Identity, Parsed, Setup
from trialfleet_runner.canonical import digest
from trialfleet_runner.contract import AgentSpec, Stop
from trialfleet_runner.sandbox.protocol import Exit, Job, Mount


class Nop:
    kind = "nop"

    def identify(self, spec: AgentSpec) -> Identity:
        return Identity(kind=self.kind, version="1", digest=digest({"kind": self.kind, "version": "1"}))

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        return None

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        return Parsed(turns=0, tool_calls=0, stop=Stop.FINISHED)
