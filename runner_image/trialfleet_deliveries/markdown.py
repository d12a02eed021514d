"""Markdown as lines, each with its kind, and sections by second-level heading. Headings in code do not count."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

_FENCE = re.compile(r"^( *)(`{3,}|~{3,})(.*)$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_MARKER = re.compile(r"^( *)([-*+]|\d{1,9}[.)])( +|$)")


class LineKind(StrEnum):
    PROSE = "prose"
    BLANK = "blank"
    HEADING = "heading"
    FENCE = "fence"  # the line that opens or closes a fenced block
    CODE = "code"  # a line inside a fenced block, or of an indented one
    COMMENT = "comment"  # HTML


@dataclass(frozen=True, slots=True)
class MarkdownLine:
    """`level` and `title`: of a heading. `item`: the line starts a list item. `top`: of an outermost list."""

    text: str
    kind: LineKind
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
    exception: a line to the left of a list item does not end the item's fence, because authors still mean code.

    That is why this is not markdown-it-py, which has no such exception and takes ten times as long on plain text.
    """

    def __init__(self) -> None:
        self.fence: str | None = None
        self.offset = 0  # of the list item that holds the fence
        self.blocks = 0
        self.contents: list[int] = []  # content columns of the list items that are open
        self.comment = False
        self.paragraph = False

    def line(self, text: str) -> MarkdownLine:
        rest = text.lstrip("\t ")
        text = text[: len(text) - len(rest)].expandtabs(4) + rest
        if self.fence is not None:
            return self._inside_fence(text)
        if self.comment:
            self.comment = "-->" not in text
            return MarkdownLine(text, LineKind.COMMENT)
        if not text.strip():
            self.paragraph = False
            return MarkdownLine(text, LineKind.BLANK)
        return self._outside(text)

    def _inside_fence(self, text: str) -> MarkdownLine:
        assert self.fence is not None
        found = _FENCE.match(text)
        closes = found and found[2].startswith(self.fence) and not found[3].strip()
        if found and closes and len(found[1]) - self.offset <= 3:
            self.fence = None
            return MarkdownLine(text, LineKind.FENCE, block=self.blocks)
        return MarkdownLine(text, LineKind.CODE, block=self.blocks)

    def _outside(self, text: str) -> MarkdownLine:
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
            return MarkdownLine(text, LineKind.FENCE, block=self.blocks)
        if item is not None and within <= 3:
            top = not self.contents
            self.contents.append(item[1])
            self.paragraph = True
            return MarkdownLine(text, LineKind.PROSE, item=True, top=top)
        if within > 3 and not self.paragraph:
            return MarkdownLine(text, LineKind.CODE)
        heading = _HEADING.match(text)
        if heading and not (self.contents and indent >= self.contents[-1]):
            self.contents, self.paragraph = [], False
            return MarkdownLine(text, LineKind.HEADING, level=len(heading[1]), title=heading[2] or "")
        if text.lstrip().startswith("<!--") and not self.paragraph:
            self.comment = "-->" not in text
            return MarkdownLine(text, LineKind.COMMENT)
        self.paragraph = True
        return MarkdownLine(text, LineKind.PROSE)


def scan(text: str) -> list[MarkdownLine]:
    """Every line of `text` with its kind. Joined with newlines, the lines give the text back, except line ends and
    leading tabs."""
    scanner = _Scanner()
    return [scanner.line(line) for line in normal(text).split("\n")]


def blocks(lines: list[MarkdownLine]) -> list[list[MarkdownLine]]:
    """The pieces between which text may be cut: a top-level list item with everything below it, a paragraph, a
    fenced block. A heading stays with the piece after it. Blank lines between pieces are dropped."""
    pieces: list[list[MarkdownLine]] = []
    blank_before = True
    for line in lines:
        heading_only = bool(pieces) and all(x.kind in (LineKind.HEADING, LineKind.BLANK) for x in pieces[-1])
        if line.kind is LineKind.BLANK:
            blank_before = True
            if pieces:
                pieces[-1].append(line)
            continue
        starts = (
            not pieces
            or (line.kind is LineKind.HEADING)
            or (line.item and line.top)
            or (blank_before and not line.text.startswith(" ") and line.kind is not LineKind.CODE)
        )
        if starts and not heading_only and not (line.block and pieces and _in_block(pieces[-1], line.block)):
            pieces.append([])
        pieces[-1].append(line)
        blank_before = False
    return [_stripped(piece) for piece in pieces]


def _in_block(piece: list[MarkdownLine], block: int) -> bool:
    return any(line.block == block for line in piece)


def _stripped(piece: list[MarkdownLine]) -> list[MarkdownLine]:
    while piece and piece[-1].kind is LineKind.BLANK:
        piece = piece[:-1]
    return piece


HOOK_SECTIONS = ("Pitfalls", "Contracts", "Patterns")


@dataclass(frozen=True)
class MarkdownSection:
    """One `## title` with everything below it, subsections too, up to the next first- or second-level heading."""

    title: str
    lines: tuple[MarkdownLine, ...]

    @property
    def body(self) -> str:
        """The text below the heading, without blank lines around it."""
        return "\n".join(line.text for line in self.lines).strip("\n")

    @property
    def text(self) -> str:
        return f"## {self.title}\n\n{self.body}"


def split(text: str) -> tuple[MarkdownSection, ...]:
    """All second-level sections in order. Text before the first one belongs to no section."""
    found: list[tuple[str, list[MarkdownLine]]] = []
    open_ = False
    for line in scan(text):
        if line.kind is LineKind.HEADING and line.level <= 2:
            open_ = line.level == 2
            if open_:
                found.append((line.title, []))
        elif open_:
            found[-1][1].append(line)
    return tuple(MarkdownSection(title, tuple(lines)) for title, lines in found)


def select(text: str, titles: Sequence[str]) -> tuple[MarkdownSection, ...]:
    """The sections with exactly these titles, in the order of `titles`, without empty ones. Sections of one title
    are joined."""
    everything = split(text)
    chosen: list[MarkdownSection] = []
    for title in dict.fromkeys(titles):
        lines = [line for section in everything if section.title == title for line in section.lines]
        if any(line.text.strip() for line in lines):
            chosen.append(MarkdownSection(title, tuple(lines)))
    return tuple(chosen)
