"""The pinned agents as the shared suite of whole attempts sees them: one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trialfleet_runner.agent_check.scripted_answers import Call
from trialfleet_runner.agent_check.tool_calls import TOOL_CALLS, ToolCalls


@dataclass(frozen=True)
class AgentRow:
    """`edit` makes the call with which this agent's model would replace a text in a file (a path of the
    workspace); `tools` makes its other calls. `provider`: the environment that the runner gets, with the
    scripted server's address as {url} and the key as {key}. `own_prompt`: its model gets the prompt inside a text
    of the agent's own, instead of as a message to the byte.
    `starts_s`: what a busy machine may take to start it, beyond ten seconds. `killer`: a command that kills its
    program. `impatient`: options with which it soon gives up on a provider that fails. `asks_again`: its program
    repeats a request whose answer is cut."""

    kind: str
    program: str
    tools: ToolCalls
    edit: Callable[[str, str, str], Call]
    provider: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    own_prompt: bool = False
    starts_s: float = 0
    says_tokens: bool = True
    killer: str = "kill -9 $PPID; sleep 30"
    hangs_s: float = 15  # time in which it surely reads, edits and runs a command
    impatient: dict[str, Any] | None = field(default_factory=lambda: {"max_retries": 1})  # None: it never gives up
    asks_again: bool = True


ANTHROPIC = {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "{key}"}
GOOGLE = {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{key}"}
OPENAI = {"OPENAI_BASE_URL": "{url}", "OPENAI_API_KEY": "{key}"}


def _patch(path: str, old: str, new: str) -> Call:
    """`old` and `new` are whole lines."""
    return Call("apply_patch", f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n")


def _sed(path: str, old: str, new: str) -> Call:
    escaped = old.replace("*", r"\*")
    return Call("bash", {"command": f"sed -i 's|{escaped}|{new}|' {path}"})


ROWS = {
    "codex": AgentRow(
        kind="codex",
        program="codex",
        tools=TOOL_CALLS["codex"],
        edit=_patch,
        provider=OPENAI,
    ),
    "copilot": AgentRow(
        kind="copilot",
        program="copilot",
        tools=TOOL_CALLS["copilot"],
        edit=_patch,
        provider=OPENAI,
        own_prompt=True,
        killer="exec python -c 'import os; os.kill(os.getppid(), 9)'",  # it refuses to run `kill $PPID`
        impatient={},
    ),
    "opencode": AgentRow(
        kind="opencode",
        program="opencode",
        tools=TOOL_CALLS["opencode"],
        edit=lambda path, old, new: Call(
            "edit", {"filePath": f"/workspace/{path}", "oldString": old, "newString": new}
        ),
        provider=ANTHROPIC,
        hangs_s=40,
        impatient=None,
    ),
    "gemini": AgentRow(
        kind="gemini",
        program="gemini",
        tools=TOOL_CALLS["gemini"],
        edit=lambda path, old, new: Call(
            "replace",
            {"file_path": f"/workspace/{path}", "instruction": "i", "old_string": old, "new_string": new},
        ),
        provider=GOOGLE,
        hangs_s=30,
        asks_again=False,  # 0.61.0 repeats ECONNRESET, and not undici's UND_ERR_SOCKET, which a cut mostly is
    ),
    "mini-swe-agent": AgentRow(
        kind="mini-swe-agent",
        program="mini",
        tools=TOOL_CALLS["mini-swe-agent"],
        edit=_sed,
        provider=OPENAI,
        own_prompt=True,
        starts_s=45,
    ),
}

# Not in ROWS: it has suites of its own.
CLAUDE = AgentRow(
    kind="claude-code",
    program="claude",
    tools=TOOL_CALLS["claude-code"],
    edit=lambda path, old, new: Call(
        "Edit", {"file_path": f"/workspace/{path}", "old_string": old, "new_string": new}
    ),
    provider=ANTHROPIC,
)
