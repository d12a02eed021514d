"""What a check delivers: a canary by every way that an attempt has, apart from the files of the workspace."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from trialfleet_agents.agent_check.delivery_matrix import CheckedDelivery, canary
from trialfleet_agents.protocol import McpServer, Setup
from trialfleet_deliveries.hook_log import FAIL_FAST_LOG


def deliver_canaries(setup: Setup, which: Collection[CheckedDelivery], *, nodes: Path, server: McpServer) -> Setup:
    """`setup` with a canary in the prompt, the system prompt and the hooks, by these deliveries. `nodes`:
    the folder from which the on-read hook reads; `server`: one whose tool has a canary in its description."""
    parts: dict[CheckedDelivery, dict[str, object]] = {
        CheckedDelivery.INLINE: {"prompt": f"{setup.prompt} {canary('inline')}"},
        CheckedDelivery.SYSTEM: {"system": canary("system")},
        CheckedDelivery.HOOK_AFTER: {"hook_context": nodes},
        CheckedDelivery.RULES: {"hook_context": nodes},
        CheckedDelivery.FAIL_FAST: {"fail_fast_log": setup.home / FAIL_FAST_LOG},
        CheckedDelivery.MCP: {"mcp": {"check": server}},
        CheckedDelivery.HOOK_BEFORE: {"before_shell": canary("hook before")},
    }
    changes = dict[str, Any]()
    for one in parts.keys() & set(which):
        changes |= parts[one]
    return replace(setup, **changes)
