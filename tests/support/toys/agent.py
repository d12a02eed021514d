"""The agent kind `toy`: it writes into each shell file the operator that its context file TOY.md names, else +."""

from __future__ import annotations

import re
from pathlib import Path

from trialfleet_agents.agent_kind import AgentFiles, AgentKind
from trialfleet_agents.protocol import Exit, Identity, Job, Mount, Parsed, Setup
from trialfleet_agents.sandbox_env import job_of, stop_of
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.records.agent import AgentSpec

CONTEXT_FILE = "TOY.md"
VERSION = "0.1"
_PROGRAM = """
for file in *.sh; do
  sign=$(sed -n "s/^${file%.sh} is written with //p" TOY.md 2> /dev/null)
  sed -i "s/\\$1 - \\$2/\\$1 ${sign:-+} \\$2/" "$file"
  echo "toy: wrote ${sign:-+} into $file"
done
"""
_WROTE = re.compile(r"toy: wrote (\S+) into (\S+)")


TOY = AgentKind("toy", "toy_agent:ToyAgent", files=AgentFiles(roots=(CONTEXT_FILE,)))


class ToyAgent:
    kind = "toy"
    reach = Reach(root_file=TOY.files.root)

    def identify(self, spec: AgentSpec) -> Identity:
        facts = {"kind": self.kind, "version": VERSION, "program": _PROGRAM}
        return Identity(kind=self.kind, version=VERSION, digest=digest(facts), reach=self.reach)

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        return job_of(setup, mounts, ("/bin/sh", "-c", _PROGRAM), stdin=setup.prompt.encode())

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        """One turn and one tool call for each line of its log."""
        wrote = _WROTE.findall((record / "stdout").read_text(errors="replace"))
        steps = [
            {"turn": turn, "kind": "edit", "tool": "toy-write", "path": path, "detail": f"operator {sign}"}
            for turn, (sign, path) in enumerate(wrote, 1)
        ]
        counts = {"turns": len(steps), "tool_calls": len(steps)}
        return Parsed.model_validate({"steps": steps, "stop": stop_of(exit), **counts})
