"""Reading what an untrusted program wrote, and making it safe to keep. `display_text` has what shows it."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from trialfleet_ledger.display_text import ACTING

DETAIL_CHARS = 500
ANSWER_CHARS = 64_000
# A longer line is not a message of any agent; it is skipped, never held whole: JSON may take thirty times its
# length in memory, and the runner's container has 1 GiB.
LINE_BYTES = 16 * 2**20

# CSI, OSC (ended by BEL or ST), two-character escapes.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -~]?")


def plain(text: str, limit: int = DETAIL_CHARS) -> str:
    """For records: terminal escapes and all characters that act unseen removed; at most `limit` characters.

    >>> plain("\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07ok")
    'red ok'
    """
    clean = ACTING.sub("", _ESCAPES.sub("", text[: limit * 4]))
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def finite(value: object) -> float | None:
    """Seconds or dollars that a program wrote; None for what is neither: text, NaN, the negative, the endless.

    >>> finite(2), finite("2"), finite(float("nan")), finite(10**400)
    (2.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return float(value)


def relative(path: str, roots: tuple[str, ...]) -> str:
    """`path` relative to the first of `roots` that holds it, else as it is; always plain.

    >>> relative("/workspace/src/a.py", ("/workspace",))
    'src/a.py'
    """
    pure = PurePosixPath(path)
    for root in roots:
        if pure.is_relative_to(root):
            return plain(str(pure.relative_to(root)))
    return plain(str(pure))


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a file without their ends; nothing when it is missing, over-long lines as b""."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        while line := file.readline(LINE_BYTES):
            whole = line.endswith(b"\n") or len(line) < LINE_BYTES
            if not whole:
                while (rest := file.readline(LINE_BYTES)) and not rest.endswith(b"\n"):
                    pass
            yield line.rstrip(b"\r\n") if whole else b""


def regular_file(path: Path) -> BinaryIO | None:
    """The open file; None when what is at `path` is no regular one: a link, a pipe, a folder, nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    return None


def json_object(data: bytes | str) -> dict[str, Any]:
    """The JSON object that this is; an empty one for anything else.

    >>> json_object('{"a": 1}'), json_object("[1]"), json_object("{")
    ({'a': 1}, {}, {})
    """
    try:
        return mapping(json.loads(data))
    except (ValueError, RecursionError):
        return {}


def mapping(value: object) -> dict[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """The JSON objects of a JSON array; anything else has none."""
    if not isinstance(value, list):
        return []
    return [cast("dict[str, Any]", item) for item in cast("list[object]", value) if isinstance(item, dict)]
