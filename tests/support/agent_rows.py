"""The pinned agents as the shared suite of whole attempts sees them: one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trialfleet_runner.agent_check.scripted_answers import Call


@dataclass(frozen=True)
class AgentRow:
    """`read`, `edit` and `shell` make the calls with which this agent's model would read a file (a path of the
    workspace), replace a text in it, and run a command. `provider`: the environment that the runner gets, with the
    scripted server's address as {url} and the key as {key}. `own_prompt`: its model gets the prompt inside a text
    of the agent's own, instead of as a message to the byte. `ends`: what its model calls when it is done.
    `starts_s`: what a busy machine may take to start it, beyond ten seconds."""

    kind: str
    program: str
    model: str
    read: Callable[[str], Call]
    edit: Callable[[str, str, str], Call]
    shell: Callable[[str], Call]
    provider: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    own_prompt: bool = False
    ends: tuple[Call, ...] = ()
    starts_s: float = 0
    says_tokens: bool = True
    edit_kind: str = "edit"


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
        model="gpt-5.5",
        read=lambda path: Call("exec_command", {"cmd": f"cat {path}"}),
        edit=_patch,
        shell=lambda command: Call("exec_command", {"cmd": command, "yield_time_ms": 20_000}),
        provider=OPENAI,
    ),
    "mini-swe-agent": AgentRow(
        kind="mini-swe-agent",
        program="mini",
        model="gpt-5.5",
        read=lambda path: Call("bash", {"command": f"cat {path}"}),
        edit=_sed,
        shell=lambda command: Call("bash", {"command": command}),
        provider=OPENAI,
        own_prompt=True,
        starts_s=45,
        ends=(Call("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}),),
    ),
}
