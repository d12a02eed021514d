"""Text of agents, tests and files within the limits of a page."""

from __future__ import annotations

from trialfleet_ledger.display_text import visible

LONGEST = 400_000  # characters of one text on a page; the file itself is one click away
LONGEST_LINE = 4_000


def excerpt(text: str, longest: int = LONGEST) -> str:
    """`visible` text within a page's limits: over-long lines and texts lose their middle, and say so."""
    return "\n".join(
        cut(line, LONGEST_LINE, "characters") for line in cut(visible(text), longest, "characters").split("\n")
    )


def cut(text: str, longest: int, unit: str) -> str:
    """
    >>> cut("x" * 20, 8, "characters")
    'xxxx [… 12 characters left out …] xxxx'
    """
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} [… {len(text) - 2 * half:,} {unit} left out …] {text[len(text) - half :]}"
