"""A tool's call as a step, where nothing is known of the tool but its name and its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trialfleet_agents.shell_command import read_command
from trialfleet_agents.tool_steps import PATHS, first_text, patched
from trialfleet_ledger.trajectory import Step
from trialfleet_ledger.untrusted import plain, relative

_KIND_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("edit", ("edit", "write", "replace", "patch", "insert", "create")),
    ("read", ("read", "view", "cat", "open")),
    ("search", ("grep", "glob", "search", "find", "list", "ls")),
    ("run", ("bash", "shell", "run", "exec", "terminal", "command")),
)
_COMMANDS = ("command", "cmd", "script")


def tool_kind(name: str) -> str:
    """Which kind of step a tool's name announces. A tool of an MCP server does nothing to the workspace's files.

    >>> tool_kind("str_replace_editor"), tool_kind("view_file"), tool_kind("mcp__shop__create_order")
    ('edit', 'read', 'other')
    """
    lowered = name.lower()
    if lowered.startswith("mcp__"):
        return "other"
    return next((kind for kind, words in _KIND_WORDS if any(word in lowered for word in words)), "other")


def called_step(
    name: str,
    given: Mapping[str, Any],
    *,
    turn: int,
    at_s: float | None,
    roots: tuple[str, ...],
    kinds: Mapping[str, str] | None = None,
) -> Step:
    """`given`: the arguments. `roots`: the workspace, under every name that it has. `kinds`: tool -> kind of step,
    where the tool's name does not say it. A shell's command that only reads counts as such. Raises
    `ValidationError` where turn or time cannot be."""
    kind = (kinds or {}).get(name) or tool_kind(name)
    path, detail = first_text(given, *PATHS), first_text(given, *_COMMANDS)
    if detail is not None and kind in ("run", "other"):
        kind, path = read_command(detail)
    elif kind == "edit" and path is None:
        path = patched(given)
    return Step.model_validate(
        {
            "turn": turn,
            "at_s": at_s,
            "kind": kind,
            "tool": plain(name, 100),
            "path": None if path is None else relative(path, roots),
            "detail": None if detail is None else plain(detail),
        }
    )
