"""A condition made concrete for one task: prompt, files, hook, and how to see that each has arrived."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from trialfleet_deliveries.composed import Composed, Rule
from trialfleet_deliveries.context_tree import decode_texts, strip_tree
from trialfleet_deliveries.markdown import HOOK_SECTIONS, select
from trialfleet_deliveries.naming import join, pull_sentence
from trialfleet_deliveries.nodes import child_nodes, root_file
from trialfleet_deliveries.placement import AS_NAMED, FileReading, PlacedFiles, placed
from trialfleet_deliveries.registry import find_added
from trialfleet_deliveries.texts import render
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.condition_order import ConditionOrder, PromptFrame
from trialfleet_ledger.records.measurements import Coverage, Delivery


def compose(
    condition: ConditionOrder,
    *,
    task: str,
    files: Mapping[str, bytes] | None = None,
    context: Mapping[str, bytes] | None = None,
    text: str | None = None,
    reading: FileReading = AS_NAMED,
) -> Composed:
    """The deliveries of `condition`. `files` and `context` are the trees of the order's digests (path ->
    bytes), `task` the task's text, `text` the inline text that the order names, `reading` how the agent comes by
    files. What a pre-flight finds comes later: `with_text`. Raises `OperatorError` for a tree that cannot be
    delivered, and for an order whose inline text was not decided when the campaign was planned."""
    if condition.inline is not None and condition.tokenizer is None:
        raise OperatorError(
            "the plan does not have the inline text of this condition: another version made it",
            where=f"condition {condition.name}",
            hint="install the version that planned the campaign, or start a campaign of another name",
        )
    on_disk = strip_tree(files)
    read_from = on_disk if context == files else strip_tree(context)
    otherwise = condition.pull or condition.hook is not None
    nodes = hook_nodes(decode_texts(read_from.files)) if condition.hook is not None else {}
    laid = placed(on_disk.files, reading, delivered_otherwise=otherwise, hooked=nodes)
    moved = laid.read_as.values()
    words = _first_words(task, condition.prompt)
    sentence = pull_sentence(laid.files, reading.root_names, moved) if condition.pull else ""
    bare = Composed(
        prompt=join(words, sentence),
        system=None,
        files=laid.files,
        root=root_file(laid.files, reading.root_names),
        hook_nodes=nodes,
        delivery=_delivery(condition, laid, text),
        stripped=on_disk.diff + (read_from.diff if read_from.diff != on_disk.diff else ""),
    )
    spoken = bare if text is None else _spoken(bare, condition, text)
    whole = _root_told(spoken, laid.told) if laid.told else spoken
    return reduce(lambda made, item: find_added(item[0]).place(made, item[1]), condition.added.items(), whole)


def _first_words(task: str, frame: PromptFrame | None) -> str:
    """A task that begins with a slash ("/help prints nothing") gets an empty line before it: agents would take its
    first word for a command of theirs, and some would ask no model at all."""
    words = task if frame is None else frame.fill(task)
    declared = frame is not None and frame.is_command
    return f"\n{words}" if words.startswith("/") and not declared else words


def _root_told(composed: Composed, text: str) -> Composed:
    """With the root's text at the end of the prompt, for an agent that loads no file."""
    said = join(composed.prompt, render("root_in_prompt", content=text))
    return replace(composed, prompt=said, told=text)


def with_text(composed: Composed, condition: ConditionOrder, text: str, targets: Sequence[str]) -> Composed:
    """What was composed without a text, with what the pre-flight made; `targets`: the files that it names."""
    from trialfleet_deliveries import tokens  # no other runner counts any

    told = {
        "inline_tokens": tokens.count(text),
        "coverage": Coverage.COVERED,
        "tokenizer": tokens.name(),
        "targets": tuple(targets),
    }
    delivery = composed.delivery.model_copy(update=told)
    return _spoken(replace(composed, delivery=delivery), condition, text)


def _spoken(bare: Composed, condition: ConditionOrder, text: str) -> Composed:
    """The text where the condition's channel has it."""
    spec = condition.inline
    if spec is None:
        return bare
    if spec.channel == "rules":
        return replace(bare, rule=Rule(condition.globs, text))
    if spec.channel == "system":
        return replace(bare, system=text, inline=text)
    return replace(bare, prompt=join(bare.prompt, text), inline=text)


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


def _delivery(condition: ConditionOrder, laid: PlacedFiles, text: str | None) -> Delivery:
    on_disk = Delivery(
        files=tuple(sorted(laid.files)),
        read_as=dict(sorted(laid.read_as.items())),
        undelivered=condition.undelivered,
    )
    if condition.inline is None:
        return on_disk
    return Delivery(
        **on_disk.model_dump(include={"files", "read_as", "undelivered"}),
        inline_tokens=condition.text_tokens,
        inline_truncated=condition.truncated,
        node=condition.node,
        coverage=Coverage.NONE if text is None else Coverage.COVERED,
        tokenizer=condition.tokenizer,
        targets=() if text is None else condition.targets,
        abstained=condition.abstained,
    )


def may_push(composed: Composed, condition: ConditionOrder) -> bool:
    """Whether the agent's hook will have a folder to read from, also if its rule is made by the pre-flight."""
    inline = condition.inline
    return composed.hooked or (inline is not None and inline.channel == "rules")
