"""Sanitizes text from outside (task names, messages of losses, reasons) before it is shown."""

from __future__ import annotations

import re
import unicodedata

_SPECIAL = re.compile(r"[\\`*\[\]#|~!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
LONGEST = 600  # characters of one text


def plain(text: str, longest: int = LONGEST) -> str:
    """One line of printable text: no terminal escapes, no bidirectional overrides, no line breaks.

    >>> plain("a\\x1b[31mred\\nline"), plain("x" * 9, longest=5)
    ('a�[31mred line', 'xxxx…')
    """
    flat = " ".join(text.split())
    safe = flat if flat.isascii() and flat.isprintable() else "".join(map(_printable, flat))
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"


def markdown(text: str, longest: int = LONGEST) -> str:
    """`plain` text that Markdown and the HTML inside it leave alone, also inside a table.

    >>> markdown("<b>|_x_")
    '&lt;b&gt;\\\\|\\\\_x\\\\_'
    """
    escaped = plain(text, longest).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\g<0>", escaped)


def _printable(char: str) -> str:
    return "�" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co") else char
