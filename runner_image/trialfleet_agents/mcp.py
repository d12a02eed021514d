"""MCP servers as agents that start them by themselves are told of them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from trialfleet_agents.protocol import McpServer

STARTS_S = 60  # what an agent may wait for a server; the defaults of some are too short for a busy machine

Described = dict[str, dict[str, object]]


def described(servers: Mapping[str, McpServer], **more: object) -> Described:
    """name -> command, arguments and variables, in the words that most agents use. `more`: of every server."""
    return {
        name: {"command": one.argv[0], "args": list(one.argv[1:]), "env": dict(one.env), **more}
        for name, one in servers.items()
    }


def configuration(servers: Mapping[str, McpServer], **more: object) -> str:
    """JSON with `mcpServers`, as Claude Code and Copilot CLI read it from a file."""
    return json.dumps({"mcpServers": described(servers, type="stdio", **more)})
