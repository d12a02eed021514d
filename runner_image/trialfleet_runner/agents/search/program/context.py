"""Reading files as an agent does: each costs a turn, the hook may speak, and nested context files are noticed."""

from __future__ import annotations

from pathlib import PurePosixPath

from .guidance import Guidance
from .hook import Hook
from .transcript import Transcript
from .workspace import Unreadable, Workspace

CONTEXT_FILES = ("AGENTS.md", "CLAUDE.md")


class Reader:
    """Reads through the transcript and lets guidance hear what comes with a file."""

    def __init__(self, workspace: Workspace, transcript: Transcript, guidance: Guidance, hook: Hook) -> None:
        self.workspace, self.transcript, self.guidance, self.hook = workspace, transcript, guidance, hook
        self._visited: set[str] = set()

    def root(self) -> None:
        """The root's context file is given at the start, as harnesses do: no turn."""
        for name in ("CLAUDE.md", "AGENTS.md"):
            try:
                text = self.workspace.text(name)
            except Unreadable:
                continue
            self.transcript.say("message", name, "given at the start")
            self.guidance.hear(text)
            return

    def read(self, path: str) -> bytes | None:
        """A file's content for one turn; None when it is not readable (the turn is spent). What the hook says is
        heard; where it says nothing, the nearest context file above, seen for the first time, is read too."""
        self.transcript.spend("read", path, "read")
        try:
            data = self.workspace.read(path)
        except Unreadable as error:
            self.transcript.say("message", path, str(error))
            return None
        text = self.hook.after_read(path)
        node = self._nearest(path)
        if text is not None:
            self.transcript.say("hook", path, text)
            self.guidance.hear(text, near=PurePosixPath(node).parent.as_posix() if node else "")
            self._visited.add(node or "")
        elif node is not None and node not in self._visited:
            self._node(node)
        return data

    def _node(self, node: str) -> None:
        self._visited.add(node)
        if self.transcript.left < 1:
            return
        self.transcript.spend("read", node, "read the context file of this folder")
        try:
            self.guidance.hear(self.workspace.text(node), near=PurePosixPath(node).parent.as_posix())
        except Unreadable as error:
            self.transcript.say("message", node, str(error))

    def _nearest(self, path: str) -> str | None:
        """The context file in the closest folder above `path`, the root's left out."""
        for folder in PurePosixPath(path).parents:
            if folder == PurePosixPath("."):
                return None
            for name in CONTEXT_FILES:
                if (self.workspace.root / folder / name).is_file():
                    return (folder / name).as_posix()
        return None
