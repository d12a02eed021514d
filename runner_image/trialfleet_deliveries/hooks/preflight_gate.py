"""Limits the tool calls of a pre-flight: a standalone script, standard library only, for any Python from 3.8 on.

    python -I preflight_gate.py --workspace DIR --calls N --log FILE --tool-denied TEXT --calls-used TEXT
        --read-before TEXT --unchecked TEXT < event.json

Before every tool call (PreToolUse): denies more than N calls, a file that has been read before, and every tool but
Read and Glob. Each call is one JSON line in --log, from which the next one is judged. The agent reads the texts
when a call is denied.
"""

from __future__ import annotations

import fcntl
import json
import os
import posixpath
import sys
from typing import Any, cast

TOOLS = ("Read", "Glob")
STDIN_BYTES = 2**20
LOG_BYTES = 2**20


def reason(tool: str, path: str | None, earlier: list[dict[str, Any]], calls: int) -> str | None:
    """The option with the text that says why this call is denied; None: it is not. `earlier`: the calls that were
    let through."""
    if tool not in TOOLS:
        return "--tool-denied"
    if len(earlier) >= calls:
        return "--calls-used"
    if tool == "Read" and any(call.get("path") == path for call in earlier if call.get("tool") == "Read"):
        return "--read-before"
    return None


def judged(event: dict[str, Any], workspace: str, calls: int, log: str) -> str | None:
    given = event.get("tool_input")
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    said = fields.get("file_path")
    path = posixpath.normpath(posixpath.join(workspace, said)) if isinstance(said, str) else None
    tool = str(event.get("tool_name"))[:100]
    fd = os.open(log, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = [json.loads(line) for line in file.read(LOG_BYTES).splitlines()]
        why = reason(tool, path, [call for call in known if not call["denied"]], calls)
        call = {"tool": tool, "path": None if path is None else path[:1000], "denied": why is not None}
        file.write(json.dumps(call).encode() + b"\n")
    return why


def main(argv: list[str]) -> None:
    """A call that cannot be judged is denied: what this keeps is a promise."""
    options = dict(zip(argv[::2], argv[1::2]))
    try:
        event = json.loads(sys.stdin.buffer.read(STDIN_BYTES))
        why = judged(event, options["--workspace"], int(options["--calls"]), options["--log"])
    except Exception as error:
        sys.stderr.write(f"{error!r}\n")
        why = "--unchecked"
    if why is not None:
        said = {"permissionDecision": "deny", "permissionDecisionReason": options.get(why, "")}
        sys.stdout.write(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
