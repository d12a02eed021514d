"""A model provider in a pod for agents of several APIs. It speaks them on 8000; on 8001 it says what it heard.

Each API has a script for one agent: it reads the file, fixes it, searches for secrets, and ends. The pod has this
file, and the runner's package from the image.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from trialfleet_agents.agent_check.scripted_answers import Answer
from trialfleet_agents.agent_check.scripted_model import ModelRequest, Reply, ScriptedModel, scripted_model
from trialfleet_agents.registry import list_tool_calls
from trialfleet_agents.tool_calls import Call
from trialfleet_ledger.token_usage import TokenUsage

MODEL, CONTROL = 8000, 8001
FIXED = "sqlparse/filters/aligned_indent.py"
WORKSPACE = "/trialfleet/agent/workspace"
OLD, NEW = "        cases.append((None, [end_token]))", "        if end_token is not None:"
# Brackets keep the pattern from finding itself.
SEARCH = (
    "env | sort; ls /trialfleet; "
    "grep -rsl 'sk-[p]lanted' $HOME $PWD /tmp /trialfleet /proc/[0-9]*/environ /proc/[0-9]*/cmdline; echo SEARCHED"
)
PATCH = f"*** Begin Patch\n*** Update File: {FIXED}\n@@\n-{OLD}\n+{NEW}\n+    {OLD}\n*** End Patch\n"
SED = {"command": f"sed -i 's|^{OLD}$|{NEW}\\n    {OLD}|' {FIXED}".replace("[end", r"\[end", 1)}
EDIT = {"file_path": f"{WORKSPACE}/{FIXED}", "old_string": OLD, "new_string": f"{NEW}\n    {OLD}"}
# API -> the agent that speaks it, how its model reads the file, and how it fixes it
PLAYED = {
    "/v1/messages": ("claude-code", Call("Read", {"file_path": f"{WORKSPACE}/{FIXED}"}), Call("Edit", EDIT)),
    "/v1/responses": ("codex", list_tool_calls()["codex"].read(FIXED), Call("apply_patch", PATCH)),
    "/v1/chat/completions": ("mini-swe-agent", list_tool_calls()["mini-swe-agent"].read(FIXED), Call("bash", SED)),
}


def script(kind: str, read: Call, fix: Call) -> list[Reply]:
    tools = list_tool_calls()[kind]
    return [
        Answer("Looking.", (read,), TokenUsage(input=100, output=20, cache_read=1000)),
        Answer("Fixing.", (fix,), TokenUsage(input=50, output=30)),
        Answer("Searching.", (tools.run(SEARCH),), TokenUsage(input=7, output=11)),
        Answer("Done.", tools.ends, TokenUsage(input=3, output=4)),
    ]


class ScriptPerApi(ScriptedModel):
    """What is answered follows from the API and the number of answers that it has given."""

    def take(self, request: ModelRequest) -> tuple[Reply, int]:
        _, number = super().take(request)
        replies = script(*PLAYED[request.path])
        given = sum(one.path == request.path for one in self.main)
        return (replies[min(given, len(replies)) - 1] if request.has_tools else self.side), number

    def heard(self) -> list[dict[str, Any]]:
        """Requests of the agents' loops: API, key, all strings."""
        return [{"api": one.path, "key": key_of(one), "strings": one.strings} for one in self.main]


def key_of(request: ModelRequest) -> str:
    return request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")


def main() -> None:
    class Control(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(model.heard()).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    everywhere = "0.0.0.0"
    model = ScriptPerApi()
    with scripted_model(model, (everywhere, MODEL)), ThreadingHTTPServer((everywhere, CONTROL), Control) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
