"""How text that others wrote is shown, for each kind of output: the only place that decides.

Names, messages, logs, patches and trajectories come from agents, repositories and stores. Characters that act
without being seen (terminal escapes, direction of writing, zero width, tags) appear as marks.

| output | function |
|---|---|
| terminal, text in HTML | `visible`; `one_line` for names and messages |
| Markdown | `markdown` |
| CSV | `csv_cell` |
| JSON that is printed | `printable_json` |
"""

from __future__ import annotations

import re
from typing import Any

LONGEST_LINE = 600  # characters of a name or message
# Unicode: controls but newline and tab, format characters, Default_Ignorable_Code_Point, line separators,
# surrogates, private use and noncharacters. A variation selector may follow a symbol, as in emoji.
ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U0001fffe\U0001ffff\U000e0000-\U0010ffff]"
    "|(?<![#*0-9©®\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
)
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]")
_MARKUP = re.compile(r"[\\`*\[\]#|~!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def visible(text: str, longest: int | None = None) -> str:
    """All lines, with marks for characters that would act unseen; at most `longest` characters.

    >>> visible("a\\x1b[31m\\u202eb\\r\\n"), visible("x" * 9, 5)
    ('a␛[31m⟨U+202E⟩b\\n', 'xxxx…')
    """
    part = text if longest is None else text[: longest + 1]
    shown = part if part.isascii() and part.isprintable() else ACTING.sub(_mark, part.replace("\r\n", "\n"))
    return shown if longest is None or len(shown) <= longest else shown[: longest - 1] + "…"


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """`visible` text whose line breaks and other white space are single blanks.

    >>> one_line("a\\x1b[31mred\\nline"), one_line("x" * 9, longest=5)
    ('a␛[31mred line', 'xxxx…')
    """
    return visible(" ".join(text.split()), longest)


def markdown(text: str, longest: int = LONGEST_LINE) -> str:
    """`one_line` text that Markdown and the HTML inside it leave alone, also inside a table.

    >>> markdown("<b>|_x_")
    '&lt;b&gt;\\\\|\\\\_x\\\\_'
    """
    escaped = one_line(text, longest).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\g<0>", escaped)


def csv_cell(text: str) -> str:
    """`visible` text that no spreadsheet takes for a formula: such a cell begins with an apostrophe.

    >>> csv_cell("=HYPERLINK(1)"), csv_cell("a-b")
    ("'=HYPERLINK(1)", 'a-b')
    """
    shown = visible(text)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def printable_json(value: Any, *, indent: int | None = None) -> str:
    """JSON in printable ASCII, which any parser reads back to the same value. Raises `ValueError` for numbers that
    JSON lacks.

    >>> printable_json({"a": "é\\x7f"})
    '{"a": "\\\\u00e9\\\\u007f"}'
    """
    import json

    return json.dumps(value, indent=indent, allow_nan=False).replace("\x7f", "\\u007f")


def _mark(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
