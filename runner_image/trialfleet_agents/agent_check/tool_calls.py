"""How the model of each agent calls its tools: what a script must say so that the real program acts on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trialfleet_agents.agent_check.scripted_answers import Call


@dataclass(frozen=True)
class ToolCalls:
    """`model`: a name that the program accepts. `read` and `run` make the calls with which the model would read
    a file (a path of the workspace, which is at /workspace) and run a command. `ends`: what it calls when it is
    done; an agent without such a tool ends by itself."""

    model: str
    read: Callable[[str], Call]
    run: Callable[[str], Call]
    ends: tuple[Call, ...] = ()


def _described(tool: str) -> Callable[[str], Call]:
    return lambda command: Call(tool, {"command": command, "description": "d"})


def _reading(tool: str, argument: str) -> Callable[[str], Call]:
    return lambda path: Call(tool, {argument: f"/workspace/{path}"})


TOOL_CALLS = {
    "claude-code": ToolCalls(
        model="claude-sonnet-4-6",
        read=_reading("Read", "file_path"),
        run=_described("Bash"),
    ),
    "codex": ToolCalls(
        model="gpt-5.5",
        read=lambda path: Call("exec_command", {"cmd": f"cat {path}"}),
        run=lambda command: Call("exec_command", {"cmd": command, "yield_time_ms": 20_000}),
    ),
    "copilot": ToolCalls(model="gpt-5.5", read=_reading("view", "path"), run=_described("bash")),
    "opencode": ToolCalls(model="claude-sonnet-4-6", read=_reading("read", "filePath"), run=_described("bash")),
    "gemini": ToolCalls(
        model="gemini-2.5-pro",
        read=_reading("read_file", "file_path"),
        run=lambda command: Call("run_shell_command", {"command": command}),
    ),
    "mini-swe-agent": ToolCalls(
        model="gpt-5.5",
        read=lambda path: Call("bash", {"command": f"cat {path}"}),
        run=lambda command: Call("bash", {"command": command}),
        ends=(Call("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}),),
    ),
}
