"""Whole attempts by the real runner with the real program of any pinned agent, against the scripted model."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.agent_rows import AgentRow
from tests.support.attempts import Lab, Left, write
from trialfleet_agents.agent_check.scripted_answers import Answer
from trialfleet_agents.agent_check.scripted_model import ModelRequest, Reply, ScriptedModel
from trialfleet_agents.registry import agent
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.verdicts import Loss, Scored
from trialfleet_ledger.token_usage import TokenUsage
from trialfleet_ledger.trajectory import Parsed
from trialfleet_sandbox.protocol import Exit

KEY = "sk-the-real-key-0123456789"
FIXED = "shop/pricing/rules.py"
PARENT_BAIT, HOME_BAIT = "NEEDLE-PARENT: prefer tabs.", "NEEDLE-HOME: prefer spaces."
FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md")
HOMES = (".codex/AGENTS.md", ".claude/CLAUDE.md", ".gemini/GEMINI.md", ".config/opencode/AGENTS.md", *FILES)
BAD, GOOD = "        amount -= amount * discount / 0", "        amount -= amount * discount / 100"
# For the key, then for Python. The bracket keeps the pattern from finding itself.
SEARCH = (
    "env | sort; grep -rsl 'sk-the-re[a]l' $HOME $PWD /proc/[0-9]*/environ /proc/[0-9]*/cmdline; echo SEARCHED; "
    "command -v python; python -m pytest --version"
)
LIMITS = Limits(memory_bytes=3 * 2**30, disk_bytes=2**29, stop_grace_s=0.3)


@dataclass(frozen=True)
class AgentRan:
    """What an attempt left, and the requests of its agent's loop."""

    row: AgentRow
    left: Left
    script: tuple[Reply, ...]
    main: list[ModelRequest]
    requests: list[ModelRequest]

    @property
    def answers(self) -> list[Answer]:
        """Those of the script, which are all that it got when it played the script to its end."""
        return [reply for reply in self.script if isinstance(reply, Answer)]

    @property
    def scored(self) -> Scored:
        assert self.left.end.scored is not None, self.left.end
        return self.left.end.scored

    @property
    def loss(self) -> Loss:
        assert self.left.end.loss is not None, self.left.end
        return self.left.end.loss

    @property
    def report(self) -> dict[str, Any]:
        return json.loads(self.left.bundle.files["gateway/report.json"])

    @property
    def everything(self) -> str:
        return "\n".join(request.strings for request in self.requests)

    def claimed(self) -> Parsed:
        """What the agent's own output says, without the gateway's record."""
        with tempfile.TemporaryDirectory() as folder:
            for name, data in self.left.bundle.files.items():
                if name.startswith("agent/"):
                    Path(folder, Path(name).name.removesuffix(".log")).write_bytes(data)
            return agent(self.row.kind).parse(Path(folder), Exit(0, "itself", 1.0, None), Path("/workspace"))


@dataclass
class AgentAttempts:
    """One validated task for many attempts of one agent. Bait lies above every scratch folder and in the runner's
    HOME, under the names of all agents' files."""

    lab: Lab
    row: AgentRow
    model: ScriptedModel

    def __post_init__(self) -> None:
        write(self.lab.scratch.parent, dict.fromkeys(FILES, PARENT_BAIT + "\n"))
        write(self.home, dict.fromkeys(HOMES, HOME_BAIT + "\n"))

    @property
    def home(self) -> Path:
        return self.lab.root / "runners-home"

    @property
    def task_text(self) -> str:
        """The task's frozen words."""
        return Objects(self.lab.cache.objects).get(self.lab.planned.order.prompt).decode()

    def run(
        self,
        script: Sequence[Reply],
        condition: str = "none",
        *,
        composed: Condition | None = None,
        options: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> AgentRan:
        """`options`: of the agent, beyond those of its row; `spec`: of the agent."""
        row = self.row
        spec = {"max_turns": 12, "timeout_s": 120, "options": {**row.options, **(options or {})}, **spec}
        order = AgentSpec.model_validate({"kind": row.kind, "model": row.tools.model, **spec})
        provider = {name: value.format(url=self.model.url, key=KEY) for name, value in row.provider.items()}
        env = {
            "HOME": str(self.home),
            "TRIALFLEET_CACHE": str(self.lab.cache.root),
            "TRIALFLEET_ISOLATION": "bubblewrap",
            **provider,
        }
        grants = self.lab.grants(
            order, condition, attempt=next(self.lab.numbers), limits=LIMITS, composed=composed
        )
        self.model.last = self.done
        self.model.play(*script)
        left = self.lab.run(grants, env=env)
        return AgentRan(row, left, tuple(script), self.model.main, list(self.model.requests))

    # --- replies ----------------------------------------------------------------------------------------

    def reads(self, path: str = FIXED) -> Answer:
        usage = TokenUsage(input=100, output=20, cache_read=1000)
        return Answer("Looking.", (self.row.tools.read(path),), usage)

    def edits(self) -> Answer:
        return Answer(
            "Mending.", (self.row.edit(FIXED, BAD, GOOD),), TokenUsage(input=50, output=30, cache_read=1300)
        )

    def shell(self, command: str) -> Answer:
        return Answer("Running.", (self.row.tools.run(command),), TokenUsage(input=7, output=11))

    def searches(self) -> Answer:
        """For secrets, and for the task's Python."""
        return self.shell(SEARCH)

    def repair(self) -> list[Reply]:
        """Reads the file, mends it, looks for secrets, says so: four turns, three tool calls."""
        return [self.reads(), self.edits(), self.searches(), self.done]

    @property
    def done(self) -> Answer:
        """Its last words."""
        return Answer("All done.", self.row.tools.ends)
