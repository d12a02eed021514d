"""A condition made concrete for one task: prompt, files, hook, and how to see that each has arrived."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from trialfleet_deliveries import tokens
from trialfleet_deliveries.commands import is_text, strip_files
from trialfleet_deliveries.composed import Composed, Rule
from trialfleet_deliveries.markdown import (
    HOOK_SECTIONS,
    LineKind,
    MarkdownLine,
    MarkdownSection,
    blocks,
    select,
)
from trialfleet_deliveries.naming import framed, join, pull_sentence
from trialfleet_deliveries.nodes import child_nodes, covering_node, inside, root_file
from trialfleet_deliveries.placement import AS_NAMED, FileReading, PlacedFiles, placed
from trialfleet_deliveries.registry import find_added
from trialfleet_deliveries.texts import render
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.condition_order import ConditionOrder, InlineSpec
from trialfleet_ledger.records.measurements import Coverage, Delivery

ELLIPSIS = " …"


@dataclass(frozen=True)
class Inline:
    """What goes into the prompt; empty `text`: nothing fits, or there is nothing."""

    text: str
    tokens: int
    truncated: bool


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


def compose(
    condition: ConditionOrder,
    *,
    task: str,
    files: Mapping[str, bytes] | None = None,
    context: Mapping[str, bytes] | None = None,
    anchor: str | None = None,
    text: str | None = None,
    reading: FileReading = AS_NAMED,
) -> Composed:
    """The deliveries of `condition`. `files` and `context` are the trees of the order's digests (path ->
    bytes), `task` the task's text, `anchor` its anchor, `text` what the plan has frozen of a source other than
    `nearest`, `reading` how the agent comes by files. What a pre-flight finds comes later: `with_text`. Raises
    `OperatorError` for a tree that cannot be delivered."""
    on_disk, read_from = strip_files(_checked(files)), strip_files(_checked(context))
    otherwise = condition.pull or condition.hook is not None
    tree = {path: _decoded(path, data) for path, data in read_from.files.items() if is_text(path)}
    nodes = hook_nodes(tree) if condition.hook is not None else {}
    laid = placed(on_disk.files, reading, delivered_otherwise=otherwise, hooked=nodes)
    node, inline = _inline(condition.inline, tree, anchor)
    if text is not None:
        inline = _whole(text)
    moved = laid.read_as.values()
    sentence = pull_sentence(laid.files, reading.root_names, moved) if condition.pull else ""
    bare = Composed(
        prompt=join(task, sentence),
        system=None,
        files=laid.files,
        root=root_file(laid.files, reading.root_names),
        hook_nodes=nodes,
        delivery=_delivery(condition, laid, node, inline),
        stripped=on_disk.diff + (read_from.diff if read_from.diff != on_disk.diff else ""),
    )
    spoken = _spoken(bare, condition, inline, node)
    whole = _root_told(spoken, laid.told) if laid.told else spoken
    return reduce(lambda made, item: find_added(item[0]).place(made, item[1]), condition.added.items(), whole)


def _root_told(composed: Composed, text: str) -> Composed:
    """With the root's text at the end of the prompt, for an agent that loads no file."""
    said = join(composed.prompt, render("root_in_prompt", content=text))
    return replace(composed, prompt=said, told=text)


def with_text(composed: Composed, condition: ConditionOrder, text: str, targets: Sequence[str]) -> Composed:
    """What was composed without a text, with what the pre-flight made; `targets`: the files that it names."""
    inline = _whole(text)
    told = {"inline_tokens": inline.tokens, "coverage": Coverage.COVERED, "targets": tuple(targets)}
    delivery = composed.delivery.model_copy(update=told)
    return _spoken(replace(composed, delivery=delivery), condition, inline, None)


def _whole(text: str) -> Inline:
    return Inline(text, tokens.count(text), truncated=False)


def _spoken(bare: Composed, condition: ConditionOrder, inline: Inline, node: str | None) -> Composed:
    """The text where the condition's channel has it."""
    spec = condition.inline
    if spec is None or not inline.text:
        return bare
    if spec.channel == "rules":
        around = (f"{posixpath.dirname(node)}/**",) if node else ("**",)
        return replace(bare, rule=Rule(condition.globs or spec.globs or around, inline.text))
    if spec.channel == "system":
        return replace(bare, system=inline.text, inline=inline.text)
    return replace(bare, prompt=join(bare.prompt, inline.text), inline=inline.text)


def hook_nodes(tree: Mapping[str, str]) -> dict[str, str]:
    """What the hook prints for each node but the root's: its pitfalls, contracts and patterns; empty when it
    has none of them, so that the node still covers its folder."""
    return {node: _hook_text(node, tree[node]) for node in child_nodes(tree)}


def _hook_text(node: str, text: str) -> str:
    sections = select(text, HOOK_SECTIONS)
    if not sections:
        return ""
    said = "\n\n".join(section.text for section in sections)
    return render("hook_node", directory=posixpath.dirname(node), node=node, sections=said)


def _inline(spec: InlineSpec | None, tree: Mapping[str, str], anchor: str | None) -> tuple[str | None, Inline]:
    nothing = Inline("", 0, truncated=False)
    if spec is None or spec.source != "nearest":
        return None, nothing
    node = covering_node(tree, anchor)
    if node is None:
        return None, nothing
    sections, folder = select(tree[node], spec.sections), posixpath.dirname(node)
    titles = [section.title for section in sections]

    def frame(content: str) -> str:
        return framed(content, folder, titles)

    made = cut(sections, max_tokens=spec.max_tokens, frame=frame)
    return node, Inline(frame(made.text), made.tokens, made.truncated) if made.text else made


def _delivery(condition: ConditionOrder, laid: PlacedFiles, node: str | None, inline: Inline) -> Delivery:
    on_disk = Delivery(
        files=tuple(sorted(laid.files)),
        read_as=dict(sorted(laid.read_as.items())),
        undelivered=condition.undelivered,
    )
    if condition.inline is None:
        return on_disk
    return Delivery(
        **on_disk.model_dump(include={"files", "read_as", "undelivered"}),
        inline_tokens=inline.tokens if inline.text else None,
        inline_truncated=inline.truncated,
        node=node,
        coverage=Coverage.COVERED if inline.text else Coverage.NONE,
        tokenizer=tokens.name(),
        targets=condition.targets if inline.text else (),
        abstained=condition.abstained,
    )


def may_push(composed: Composed, condition: ConditionOrder) -> bool:
    """Whether the agent's hook will have a folder to read from, also if its rule is made by the pre-flight."""
    inline = condition.inline
    return composed.hooked or (inline is not None and inline.channel == "rules")


def _checked(files: Mapping[str, bytes] | None) -> Mapping[str, bytes]:
    for path in files or {}:
        if inside(path) != path:
            raise OperatorError("must be a plain path inside the tree", where=f"context: {path!r}")
    return files or {}


def _decoded(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise OperatorError("is not UTF-8 text", where=f"context: {path}", hint="save it as UTF-8") from error
