"""Text of agents, tests and files, shown as it is: characters that steer a terminal or the direction of writing
appear as marks instead of acting."""

from __future__ import annotations

import re

LONGEST = 400_000  # characters of one text on a page; the file itself is one click away
LONGEST_LINE = 4_000

# Controls but newline and tab; soft hyphen, zero-width and direction characters, tags, surrogates, private use.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\ue000-\uf8ff\U000e0000-\U000e007f\U000f0000-\U0010ffff]"
)


def visible(text: str) -> str:
    """Every line, with marks for what would act unseen.

    >>> visible("a\\x1b[31m\\u202eb\\r\\n")
    'a␛[31m⟨U+202E⟩b\\n'
    """
    return _ACTING.sub(_mark, text.replace("\r\n", "\n"))


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


def _mark(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
