"""The pinned agents as the shared suite of whole attempts sees them: one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from trialfleet_agents.agent_check.scripted_model import ModelRequest
from trialfleet_agents.registry import list_tool_calls
from trialfleet_agents.tool_calls import Call, ToolCalls

SKILL_NAME, SERVER_NAME = "rounding", "shop-docs"
WORD = {"word": "discount"}  # what the server's tool look_up is asked for
NEEDLE = "You mend what is broken, says needle-17."


def at(request: ModelRequest, *path: str) -> Any:
    """The value at this path of a request's body; None: there is none."""
    found: Any = request.body
    for name in path:
        found = (found or {}).get(name)
    return found


@dataclass(frozen=True)
class Chosen:
    """`settings` as a treatment, what a request then shows and without them does not, where a request has its
    `effort`, and that value for `effort: high`."""

    settings: dict[str, Any]
    shown: Callable[[ModelRequest], bool]
    effort: tuple[str, ...]
    high: str = "high"


@dataclass(frozen=True)
class AgentRow:
    """`edit` makes the call with which this agent's model would replace a text in a file (a path of the
    workspace); `tools` makes its other calls. `provider`: the environment that the runner gets, with the
    scripted server's address as {url} and the key as {key}. `own_prompt`: its model gets the prompt inside a text
    of the agent's own, instead of as a message to the byte.
    `killer`: a command that kills its program. `impatient`: options with which it soon gives up on a provider that
    fails. `asks_again`: its program repeats a request whose answer is cut. `opens_skill`, `calls_server`: how its
    model opens the skill and calls the server of `agent_extensions`; None: it has neither."""

    kind: str
    program: str
    tools: ToolCalls
    edit: Callable[[str, str, str], Call]
    provider: dict[str, str]
    chosen: Chosen | None = None  # None: no pinned agent
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    own_prompt: bool = False
    says_tokens: bool = True
    killer: str = "kill -9 $PPID; sleep 30"
    impatient: dict[str, Any] | None = field(default_factory=lambda: {"max_retries": 0})  # None: it takes minutes
    asks_again: bool = True
    opens_skill: Call | None = None
    calls_server: Call | None = None


ANTHROPIC = {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "{key}"}
GOOGLE = {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{key}"}
OPENAI = {"OPENAI_BASE_URL": "{url}", "OPENAI_API_KEY": "{key}"}


def _patch(path: str, old: str, new: str) -> Call:
    """`old` and `new` are whole lines."""
    return Call("apply_patch", f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n")


def _sed(path: str, old: str, new: str) -> Call:
    escaped = old.replace("*", r"\*")
    return Call("bash", {"command": f"sed -i 's|{escaped}|{new}|' {path}"})


def _quiet_about_itself(request: ModelRequest) -> bool:
    return "co-authored-by" not in request.strings.lower()


_WARM = [{"match": {"overrideScope": "core"}, "modelConfig": {"generateContentConfig": {"temperature": 0.25}}}]
ROWS = {
    "claude-code": AgentRow(
        kind="claude-code",
        program="claude",
        tools=list_tool_calls()["claude-code"],
        edit=lambda path, old, new: Call(
            "Edit", {"file_path": f"/workspace/{path}", "old_string": old, "new_string": new}
        ),
        provider=ANTHROPIC,
        chosen=Chosen({"includeCoAuthoredBy": False}, _quiet_about_itself, ("output_config", "effort")),
        opens_skill=Call("Skill", {"skill": SKILL_NAME}),
        calls_server=Call("mcp__shop-docs__look_up", WORD),
    ),
    "codex": AgentRow(
        kind="codex",
        program="codex",
        tools=list_tool_calls()["codex"],
        edit=_patch,
        provider=OPENAI,
        chosen=Chosen(
            {"model_verbosity": "high"},
            lambda asked: at(asked, "text", "verbosity") == "high",
            ("reasoning", "effort"),
        ),
        opens_skill=list_tool_calls()["codex"].run(f"pwd && sed -n '1,200p' .agents/skills/{SKILL_NAME}/SKILL.md"),
        calls_server=Call("look_up", WORD, namespace="mcp__shop_docs"),
    ),
    "copilot": AgentRow(
        kind="copilot",
        program="copilot",
        tools=list_tool_calls()["copilot"],
        edit=_patch,
        provider=OPENAI,
        chosen=Chosen({"includeCoAuthoredBy": False}, _quiet_about_itself, ("reasoning", "effort")),
        own_prompt=True,
        killer="exec python -c 'import os; os.kill(os.getppid(), 9)'",  # it refuses to run `kill $PPID`
        impatient=None,
        opens_skill=Call("skill", {"skill": SKILL_NAME}),
        calls_server=Call("shop-docs-look_up", WORD),
    ),
    "opencode": AgentRow(
        kind="opencode",
        program="opencode",
        tools=list_tool_calls()["opencode"],
        edit=lambda path, old, new: Call(
            "edit", {"filePath": f"/workspace/{path}", "oldString": old, "newString": new}
        ),
        provider=ANTHROPIC,
        chosen=Chosen(
            {"agent": {"build": {"prompt": NEEDLE}}},
            lambda asked: NEEDLE in asked.strings,
            ("output_config", "effort"),
        ),
        impatient=None,
        opens_skill=Call("skill", {"name": SKILL_NAME}),
        calls_server=Call("shop-docs_look_up", WORD),
    ),
    "gemini": AgentRow(
        kind="gemini",
        program="gemini",
        tools=replace(list_tool_calls()["gemini"], model="gemini-3.1-pro-preview"),  # its effort is a level
        edit=lambda path, old, new: Call(
            "replace",
            {"file_path": f"/workspace/{path}", "instruction": "i", "old_string": old, "new_string": new},
        ),
        provider=GOOGLE,
        chosen=Chosen(
            {"modelConfigs": {"customOverrides": _WARM}},
            lambda asked: at(asked, "generationConfig", "temperature") == 0.25,
            ("generationConfig", "thinkingConfig", "thinkingLevel"),
            "HIGH",
        ),
        asks_again=False,  # 0.61.0 repeats ECONNRESET, and not undici's UND_ERR_SOCKET, which a cut mostly is
        opens_skill=Call("activate_skill", {"name": SKILL_NAME}),
        calls_server=Call("mcp_shop-docs_look_up", WORD),
    ),
    "mini-swe-agent": AgentRow(
        kind="mini-swe-agent",
        program="mini",
        tools=list_tool_calls()["mini-swe-agent"],
        edit=_sed,
        provider=OPENAI,
        chosen=Chosen(
            {"agent": {"system_template": NEEDLE}},
            lambda asked: NEEDLE in asked.strings,
            ("reasoning", "effort"),
        ),
        own_prompt=True,
    ),
}
