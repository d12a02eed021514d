"""Reading `live.log.zst`: what an agent has printed so far."""

from __future__ import annotations

import zstandard

LOG_CAP = 64 * 2**20


def inflated(raw: bytes, most: int = LOG_CAP) -> str:
    """Its text, up to `most` bytes."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(raw) as reader:
            return reader.read(most).decode(errors="replace")
    except zstandard.ZstdError:
        return "[the live log cannot be read]\n"


def last_lines(text: str, most: int, longest: int = 300) -> str:
    """The end of a text: at most so many lines, each at most so long.

    >>> last_lines("a\\nbcdef\\nc\\n", 2, longest=3)
    'bcd…\\nc'
    """
    lines = text.rstrip("\n").split("\n")[-most:]
    return "\n".join(line if len(line) <= longest else f"{line[:longest]}…" for line in lines)
