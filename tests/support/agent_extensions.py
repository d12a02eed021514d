"""A skill and an MCP server for attempts of real programs. Which agents have them, and how their models use them,
is in `agent_rows`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.agent_rows import SERVER_NAME, SKILL_NAME, AgentRow
from tests.support.attempts import write

DESCRIPTION = "Explains how this shop rounds prices, and which discounts may be combined with each other."
SKILL = (
    f"---\nname: {SKILL_NAME}\ndescription: {DESCRIPTION}\n---\n# Rounding\n\nPrices are rounded half to even.\n"
)
TOOL = "Looks up what a word of this shop means."
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        about = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                 "serverInfo": {"name": "docs", "version": "1.2.3"}}
    elif asked.get("method") == "tools/list":
        schema = {"type": "object", "properties": {"word": {"type": "string"}}}
        about = {"tools": [{"name": "look_up", "description": "TOOL", "inputSchema": schema}]}
    elif asked.get("method") == "tools/call":
        about = {"content": [{"type": "text", "text": "A tenth of a percent, says the glossary."}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": about}), flush=True)
""".replace("TOOL", TOOL)


def write_extensions(root: Path) -> None:
    """The folders that a condition names, below `root`."""
    write(root, {f"skills/{SKILL_NAME}/SKILL.md": SKILL, "server/docs.py": SERVER})


def server(version: str = "1.2.3", *argv: str) -> dict[str, Any]:
    """`mcp` of a condition; `argv` is another command than that of the server."""
    command = argv or ("{python}", "{files}/docs.py")
    return {SERVER_NAME: {"command": command, "version": version, "files": "server"}}


def extended(row: AgentRow) -> dict[str, Any]:
    """What of a condition names the skill and the server; empty for an agent that has neither."""
    skills = {"skills": [f"skills/{SKILL_NAME}"]} if row.opens_skill else {}
    return {**skills, **({"mcp": server()} if row.calls_server else {})}
