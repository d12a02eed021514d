"""MCP servers as agents that start them by themselves are told of them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from trialfleet_runner.agents.protocol import McpServer


def configuration(servers: Mapping[str, McpServer]) -> str:
    """JSON with `mcpServers`, as Claude Code, Gemini CLI and others read it."""
    return json.dumps(
        {
            "mcpServers": {
                name: {"type": "stdio", "command": one.argv[0], "args": list(one.argv[1:]), "env": dict(one.env)}
                for name, one in servers.items()
            }
        }
    )
