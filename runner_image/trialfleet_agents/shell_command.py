"""What a shell command does to files: the same step as the tool that does it, so that agents can be compared."""

from __future__ import annotations

import re
import shlex
from typing import Literal

from trialfleet_deliveries.hooks.fail_fast import reads_only

_READERS = {"cat", "head", "tail", "nl", "less", "more", "bat", "sed"}
_SEARCHERS = {"grep", "rg", "ag", "find", "fd", "ls", "tree"}
_WRITTEN = re.compile(r"(?:>>?|\btee(?: -a)?)\s*([^\s<>&|;'\"]+)")
_EDITOR = re.compile(r"\b(?:sed|perl)\b")
_IN_PLACE = re.compile(r"\s-\w*i")
_PLACE = re.compile(r"^cd (?:/\S+|\.) *&& *")
_LONGEST = 20_000  # characters that are read: shlex takes a minute for a word of a million


def read_command(command: str) -> tuple[Literal["read", "edit", "search", "run"], str | None]:
    """Kind of step, and the file that it is about.

    >>> read_command("cd /workspace && sed -n '1,40p' src/a.py"), read_command("rg -n price src | head")
    (('read', 'src/a.py'), ('search', None))
    >>> read_command("cat > src/a.py <<'EOF'\\nx = 1\\nEOF"), read_command("sed -i s/1/2/ src/a.py")
    (('edit', 'src/a.py'), ('edit', 'src/a.py'))
    >>> read_command("python -m pytest -q 2>/dev/null")
    ('run', None)
    """
    plain = _PLACE.sub("", command.strip()[:_LONGEST])
    head = plain.partition("\n")[0]
    written = next((name for name in _WRITTEN.findall(head) if not name.startswith("/dev/")), None)
    if _edits_in_place(head):
        return "edit", _last_word(head)
    if written is not None:
        return "edit", written
    name = head.split(" ", 1)[0]
    if name in _READERS and reads_only(plain):
        return "read", _last_word(head.partition("|")[0])
    if name in _SEARCHERS and reads_only(plain):
        return "search", None
    return "run", None


def _edits_in_place(command: str) -> bool:
    """Two steps for each part: in one pattern, a long line that names sed often would take hours."""
    named = ((part, _EDITOR.search(part)) for part in re.split(r"[|;&]", command))
    return any(editor and _IN_PLACE.search(part, editor.end()) for part, editor in named)


def _last_word(command: str) -> str | None:
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return words[-1] if len(words) > 1 and not words[-1].startswith("-") else None
