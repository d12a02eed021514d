"""Reading `live.log.zst`: what an agent has printed so far."""

from __future__ import annotations

from backports import zstd

LOG_CAP = 64 * 2**20


def inflated(raw: bytes, most: int = LOG_CAP) -> str:
    """Its text, up to `most` bytes."""
    try:
        return zstd.ZstdDecompressor().decompress(raw, most).decode(errors="replace")
    except zstd.ZstdError:
        return "[the live log cannot be read]\n"


def last_lines(text: str, most: int, longest: int = 300) -> str:
    """The end of a text: at most so many lines, each at most so long.

    >>> last_lines("a\\nbcdef\\nc\\n", 2, longest=3)
    'bcd…\\nc'
    """
    lines = text.rstrip("\n").split("\n")[-most:]
    return "\n".join(line if len(line) <= longest else f"{line[:longest]}…" for line in lines)
