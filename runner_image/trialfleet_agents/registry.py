"""Agents by kind. A kind's adapter is imported only when a campaign asks for it."""

from __future__ import annotations

import importlib

from trialfleet_agents.agent_kind import AgentFiles, AgentKind
from trialfleet_agents.claude_code import CLAUDE_CODE
from trialfleet_agents.codex import CODEX
from trialfleet_agents.copilot import COPILOT
from trialfleet_agents.gemini import GEMINI
from trialfleet_agents.mini_swe_agent import MINI_SWE_AGENT
from trialfleet_agents.opencode import OPENCODE
from trialfleet_agents.protocol import Agent
from trialfleet_agents.tool_calls import ToolCalls
from trialfleet_ledger.errors import OperatorError

ANY_PROGRAM = "command"  # the kind that has no program of its own

# Another package adds a kind by putting it here.
KINDS: dict[str, AgentKind] = {
    one.kind: one
    for one in (
        AgentKind("nop", "trialfleet_agents.oracle_and_nop:Nop"),
        AgentKind("oracle", "trialfleet_agents.oracle_and_nop:Oracle"),
        AgentKind(
            "search", "trialfleet_agents.search:SearchAgent", files=AgentFiles(names=("claude.md", "agents.md"))
        ),
        AgentKind(ANY_PROGRAM, "trialfleet_agents.command:Command", writes_prose=True),
        CLAUDE_CODE,
        CODEX,
        COPILOT,
        OPENCODE,
        GEMINI,
        MINI_SWE_AGENT,
    )
}


def find_kind(kind: str) -> AgentKind:
    """What is known of it. Raises `OperatorError` naming all kinds when there is none."""
    if kind not in KINDS:
        raise OperatorError(
            f"no agent is called {kind!r}",
            where="agent: kind",
            hint=f"one of {', '.join(KINDS)}; any other program runs as kind command",
        )
    return KINDS[kind]


def agent(kind: str) -> Agent:
    """The adapter of that kind. Raises `OperatorError` naming all kinds when there is none."""
    module, _, name = find_kind(kind).adapter.partition(":")
    made: Agent = getattr(importlib.import_module(module), name)()
    return made


def list_tool_calls() -> dict[str, ToolCalls]:
    """Of every kind that `trialfleet agents check` can measure."""
    return {kind: one.tool_calls for kind, one in KINDS.items() if one.tool_calls is not None}
