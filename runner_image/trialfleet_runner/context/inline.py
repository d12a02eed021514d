"""Sections cut to a number of tokens, between items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trialfleet_runner.context.markdown import Kind, Line, blocks
from trialfleet_runner.context.sections import Section

ELLIPSIS = " …"


@dataclass(frozen=True)
class Inline:
    """What goes into the prompt; empty `text`: nothing fits, or there is nothing. `first` is its first item."""

    text: str
    tokens: int
    truncated: bool
    first: str


@dataclass(frozen=True)
class _Item:
    section: str
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @property
    def tight(self) -> bool:
        """Whether it may follow another item of its list without a blank line."""
        return self.lines[0].item


def _items(sections: Sequence[Section]) -> list[_Item]:
    return [_Item(section.title, tuple(piece)) for section in sections for piece in blocks(list(section.lines))]


def _joined(items: Sequence[_Item]) -> str:
    parts: list[str] = []
    for before, item in zip([None, *items], items, strict=False):
        if before is None or item.section != before.section:
            parts += ["\n\n" if parts else "", f"## {item.section}\n\n"]
        else:
            parts.append("\n" if item.tight and before.tight else "\n\n")
        parts.append(item.text)
    return "".join(parts)


def cut(
    sections: Sequence[Section],
    *,
    max_tokens: int,
    frame: Callable[[str], str],
    count: Callable[[str], int],
    truncate: Callable[[str, int], str],
) -> Inline:
    """As many whole items as fit, in order, with their sections' headings; `max_tokens` bounds `frame(text)`,
    that is all that is added to the prompt. It stops at the first item that does not fit. Only when that is the
    very first item is it cut inside, at a word. `truncated`: anything was left out."""
    items = _items(sections)
    if not items:
        return Inline("", 0, truncated=False, first="")
    kept = 0
    while kept < len(items) and count(frame(_joined(items[: kept + 1]))) <= max_tokens:
        kept += 1
    text = _joined(items[:kept]) if kept else _first_cut(items[0], max_tokens, frame, count, truncate)
    first = items[0].text if kept else text.partition("\n\n")[2]
    return Inline(text, count(frame(text)) if text else 0, kept < len(items), first)


def _first_cut(
    item: _Item,
    max_tokens: int,
    frame: Callable[[str], str],
    count: Callable[[str], int],
    truncate: Callable[[str, int], str],
) -> str:
    head = f"## {item.section}\n\n"
    room = max_tokens - count(frame(head))
    while room > 0:
        beginning = truncate(item.text, room).rstrip()
        if not beginning:
            return ""
        text = head + beginning + _closing(item, beginning)
        if count(frame(text)) <= max_tokens:
            return text
        room -= 1
    return ""


def _closing(item: _Item, beginning: str) -> str:
    """An ellipsis, or the end of the fence in which the cut fell."""
    lines = beginning.count("\n") + 1
    opened: str | None = None
    for line in item.lines[:lines]:
        if line.kind is Kind.FENCE:
            opened = line.text if opened is None else None
    if opened is None:
        return ELLIPSIS
    indent = opened[: len(opened) - len(opened.lstrip())]
    mark = opened.lstrip()[0]
    length = len(opened.lstrip()) - len(opened.lstrip().lstrip(mark))
    return f"\n{indent}{mark * length}"
