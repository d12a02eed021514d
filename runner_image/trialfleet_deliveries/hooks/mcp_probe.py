"""Starts every MCP server of a configuration once, and prints what each says of itself, as one line of JSON.

Runs in the agent's sandbox, with its Python alone: only the standard library. Protocol: Model Context Protocol,
revision 2025-06-18, over standard input and output, one JSON message a line.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import threading
from queue import Empty, Queue
from typing import IO, Any

ANSWER_S = 30
REVISION = "2025-06-18"


def main() -> None:
    with pathlib.Path(sys.argv[1]).open(encoding="utf-8") as file:
        servers = json.load(file)["mcpServers"]
    print(json.dumps({name: looked(server) for name, server in servers.items()}))


def started(server: dict[str, Any]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [server["command"], *server["args"]],
        env=server["env"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def looked(server: dict[str, Any]) -> dict[str, Any]:
    """The server's version and its tools, name -> description, or why there are none."""
    try:
        process = started(server)
    except OSError as error:
        return {"error": f"{server['command']}: {error.strerror}"}
    answers: Queue[bytes] = Queue()
    said: Queue[bytes] = Queue()
    assert process.stdout is not None
    assert process.stderr is not None
    threading.Thread(target=pump, args=(process.stdout, answers), daemon=True).start()
    threading.Thread(target=pump, args=(process.stderr, said), daemon=True).start()
    try:
        return introduced(process, answers)
    except (OSError, ValueError, KeyError, TypeError, Empty) as error:
        return {"error": why(process, said, error)}
    finally:
        process.kill()
        process.wait()


def pump(stream: IO[bytes], lines: Queue[bytes]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(b"")


def introduced(process: subprocess.Popen[bytes], answers: Queue[bytes]) -> dict[str, Any]:
    client = {"name": "trialfleet", "version": "1"}
    given = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
    found = asked(process, answers, 1, "initialize", given)
    send(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    tools: list[dict[str, Any]] = []
    if "tools" in found["capabilities"]:
        tools = asked(process, answers, 2, "tools/list", {})["tools"]
    described = {str(tool["name"]): str(tool.get("description") or "") for tool in tools}
    return {"version": str(found["serverInfo"]["version"]), "tools": described}


def asked(
    process: subprocess.Popen[bytes], answers: Queue[bytes], number: int, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    send(process, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    while True:
        line = answers.get(timeout=ANSWER_S)
        if not line:
            raise ValueError("it closed its output")
        answer = json.loads(line)
        if answer.get("id") == number:
            if "error" in answer:
                raise ValueError(f"{method}: {answer['error'].get('message')}")
            result: dict[str, Any] = answer["result"]
            return result


def send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def why(process: subprocess.Popen[bytes], said: Queue[bytes], error: Exception) -> str:
    """The last line of its errors, if it has ended; else what went wrong."""
    try:
        code = process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return f"no answer in {ANSWER_S} s" if isinstance(error, Empty) else str(error)[:300]
    lines: list[str] = []
    while not said.empty():
        lines.append(said.get().decode(errors="replace").strip())
    last = next((line for line in reversed(lines) if line), "")
    return f"it ended with exit code {code}: {last[:300]}" if last else f"it ended with exit code {code}"


if __name__ == "__main__":
    main()
