"""Markdown line by line, as far as context files need it: what is code, what is a heading, what is an item."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_FENCE = re.compile(r"^( *)(`{3,}|~{3,})(.*)$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_MARKER = re.compile(r"^( *)([-*+]|\d{1,9}[.)])( +|$)")


class Kind(StrEnum):
    PROSE = "prose"
    BLANK = "blank"
    HEADING = "heading"
    FENCE = "fence"  # the line that opens or closes a fenced block
    CODE = "code"  # a line inside a fenced block, or of an indented one
    COMMENT = "comment"  # HTML


@dataclass(frozen=True, slots=True)
class Line:
    """`level` and `title` of a heading; `item`: it starts a list item, `top`: one of an outermost list."""

    text: str
    kind: Kind
    level: int = 0
    title: str = ""
    item: bool = False
    top: bool = False
    block: int = 0  # number of the fenced block that the line belongs to; 0: none


def normal(text: str) -> str:
    """One kind of line end, and no byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def marker(line: str) -> tuple[int, int] | None:
    """Indent of a list item's marker and of its content; None when the line starts no item.

    >>> marker("  - text"), marker("12. text"), marker("-text")
    ((2, 4), (0, 4), None)
    """
    found = _MARKER.match(line)
    if found is None:
        return None
    return len(found[1]), len(found[1]) + len(found[2]) + max(1, min(len(found[3]), 4))


class _Scanner:
    """CommonMark's rules for fences, headings, indented code and comments; lists only as indentation. One
    leniency: a line too far to the left does not end a fence inside a list item, for it is still meant as code.
    """

    def __init__(self) -> None:
        self.fence: str | None = None
        self.offset = 0  # of the list item that holds the fence
        self.blocks = 0
        self.contents: list[int] = []  # content columns of the list items that are open
        self.comment = False
        self.paragraph = False

    def line(self, text: str) -> Line:
        rest = text.lstrip("\t ")
        text = text[: len(text) - len(rest)].expandtabs(4) + rest
        if self.fence is not None:
            return self._inside_fence(text)
        if self.comment:
            self.comment = "-->" not in text
            return Line(text, Kind.COMMENT)
        if not text.strip():
            self.paragraph = False
            return Line(text, Kind.BLANK)
        return self._outside(text)

    def _inside_fence(self, text: str) -> Line:
        assert self.fence is not None
        found = _FENCE.match(text)
        closes = found and found[2].startswith(self.fence) and not found[3].strip()
        if found and closes and len(found[1]) - self.offset <= 3:
            self.fence = None
            return Line(text, Kind.FENCE, block=self.blocks)
        return Line(text, Kind.CODE, block=self.blocks)

    def _outside(self, text: str) -> Line:
        indent = len(text) - len(text.lstrip(" "))
        item = marker(text)
        if not self.paragraph or item is not None:
            while self.contents and indent < self.contents[-1]:
                self.contents.pop()
        within = indent - (self.contents[-1] if self.contents else 0)
        opened = _FENCE.match(text)
        if opened and within <= 3 and not (opened[2][0] == "`" and "`" in opened[3]):
            self.fence, self.paragraph = opened[2], False
            self.offset = self.contents[-1] if self.contents else 0
            self.blocks += 1
            return Line(text, Kind.FENCE, block=self.blocks)
        if item is not None and within <= 3:
            top = not self.contents
            self.contents.append(item[1])
            self.paragraph = True
            return Line(text, Kind.PROSE, item=True, top=top)
        if within > 3 and not self.paragraph:
            return Line(text, Kind.CODE)
        heading = _HEADING.match(text)
        if heading and not (self.contents and indent >= self.contents[-1]):
            self.contents, self.paragraph = [], False
            return Line(text, Kind.HEADING, level=len(heading[1]), title=heading[2] or "")
        if text.lstrip().startswith("<!--") and not self.paragraph:
            self.comment = "-->" not in text
            return Line(text, Kind.COMMENT)
        self.paragraph = True
        return Line(text, Kind.PROSE)


def scan(text: str) -> list[Line]:
    """Every line of `text` with its kind. Joining the lines' texts with newlines gives the text back, but for
    line ends and leading tabs."""
    scanner = _Scanner()
    return [scanner.line(line) for line in normal(text).split("\n")]


def blocks(lines: list[Line]) -> list[list[Line]]:
    """The pieces that may be cut apart: a top-level list item with all that belongs to it, a paragraph, a fenced
    block. A heading stays with what follows it;
    blank lines between pieces are dropped."""
    pieces: list[list[Line]] = []
    blank_before = True
    for line in lines:
        heading_only = bool(pieces) and all(x.kind in (Kind.HEADING, Kind.BLANK) for x in pieces[-1])
        if line.kind is Kind.BLANK:
            blank_before = True
            if pieces:
                pieces[-1].append(line)
            continue
        starts = (
            not pieces
            or (line.kind is Kind.HEADING)
            or (line.item and line.top)
            or (blank_before and not line.text.startswith(" ") and line.kind is not Kind.CODE)
        )
        if starts and not heading_only and not (line.block and pieces and _in_block(pieces[-1], line.block)):
            pieces.append([])
        pieces[-1].append(line)
        blank_before = False
    return [_stripped(piece) for piece in pieces]


def _in_block(piece: list[Line], block: int) -> bool:
    return any(line.block == block for line in piece)


def _stripped(piece: list[Line]) -> list[Line]:
    while piece and piece[-1].kind is Kind.BLANK:
        piece = piece[:-1]
    return piece
