"""Checks what reaches the model: the texts that a condition declares, and finds undeclared text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from trialfleet_deliveries.received_texts import DeclaredText
from trialfleet_ledger.untrusted import objects

# How Claude Code (measured) introduces a memory file, inside a <system-reminder> or the system prompt:
# "Contents of <path> (project instructions, …):" or "Contents of <path>:", which its own plugins begin with
# "tool.call hook additional context: ".
_CLAIM = re.compile(
    r"^(?:tool\.call hook additional context: )?Contents of (/[^\n]{1,4096}?\.md)(?: \([^\n]*\))?:\s*$",
    re.MULTILINE,
)
# What such programs load by themselves. Other files come in by a declared file's own `@import`.
_MEMORY = re.compile(r"/(?:CLAUDE(?:\.local)?|AGENTS|GEMINI|MEMORY)\.md$|/\.claude/", re.IGNORECASE)
_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"


@dataclass(frozen=True)
class Canaries:
    """`declared`: the texts of the condition. `forbidden`: name -> lines whose appearance anywhere is
    contamination. `files`: paths, as the agent sees them, of the context files that the condition put on disk; a
    memory file that the agent's program loads from elsewhere before a model answers is contamination. Later, the
    agent or a script of the project may have written it.

    Lines are compared with the decoded strings of a request, so they are given as plain text.
    """

    declared: tuple[DeclaredText, ...] = ()
    forbidden: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    files: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Sighting:
    """What one request carried that was not declared: names of forbidden lines, and paths of memory files."""

    undeclared: frozenset[str]
    claimed: frozenset[str]


def look(body: dict[str, Any], canaries: Canaries) -> Sighting:
    texts = list(strings(body)) if canaries.forbidden else []
    forbidden = (name for name, lines in canaries.forbidden.items() if _any_in(lines, texts))
    claimed = {path for text in framed(body) for path in _CLAIM.findall(text) if _MEMORY.search(path)}
    return Sighting(frozenset(forbidden), frozenset(claimed - canaries.files))


def _any_in(lines: tuple[str, ...], texts: list[str]) -> bool:
    return any(line in text for line in lines if line for text in texts)


def strings(value: object) -> Iterator[str]:
    """Every string of a JSON value, keys of objects too, without recursion."""
    todo: list[object] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            found = cast("dict[str, object]", item)
            todo.extend(found.values())
            yield from found
        elif isinstance(item, list):
            todo.extend(cast("list[object]", item))


def framed(body: dict[str, Any]) -> Iterator[str]:
    """Texts that the agent's program wrote itself: the system prompt, reminders next to the prompt, and reminders
    that it appends to a tool's result.

    The prompt and the rest of tool results are excluded: a repository's file or a failing test may quote anything.
    """
    system = body.get("system")
    yield from [system] if isinstance(system, str) else _texts(objects(system))
    for message in objects(body.get("messages")):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
        spoken = message.get("role") == "system"
        yield from (text for text in _texts(blocks) if spoken or text.lstrip().startswith(_OPEN))
        for block in blocks:
            if block.get("type") == "tool_result":
                result = block.get("content")
                yield from (
                    part
                    for text in ([result] if isinstance(result, str) else _texts(objects(result)))
                    for part in _trailing(text)
                )


def _texts(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for block in blocks:
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            yield block["text"]


def _trailing(text: str) -> Iterator[str]:
    """The reminders at the very end of a text, the last first."""
    text = text.rstrip()
    while text.endswith(_CLOSE) and _OPEN in text:
        start = text.rindex(_OPEN)
        yield text[start:]
        text = text[:start].rstrip()
