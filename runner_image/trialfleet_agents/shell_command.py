"""Which shell commands only read or search: the same step as the tool that does it, so that agents can be
compared. What a command writes is not read from it: the workspace shows that."""

from __future__ import annotations

import re
import shlex
from typing import Literal

from trialfleet_deliveries.hooks.fail_fast import reads_only

_READERS = {"cat", "head", "tail", "nl", "less", "more", "bat", "sed"}
_SEARCHERS = {"grep", "rg", "ag", "find", "fd", "ls", "tree"}
_PLACE = re.compile(r"^cd (?:/\S+|\.) *&& *")
_LONGEST = 20_000  # characters that are read: shlex takes a minute for a word of a million


def read_command(command: str) -> tuple[Literal["read", "search", "run"], str | None]:
    """Kind of step, and the file that it reads.

    >>> read_command("cd /workspace && sed -n '1,40p' src/a.py"), read_command("rg -n price src | head")
    (('read', 'src/a.py'), ('search', None))
    >>> read_command("cat > src/a.py <<'EOF'\\nx = 1\\nEOF"), read_command("python -m pytest -q 2>/dev/null")
    (('run', None), ('run', None))
    """
    plain = _PLACE.sub("", command.strip()[:_LONGEST])
    head = plain.partition("\n")[0]
    name = head.split(" ", 1)[0]
    if name in _READERS and reads_only(plain):
        return "read", _last_word(head.partition("|")[0])
    if name in _SEARCHERS and reads_only(plain):
        return "search", None
    return "run", None


def _last_word(command: str) -> str | None:
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return words[-1] if len(words) > 1 and not words[-1].startswith("-") else None
