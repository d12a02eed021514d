"""Inline texts of a limited number of tokens. They are made when a campaign is planned: a runner that counted
tokens would load the vocabulary in every attempt."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trialfleet_deliveries import tokens
from trialfleet_deliveries.context_tree import decode_texts, strip_tree
from trialfleet_deliveries.markdown import LineKind, MarkdownLine, MarkdownSection, blocks, select
from trialfleet_deliveries.naming import framed, naming, two_lines
from trialfleet_deliveries.nodes import covering_node
from trialfleet_deliveries.texts import render
from trialfleet_ledger.records.condition_order import InlineSpec

ELLIPSIS = " …"


@dataclass(frozen=True)
class Inline:
    """What goes into the prompt; empty `text`: nothing fits, or there is nothing. `node`: whose text it is."""

    text: str
    tokens: int
    truncated: bool
    node: str | None = None


@dataclass(frozen=True)
class _Item:
    section: str
    lines: tuple[MarkdownLine, ...]

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @property
    def tight(self) -> bool:
        """Whether it may follow another item of its list without a blank line."""
        return self.lines[0].item


def _joined(items: Sequence[_Item]) -> str:
    parts: list[str] = []
    for before, item in zip([None, *items], items, strict=False):
        if before is None or item.section != before.section:
            parts += ["\n\n" if parts else "", f"## {item.section}\n\n"]
        else:
            parts.append("\n" if item.tight and before.tight else "\n\n")
        parts.append(item.text)
    return "".join(parts)


def cut(sections: Sequence[MarkdownSection], *, max_tokens: int, frame: Callable[[str], str]) -> Inline:
    """As many whole items as fit, in order, with their sections' headings; `max_tokens` bounds `frame(text)`,
    that is all that is added to the prompt. It stops at the first item that does not fit. Only when that is the
    very first item is it cut inside, at a word. `truncated`: anything was left out."""
    items = [_Item(section.title, tuple(piece)) for section in sections for piece in blocks(list(section.lines))]
    if not items:
        return Inline("", 0, truncated=False)
    kept = 0
    while kept < len(items) and tokens.count(frame(_joined(items[: kept + 1]))) <= max_tokens:
        kept += 1
    text = _joined(items[:kept]) if kept else _first_cut(items[0], max_tokens, frame)
    return Inline(text, tokens.count(frame(text)) if text else 0, kept < len(items))


def _first_cut(item: _Item, max_tokens: int, frame: Callable[[str], str]) -> str:
    head = f"## {item.section}\n\n"
    room = max_tokens - tokens.count(frame(head))
    while room > 0:
        beginning = tokens.truncate(item.text, room).rstrip()
        if not beginning:
            return ""
        text = head + beginning + _closing(item, beginning)
        if tokens.count(frame(text)) <= max_tokens:
            return text
        room -= 1
    return ""


def _closing(item: _Item, beginning: str) -> str:
    """An ellipsis, or the end of the fence in which the cut fell."""
    lines = beginning.count("\n") + 1
    opened: str | None = None
    for line in item.lines[:lines]:
        if line.kind is LineKind.FENCE:
            opened = line.text if opened is None else None
    if opened is None:
        return ELLIPSIS
    indent = opened[: len(opened) - len(opened.lstrip())]
    mark = opened.lstrip()[0]
    length = len(opened.lstrip()) - len(opened.lstrip().lstrip(mark))
    return f"\n{indent}{mark * length}"


def take_nearest(spec: InlineSpec, context: Mapping[str, bytes], anchor: str | None) -> Inline:
    """The sections of the node that covers `anchor`, with the directive, cut to `spec.max_tokens`. `context`: the
    tree, path -> bytes. Raises `OperatorError` for a tree that cannot be delivered."""
    tree = decode_texts(strip_tree(context).files)
    node = covering_node(tree, anchor)
    if node is None:
        return Inline("", 0, truncated=False)
    sections, folder = select(tree[node], spec.sections), posixpath.dirname(node)
    titles = [section.title for section in sections]

    def frame(content: str) -> str:
        return framed(content, folder, titles)

    made = cut(sections, max_tokens=spec.max_tokens, frame=frame)
    return Inline(frame(made.text) if made.text else "", made.tokens, made.truncated, node)


def fitting(paths: Sequence[str], *, max_tokens: int) -> tuple[str, ...]:
    """As many of the first `paths` as `naming` can say within `max_tokens`."""
    kept = tuple(paths)
    while kept and tokens.count(naming(kept)) > max_tokens:
        kept = kept[:-1]
    return kept


def neutral(length: int, *, language: str, test_framework: str) -> str:
    """`two_lines`, then words that name nothing, of exactly `length` tokens where the tokenizer allows it and
    never of more; the two lines alone where they are longer. The same every time."""
    text, sentences = two_lines(language, test_framework), render("placebo_filler").splitlines()
    place = 0
    while tokens.count(text) < length:
        text += ("\n\n" if place == 0 else " ") + sentences[place % len(sentences)]
        place += 1
    if place == 0:
        return text
    text = tokens.truncate(text, length).rstrip()
    while tokens.count(text + ".") <= length and tokens.count(text) < length:
        text += "."
    return text
