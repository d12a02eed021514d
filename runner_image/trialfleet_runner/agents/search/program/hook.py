"""The on-read hook, called as Claude Code calls it: event on stdin, additional context on stdout."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

_TIMEOUT_S = 10.0
_LONGEST = 200_000


@dataclass(frozen=True)
class Hook:
    """`argv` is None when the condition has no hook. A hook that fails says nothing: it never blocks."""

    argv: tuple[str, ...] | None
    workspace: Path
    session: str

    def after_read(self, path: str) -> str | None:
        """The text that reading `path` (relative) brings; None when there is none."""
        if self.argv is None:
            return None
        event = {
            "session_id": self.session,
            "cwd": str(self.workspace),
            "hook_event_name": "PostToolUse",
            "tool_name": "Read",
            "tool_input": {"file_path": str(self.workspace / path)},
        }
        try:
            done = subprocess.run(
                self.argv, input=json.dumps(event).encode(), capture_output=True, timeout=_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return additional_context(done.stdout) if done.returncode == 0 else None


def additional_context(answer: bytes) -> str | None:
    """`hookSpecificOutput.additionalContext` of a hook's answer; None when it is absent or malformed.

    >>> additional_context(b'{"hookSpecificOutput": {"additionalContext": "mind the gap"}}')
    'mind the gap'
    """
    try:
        value = json.loads(answer[:_LONGEST] or b"null")
    except ValueError:
        return None
    inner = _field(value, "hookSpecificOutput")
    text = _field(inner, "additionalContext")
    return text if isinstance(text, str) and text.strip() else None


def _field(value: object, name: str) -> object:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
