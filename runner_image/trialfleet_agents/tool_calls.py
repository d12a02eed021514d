"""How the model of each agent calls its tools: what a script must say so that the real program acts on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Call(NamedTuple):
    """One call of a tool. `given`: its arguments; a text for a tool that takes free text. `namespace`: of the
    tool, in the Responses API."""

    name: str
    given: Mapping[str, Any] | str
    namespace: str | None = None


@dataclass(frozen=True)
class ToolCalls:
    """`model`: a name that the program accepts. `read` and `run` make the calls with which the model would read
    a file (a path of the workspace, which is at /workspace) and run a command. `ends`: what it calls when it is
    done; an agent without such a tool ends by itself."""

    model: str
    read: Callable[[str], Call]
    run: Callable[[str], Call]
    ends: tuple[Call, ...] = ()


def call_shell(tool: str) -> Callable[[str], Call]:
    """Of a shell that wants each command described."""
    return lambda command: Call(tool, {"command": command, "description": "d"})


def call_reader(tool: str, argument: str) -> Callable[[str], Call]:
    """Of a tool that takes the file's whole path in `argument`."""
    return lambda path: Call(tool, {argument: f"/workspace/{path}"})
