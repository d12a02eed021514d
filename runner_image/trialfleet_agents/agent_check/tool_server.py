"""The MCP server of a check: `python tool_server.py NAME DESCRIPTION` has one tool of that name.

Runs in the agent's sandbox, with our Python alone: only the standard library.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def answer(asked: dict[str, Any], name: str, description: str) -> dict[str, Any]:
    """The result of a request. One that no such server knows has an empty result."""
    if asked["method"] == "initialize":
        revision, about = asked["params"]["protocolVersion"], {"name": "check", "version": "1"}
        return {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": about}
    if asked["method"] == "tools/list":
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        return {"tools": [{"name": name, "description": description, "inputSchema": schema}]}
    return {}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            result = answer(asked, *sys.argv[1:])
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
