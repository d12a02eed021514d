"""Settings files that agents read in a workspace. What no campaign may choose is left out of a condition's copies:
a context says what the model reads, and neither where its requests go nor what limits them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

from trialfleet_agents.agent_kind import SettingsRules
from trialfleet_agents.chosen_settings import reserved_way_out
from trialfleet_agents.registry import find_kind


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
        elif not _matches(path, known.files.settings):
            delivered[path] = data
        elif (settings := _json_object(data)) is None:
            left_out.append(f"{path} (it is no JSON object)")
        else:
            refused = list[str]()
            allowed = _allowed(known.rules, settings, (), refused)
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


def _allowed(rules: SettingsRules, value: Any, path: tuple[str, ...], refused: list[str]) -> Any:
    """`value` without what is reserved; an object or a list that loses all is gone, too."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return dict(_allowed_items(rules, items.items(), path, refused))
    if isinstance(value, list):
        numbered = ((str(n), one) for n, one in enumerate(cast("Iterable[Any]", value)))
        return [one for _, one in _allowed_items(rules, numbered, path, refused)]
    return value


def _allowed_items(
    rules: SettingsRules, items: Any, path: tuple[str, ...], refused: list[str]
) -> Iterator[tuple[str, Any]]:
    for name, value in items:
        place = (*path, name)
        if isinstance(value, dict | list) and value:
            kept = _allowed(rules, value, place, refused)
            if kept:
                yield name, kept
        elif place[0] in rules.in_files or reserved_way_out(rules, place) is None:
            yield name, value
        else:
            refused.append(".".join(place))
