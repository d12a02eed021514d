"""A model provider in a pod: speaks the Messages API on 8000. On 8001 one asks what it heard (`/heard`), waits
until a number of agents is held (`/held/2`), and lets them go on (`/release`).

Any number of agents at once: what is answered follows from the conversation alone, by how many answers it has. A
pre-flight, which has two tools, looks at the file; an agent reads it, mends it, searches for secrets, and is held
at its last answer. That answer repeats the key that came with the request, as a proxy's careless
words would.

The pod has this file and `scripted_messages.py`, and Python's own library.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.scripted_messages import Reply, Request, Say, ScriptedMessages, Usage, serving

MESSAGES, CONTROL = 8000, 8001
PATIENCE_S = 10  # of one question
FIXED = "sqlparse/filters/aligned_indent.py"
WORKSPACE = "/trialfleet/agent/workspace"
READ = ("Read", {"file_path": f"{WORKSPACE}/{FIXED}"})
MEND = (
    "Edit",
    {
        "file_path": f"{WORKSPACE}/{FIXED}",
        "old_string": "        cases.append((None, [end_token]))",
        "new_string": "        if end_token is not None:\n            cases.append((None, [end_token]))",
    },
)
WRITE = ("Write", {"file_path": f"{WORKSPACE}/sqlparse/planted.py", "content": "x = 1\n"})
# Brackets keep the pattern from finding itself.
SEARCH = (
    "Bash",
    {
        "command": "env | sort; ls /trialfleet; "
        "grep -rsl 'sk-[p]lanted' $HOME $PWD /tmp /trialfleet /proc/[0-9]*/environ /proc/[0-9]*/cmdline; "
        "echo SEARCHED",
        "description": "d",
    },
)
FOUND = f"FILE: {FIXED}\nLINE: 73\nFUNCTION: _process_case\nFIX: no END, no alignment\nREASON: it is None\n"
LOOK = (Say("Looking.", (READ, WRITE), Usage(40, 10)), Say(FOUND, (), Usage(60, 20)))
TURN = (
    Say("Looking.", (READ,), Usage(100, 20, cache_read=1000, cache_write=300)),
    Say("Mending.", (MEND, SEARCH), Usage(50, 30, cache_read=1300)),
)
LAST = Usage(7, 11)


class Conversations(ScriptedMessages):
    """`held`: how many wait for their last answer."""

    def __init__(self) -> None:
        super().__init__()
        self.held = 0
        self.more = threading.Condition()

    def take(self, request: Request) -> tuple[Reply, int]:
        _, number = super().take(request)
        tools = {tool["name"] for tool in request.body.get("tools") or ()}
        answers = sum(message["role"] == "assistant" for message in request.body["messages"])
        if not tools:
            return Say("Side."), number
        if tools == {"Read", "Glob"}:
            return LOOK[min(answers, 1)], number
        if answers < len(TURN):
            return TURN[answers], number
        with self.more:
            self.held += 1
            self.more.notify_all()
        self.released.wait()
        return Say(f"Done, with {request.headers.get('x-api-key')}.", (), LAST), number

    def answer(self, path: str) -> Any:
        """What the control port says."""
        match path.split("/")[1:]:
            case ["held", count]:
                with self.more:
                    return self.more.wait_for(lambda: self.held >= int(count), PATIENCE_S)
            case ["heard"]:
                return self.heard()
            case ["release"]:
                self.released.set()
                return True
            case _:
                return None

    def heard(self) -> list[dict[str, Any]]:
        """Requests that carry tools: the key, the tools' names, all strings."""
        return [
            {
                "key": request.headers.get("x-api-key"),
                "tools": sorted(tool["name"] for tool in request.body["tools"]),
                "strings": request.strings,
            }
            for request in self.main
        ]


def main() -> None:
    played = Conversations()

    class Control(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(played.answer(self.path)).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    everywhere = "0.0.0.0"
    with serving(played, everywhere, MESSAGES), ThreadingHTTPServer((everywhere, CONTROL), Control) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        threading.Event().wait()


if __name__ == "__main__":
    main()
