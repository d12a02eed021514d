"""Agents by kind. A kind's module is imported only when a campaign asks for it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from trialfleet_agents.protocol import Agent
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec

KINDS = {
    "nop": "trialfleet_agents.oracle_and_nop:Nop",
    "oracle": "trialfleet_agents.oracle_and_nop:Oracle",
    "search": "trialfleet_agents.search:SearchAgent",
    "command": "trialfleet_agents.command:Command",
    "claude-code": "trialfleet_agents.claude_code:ClaudeCode",
    "copilot": "trialfleet_agents.copilot:Copilot",
    "opencode": "trialfleet_agents.opencode:OpenCode",
    "gemini": "trialfleet_agents.gemini:GeminiCli",
    "codex": "trialfleet_agents.codex:Codex",
    "mini-swe-agent": "trialfleet_agents.mini_swe_agent:MiniSweAgent",
}


def agent(kind: str) -> Agent:
    """The agent of that kind. Raises `OperatorError` naming all kinds when there is none."""
    if kind not in KINDS:
        raise OperatorError(
            f"no agent is called {kind!r}",
            where="agent: kind",
            hint=f"one of {', '.join(KINDS)}; any other program runs as kind command",
        )
    module, _, name = KINDS[kind].partition(":")
    made: Agent = getattr(importlib.import_module(module), name)()
    return made


def list_workspace_scripts(spec: AgentSpec) -> dict[str, int]:
    """Scripts of the agent that are looked up in the workspace -> their place in its `argv`; only a program of
    kind command has any. Raises `OperatorError` naming an option that is not valid."""
    from trialfleet_agents.command import Command, options_of
    from trialfleet_agents.scripts import workspace_scripts

    return workspace_scripts(options_of(spec).argv) if spec.kind == Command.kind else {}


def list_left_out(kind: str, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """What of a condition's files an agent of this kind does not get: "<file>: <key>", or a file alone."""
    from trialfleet_agents.workspace_settings import deliverable_files

    return deliverable_files(kind, files)[1]
