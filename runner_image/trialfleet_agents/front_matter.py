"""Front matter of Markdown files that make an agent's subagents, commands and skills. A context's file keeps the
keys that say what the model reads; others choose models, tools, permissions, limits or servers."""

from __future__ import annotations

import re
import unicodedata

_FILE = re.compile(
    r"(?:.*/)?\.(?:agents|claude|codex|copilot|gemini|github|opencode)/"
    r"(?:(?:agent|command|mode)s?/.*\.md|skills?/(?:.*/)?skill\.md)",
    re.DOTALL,
)
_TEXT = frozenset(
    {
        *("name", "description", "title", "color", "license", "metadata", "version", "compatibility"),
        *("argument-hint", "arguments", "when_to_use", "paths", "disable-model-invocation", "user-invocable"),
    }
)
UNCLEAR_FRONT_MATTER = "its front matter: put one key on each line, and indent the further lines of a value"
_BREAKS = ("Cc", "Zl", "Zp")  # some programs end a line there
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)[ \t]*:(?:[ \t]|$)")
_OF_KEY = re.compile(r"[ \t]|- |-$|#|$")  # how a line begins that is none of the mapping's own


def has_front_matter(path: str) -> bool:
    """Whether an agent takes settings from the front matter of a file at this path.

    >>> has_front_matter(".claude/agents/review.md"), has_front_matter("docs/agents/review.md")
    (True, False)
    """
    return _FILE.fullmatch(path.lower()) is not None


def restrict_front_matter(data: bytes) -> tuple[bytes, tuple[str, ...]] | None:
    r"""(The text without other keys, these keys); None where two programs could read the front matter in two ways.

    >>> restrict_front_matter(b"---\nname: review\ntools:\n  - Read\n---\nRead it.\n")
    (b'---\nname: review\n---\nRead it.\n', ('tools',))
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if not text.lstrip("\ufeff \t\r\n").startswith("---"):
        return data, ()
    lines = text.split("\n")
    bare = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    end = next((number for number, line in enumerate(bare[1:], start=1) if line.rstrip() == "---"), None)
    if bare[0].rstrip() != "---" or end is None:
        return None
    keys = _keys_of(bare[1:end])
    if keys is None:
        return None
    kept = [line for line, key in zip(lines[1:end], keys, strict=True) if key is None or key in _TEXT]
    refused = tuple(dict.fromkeys(key for key in keys if key is not None and key not in _TEXT))
    return ("\n".join([lines[0], *kept, *lines[end:]]).encode() if refused else data), refused


def _keys_of(lines: list[str]) -> list[str | None] | None:
    """The key that each line belongs to; None for comments before the first. No list for other forms of YAML than
    one key a line. A key may stand twice: all of its lines have one fate."""
    found: list[str | None] = []
    key: str | None = None
    for line in lines:
        if any(unicodedata.category(sign) in _BREAKS for sign in line if sign != "\t"):
            return None
        named = _KEY.match(line)
        if named is not None:
            key = named[1]
        elif not _OF_KEY.match(line) or (key is None and line.strip() and not line.startswith("#")):
            return None
        found.append(key)
    return found
