"""The translator between Claude Code's hooks and those of other agents, as a program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trialfleet_agents.hook_scripts import FOLDER

SCRIPT = FOLDER / "translate_hook.py"


def translated(dialect: str, event: object, *command: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-I", str(SCRIPT), "--dialect", dialect, "--", *command]
    data = event if isinstance(event, str) else json.dumps(event)
    return subprocess.run(argv, input=data, capture_output=True, text=True, check=True)


def on_read(tmp_path: Path) -> list[str]:
    """The hook itself, with one node to push."""
    (tmp_path / "context/sub").mkdir(parents=True)
    (tmp_path / "context/sub/AGENTS.md").write_text("About sub.")
    places = {"--workspace": "/workspace", "--context": tmp_path / "context", "--log": tmp_path / "log.jsonl"}
    options = [str(word) for pair in places.items() for word in pair]
    return [sys.executable, "-I", str(FOLDER / "push_on_read.py"), *options]


@pytest.mark.parametrize(
    ("dialect", "event", "answer"),
    [
        (
            "gemini",
            {"hook_event_name": "AfterTool", "tool_name": "read_file", "tool_input": {"file_path": "sub/a.py"}},
            {"hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "About sub."}},
        ),
        (
            "gemini",
            {"hook_event_name": "AfterTool", "tool_name": "list_directory", "tool_input": {"dir_path": "sub/x"}},
            {"hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "About sub."}},
        ),
        (
            "copilot",
            {"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {"path": "/workspace/sub/a.py"}},
            {"additionalContext": "About sub."},
        ),
    ],
)
def test_what_the_hook_says_reaches_the_agent_in_its_form(
    tmp_path: Path, dialect: str, event: dict[str, Any], answer: dict[str, Any]
) -> None:
    hook = on_read(tmp_path)
    event = {"session_id": "s", "cwd": "/workspace", **event}
    assert json.loads(translated(dialect, event, *hook).stdout) == answer
    assert translated(dialect, event, *hook).stdout == ""  # once per session


def test_a_denial_reaches_gemini_as_a_decision(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    options = ["--workspace", str(workspace), "--log", str(tmp_path / "log.jsonl"), "--reason", "Not again."]
    hook = [sys.executable, "-I", str(FOLDER / "fail_fast.py"), *options]
    event = {
        "hook_event_name": "BeforeTool",
        "tool_name": "run_shell_command",
        "tool_input": {"command": "pytest -q"},
    }
    first, second, third = (translated("gemini", event, *hook).stdout for _ in range(3))
    assert (first, second) == ("", "")
    assert json.loads(third) == {"decision": "deny", "reason": "Not again."}


@pytest.mark.parametrize("event", ["", "[]", "{", '{"tool_input": 3}', "null"])
def test_a_broken_event_stops_nobody(tmp_path: Path, event: str) -> None:
    assert translated("gemini", event, *on_read(tmp_path)).stdout == ""


@pytest.mark.parametrize("command", [["/nonexistent"], ["/bin/sh", "-c", "echo nonsense"], []])
def test_a_broken_command_stops_nobody(command: list[str]) -> None:
    assert translated("copilot", {"hook_event_name": "PostToolUse"}, *command).stdout == ""
