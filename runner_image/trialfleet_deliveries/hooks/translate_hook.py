"""Lets a hook script that knows Claude Code's events serve another agent: a standalone script, standard library
only, for any Python from 3.8 on.

    python -I translate_hook.py --dialect gemini|copilot -- COMMAND [ARGUMENT...] < event.json

Gives COMMAND the event with Claude Code's names of events, tools and arguments, and prints its answer as the agent
understands it. Gemini CLI denies a tool for `decision`, Copilot CLI takes context after a tool from the top level
of the answer. It prints nothing and exits 0 when anything is wrong: a hook never stops the agent.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, cast

STDIN_BYTES = 16 * 2**20
PATIENCE_S = 9
EVENTS = {"BeforeTool": "PreToolUse", "AfterTool": "PostToolUse"}
TOOLS = {
    "read_file": "Read",
    "replace": "Edit",
    "write_file": "Write",
    "run_shell_command": "Bash",
    "grep_search": "Grep",
    "search_file_content": "Grep",
    "glob": "Glob",
    "list_directory": "Glob",
}
ARGUMENTS = {"dir_path": "path", "absolute_path": "file_path"}


def asked(event: dict[str, Any]) -> dict[str, Any]:
    """The event in Claude Code's words. Unknown names stay as they are.

    >>> asked({"hook_event_name": "AfterTool", "tool_name": "glob", "tool_input": {"dir_path": "a"}})
    {'hook_event_name': 'PostToolUse', 'tool_name': 'Glob', 'tool_input': {'path': 'a'}}
    """
    given = event.get("tool_input")
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    name, tool = str(event.get("hook_event_name")), str(event.get("tool_name"))
    named = {ARGUMENTS.get(key, key): value for key, value in fields.items()}
    return {
        **event,
        "hook_event_name": EVENTS.get(name, name),
        "tool_name": TOOLS.get(tool, tool),
        "tool_input": named,
    }


def answered(answer: dict[str, Any], dialect: str, event: str) -> dict[str, Any]:
    """The answer in the agent's words. `event`: the event's name as the agent said it.

    >>> said = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}
    >>> answered(said, "gemini", "BeforeTool")
    {'decision': 'deny', 'reason': 'no'}
    >>> answered({"hookSpecificOutput": {"additionalContext": "text"}}, "copilot", "PostToolUse")
    {'additionalContext': 'text'}
    """
    said = {**cast("dict[str, Any]", answer.get("hookSpecificOutput") or {}), "hookEventName": event}
    if dialect == "gemini" and said.get("permissionDecision") == "deny":
        return {"decision": "deny", "reason": said.get("permissionDecisionReason", "")}
    if dialect == "copilot" and "additionalContext" in said:
        return {"additionalContext": said["additionalContext"]}
    return {"hookSpecificOutput": said}


def main(argv: list[str]) -> None:
    try:
        dialect, command = argv[argv.index("--dialect") + 1], argv[argv.index("--") + 1 :]
        event = cast("dict[str, Any]", json.loads(sys.stdin.buffer.read(STDIN_BYTES)))
        data = json.dumps(asked(event)).encode()
        ran = subprocess.run(command, input=data, capture_output=True, timeout=PATIENCE_S, check=False)
        if ran.returncode == 0 and ran.stdout.strip():
            answer = answered(json.loads(ran.stdout), dialect, str(event.get("hook_event_name")))
            sys.stdout.write(json.dumps(answer) + "\n")
    except Exception as error:
        sys.stderr.write(f"{error!r}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
