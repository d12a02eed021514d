"""Whole attempts by the real runner with the real Claude Code, against the scripted provider, with bait about."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from backports import zstd

from tests.support.attempts import TRIAL, Lab, Left, Told, write
from tests.support.scripted_messages import Reply, Request, Say, ScriptedMessages, Usage
from trialfleet_agents.claude_code.agent import ClaudeCode
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.owned_folder import owned_path
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.trajectory import Parsed
from trialfleet_sandbox.protocol import Exit
from trialfleet_sandbox.scratch import folder_name

MODEL = "claude-sonnet-4-6"
KEY = "sk-ant-the-real-key-0123456789"
FIXED = "shop/pricing/rules.py"
PARENT_BAIT, HOME_BAIT = "NEEDLE-PARENT: prefer tabs.", "NEEDLE-HOME: prefer spaces."
# The bracket keeps the pattern from finding itself.
SEARCH = (
    "env | sort; grep -rsl 'sk-ant-the-re[a]l' $HOME $PWD /proc/[0-9]*/environ /proc/[0-9]*/cmdline; echo SEARCHED"
)
LIMITS = Limits(memory_bytes=2**30, disk_bytes=2**28, stop_grace_s=0.3, live_interval_s=0.2)


@dataclass(frozen=True)
class Ran:
    """What an attempt left, and the requests that its agent's loop sent to the provider."""

    left: Left
    main: list[Request]

    @property
    def prompts(self) -> list[str]:
        """Texts of the first user message that the program did not write itself."""
        content = self.main[0].body["messages"][0]["content"]
        return [block["text"] for block in content if not block["text"].startswith("<system-reminder>")]

    def claimed(self) -> Parsed:
        """What the agent's own output says, without the gateway's notes."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "stdout").write_bytes(self.left.bundle.files["agent/stdout.log"])
            return ClaudeCode().parse(Path(folder), Exit(0, "itself", 1.0, None), Path("/workspace"))

    def live(self) -> bytes:
        """The live log as it was last sent."""
        data = self.left.lab.store.get(f"lab/attempts/{TRIAL}/{self.left.attempt}/live.log.zst") or b""
        return zstd.ZstdDecompressor().decompress(data) if data else b""


@dataclass
class Attempts:
    """One validated task for many attempts. Bait lies in a folder above every scratch folder, in the runner's
    HOME and in that HOME's `.claude`."""

    lab: Lab
    provider: ScriptedMessages
    numbers: Any = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        write(self.lab.scratch.parent, {"CLAUDE.md": PARENT_BAIT + "\n"})
        baits = {"CLAUDE.md": HOME_BAIT + "\n", ".claude/CLAUDE.md": HOME_BAIT + "\n"}
        write(self.home, baits)

    @property
    def home(self) -> Path:
        return self.lab.root / "runners-home"

    @property
    def task_text(self) -> str:
        """The task's frozen words."""
        return Objects(self.lab.cache.objects).get(self.lab.planned.order.prompt).decode()

    @property
    def clean(self) -> Path:
        """A scratch root without bait above it."""
        return self.lab.scratch.parent.with_name(self.lab.scratch.parent.name + "-clean")

    def run(
        self,
        script: Sequence[Reply],
        condition: str = "none",
        *,
        isolation: str = "bubblewrap",
        limits: Limits = LIMITS,
        env: Mapping[str, str] | None = None,
        composed: Condition | None = None,
        forbidden: Mapping[str, tuple[str, ...]] | None = None,
        told: Told | None = None,
        then: Reply | None = None,
        **spec: Any,
    ) -> Ran:
        """`{ws}` in the tools' inputs is the workspace as the agent sees it. `then`: of `ScriptedMessages`."""
        attempt = next(self.numbers)
        agent = AgentSpec.model_validate(
            {"kind": "claude-code", "model": MODEL, "max_turns": 10, "timeout_s": 180, **spec}
        )
        given = {
            "ANTHROPIC_BASE_URL": self.provider.url,
            "ANTHROPIC_API_KEY": KEY,
            "HOME": str(self.home),
            "TRIALFLEET_CACHE": str(self.lab.cache.root),
            "TRIALFLEET_ISOLATION": isolation,
            **(env or {}),
        }
        grants = self.lab.grants(
            agent, condition, attempt=attempt, limits=limits, composed=composed, forbidden=forbidden, told=told
        )
        scratch = Path(given.get("TRIALFLEET_SCRATCH", self.lab.scratch))
        inside = isolation == "bubblewrap"
        folder = owned_path(scratch, "scratch") / folder_name(grants)
        workspace = "/workspace" if inside else str(folder / "workspace")
        self.provider.play(*[placed(reply, workspace) for reply in script], then=then)
        left = self.lab.run(grants, env=given)
        return Ran(left, self.provider.main)


def placed(reply: Reply, workspace: str) -> Reply:
    """The reply with the workspace's path filled in."""
    if not isinstance(reply, Say):
        return reply
    tools = tuple(
        (name, {key: v.replace("{ws}", workspace) if isinstance(v, str) else v for key, v in given.items()})
        for name, given in reply.tools
    )
    return replace(reply, tools=tools)


def read(path: str = FIXED) -> tuple[str, dict[str, Any]]:
    return "Read", {"file_path": f"{{ws}}/{path}"}


def edit(old: str = "* discount / 0", new: str = "* discount / 100") -> tuple[str, dict[str, Any]]:
    return "Edit", {"file_path": f"{{ws}}/{FIXED}", "old_string": old, "new_string": new}


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": command, "description": "d"}


def repair() -> list[Reply]:
    """Reads the file, mends it and looks for secrets, says so: three turns, three tool calls."""
    return [
        Say("Looking.", (read(),), Usage(100, 20, cache_read=1000, cache_write=300)),
        Say("Mending.", (edit(), bash(SEARCH)), Usage(50, 30, cache_read=1300)),
        Say("Done.", (), Usage(7, 11)),
    ]
