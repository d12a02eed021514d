"""Reads files as an agent does: each read uses a turn, runs the on-read hook and loads nested context files.

The hook runs as Claude Code runs it: event on stdin, additional context on stdout.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .guidance import Guidance
from .transcript import Transcript
from .workspace import Unreadable, Workspace

_TIMEOUT_S = 10.0
_LONGEST = 200_000


@dataclass(frozen=True)
class Hook:
    """`argv` is None when the condition has no hook. A failing hook gives no text and never blocks."""

    argv: tuple[str, ...] | None
    workspace: Path
    session: str

    def after_read(self, path: str) -> str | None:
        """The hook's text for a read of `path` (relative); None when there is none."""
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
        text = json.loads(answer[:_LONGEST])["hookSpecificOutput"]["additionalContext"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return text if isinstance(text, str) and text.strip() else None


CONTEXT_FILES = ("AGENTS.md", "CLAUDE.md")


class GuidedReader:
    """Records reads in the transcript and adds the text of hooks and context files to the guidance."""

    def __init__(self, workspace: Workspace, transcript: Transcript, guidance: Guidance, hook: Hook) -> None:
        self.workspace, self.transcript, self.guidance, self.hook = workspace, transcript, guidance, hook
        self._visited: set[str] = set()

    def root(self) -> None:
        """Load the root's context file, as harnesses do at the start: uses no turn."""
        for name in ("CLAUDE.md", "AGENTS.md"):
            try:
                text = self.workspace.text(name)
            except Unreadable:
                continue
            self.transcript.record("message", name, "given at the start")
            self.guidance.add_text(text)
            return

    def read(self, path: str) -> bytes | None:
        """A file's content for one turn; None when it is unreadable (the turn is used). The hook's text is added
        to the guidance. Without hook text, the nearest context file above is read too, once."""
        self.transcript.use_turn("read", path, "read")
        try:
            data = self.workspace.read(path)
        except Unreadable as error:
            self.transcript.record("message", path, str(error))
            return None
        text = self.hook.after_read(path)
        node = self._nearest(path)
        if text is not None:
            self.transcript.record("hook", path, text)
            self.guidance.add_text(text, near=PurePosixPath(node).parent.as_posix() if node else "")
            self._visited.add(node or "")
        elif node is not None and node not in self._visited:
            self._node(node)
        return data

    def _node(self, node: str) -> None:
        self._visited.add(node)
        if self.transcript.left < 1:
            return
        self.transcript.use_turn("read", node, "read the context file of this folder")
        try:
            self.guidance.add_text(self.workspace.text(node), near=PurePosixPath(node).parent.as_posix())
        except Unreadable as error:
            self.transcript.record("message", node, str(error))

    def _nearest(self, path: str) -> str | None:
        """The context file in the closest folder above `path`, except the root's."""
        for folder in PurePosixPath(path).parents:
            if folder == PurePosixPath():
                return None
            for name in CONTEXT_FILES:
                if (self.workspace.root / folder / name).is_file():
                    return (folder / name).as_posix()
        return None
