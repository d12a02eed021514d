"""Settings files that agents read in a workspace. Of a condition's copies only the keys arrive that are known to
say what the model reads: a context says neither where requests go, nor which model or tools there are, nor what
limits them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from trialfleet_agents.front_matter import UNCLEAR_FRONT_MATTER, has_front_matter, restrict_front_matter
from trialfleet_agents.registry import find_kind

Patterns = Sequence[Sequence[str]]  # of keys, by levels


def deliverable_files(kind: str, files: Mapping[str, bytes]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """(`files` as the agent gets them, what was left out: "<file>: <key>", or the file alone).

    >>> given = {".claude/settings.json": b'{"env": {"ANTHROPIC_BASE_URL": "http://x"}, "outputStyle": "x"}'}
    >>> deliverable_files("claude-code", given)
    ({'.claude/settings.json': b'{"outputStyle": "x"}'}, ('.claude/settings.json: env.ANTHROPIC_BASE_URL',))
    """
    known = find_kind(kind)
    delivered: dict[str, bytes] = {}
    left_out: list[str] = []
    for path, data in files.items():
        if _matches(path, known.files.left_out):
            left_out.append(path)
        elif known.files.roots and has_front_matter(path):
            restricted = restrict_front_matter(data)
            if restricted is None:
                left_out.append(f"{path} ({UNCLEAR_FRONT_MATTER})")
            else:
                delivered[path], refused_keys = restricted
                left_out += [f"{path}: {name}" for name in refused_keys]
        elif not _matches(path, known.files.settings):
            delivered[path] = data
        elif (settings := _json_object(data)) is None:
            left_out.append(f"{path} (it is no JSON object)")
        else:
            refused = list[str]()
            patterns = [pattern.split(".") for pattern in known.rules.in_files.split()]
            allowed = _allowed(patterns, settings, (), refused)
            delivered[path] = json.dumps(allowed).encode() if refused else data
            left_out += [f"{path}: {name}" for name in refused]
    return delivered, tuple(left_out)


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _json_object(data: bytes) -> dict[str, Any] | None:
    """Without duplicate keys, of which a program may read another than we."""
    try:
        found = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _allowed(patterns: Patterns, value: Any, path: tuple[str, ...], refused: list[str]) -> Any:
    """`value` without what no pattern allows; an object or a list that loses all is gone, too."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return dict(_allowed_items(patterns, items.items(), path, refused))
    if isinstance(value, list):
        numbered = ((str(n), one) for n, one in enumerate(cast("Iterable[Any]", value)))
        return [one for _, one in _allowed_items(patterns, numbered, path, refused)]
    return value


def _allowed_items(
    patterns: Patterns, items: Any, path: tuple[str, ...], refused: list[str]
) -> Iterator[tuple[str, Any]]:
    for name, value in items:
        place = (*path, name)
        if any(_is_below(pattern, place) for pattern in patterns):
            yield name, value
        elif isinstance(value, dict | list) and value:
            kept = _allowed(patterns, value, place, refused)
            if kept:
                yield name, kept
        else:
            refused.append(".".join(place))


def _is_below(pattern: Sequence[str], path: tuple[str, ...]) -> bool:
    return len(path) >= len(pattern) and all(map(fnmatchcase, path, pattern))
