"""What a check delivers: a canary by every way that an attempt has, apart from the files of the workspace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trialfleet_agents.agent_check.delivery_matrix import canary
from trialfleet_agents.protocol import McpServer, Setup
from trialfleet_deliveries.hook_log import FAIL_FAST_LOG


def deliver_canaries(setup: Setup, *, nodes: Path, server: McpServer) -> Setup:
    """`setup` with a canary in the prompt, the system prompt and the hooks. `nodes`: the folder from which the
    on-read hook reads; `server`: one whose tool has a canary in its description."""
    return replace(
        setup,
        prompt=f"{setup.prompt} {canary('inline')}",
        system=canary("system"),
        hook_context=nodes,
        fail_fast_log=setup.home / FAIL_FAST_LOG,
        mcp={"check": server},
        before_shell=canary("hook before"),
    )
