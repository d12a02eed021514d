"""Settings files that agents read in a workspace. What no campaign may choose is left out of a condition's copies:
a context says what the model reads, and neither where its requests go nor what limits them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

from trialfleet_agents.chosen_settings import reserved_way_out

# agent -> patterns of files in JSON, of which the reserved keys are left out.
SETTINGS_FILES: dict[str, str] = {
    "claude-code": ".claude/settings.json .claude/settings.local.json",
    "codex": "",
    "copilot": ".github/copilot/settings.json .github/copilot/settings.local.json .copilot/settings.json",
    "opencode": "",
    "gemini": ".gemini/settings.json",
    "mini-swe-agent": "",
}
# agent -> patterns of files that are left out whole: variables, programs of the agent itself, other formats.
WHOLE_FILES: dict[str, str] = {
    "claude-code": "",
    "codex": ".codex/config.toml .codex/hooks.json .codex/.env",
    "copilot": "",
    "opencode": "opencode.json opencode.jsonc .opencode/opencode.json .opencode/opencode.jsonc .opencode/plugin/* "
    ".opencode/plugins/* .opencode/tool/* .opencode/tools/* .opencode/package.json",
    "gemini": ".env .gemini/.env",
    "mini-swe-agent": "",
}
# Reserved in `settings:`, and part of a context as a file.
_AS_FILES = {"claude-code": ("hooks", "statusLine")}


def deliverable_files(kind: str, files: Mapping[str, bytes]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """(`files` as the agent gets them, what was left out: "<file>: <key>", or the file alone).

    >>> given = {".claude/settings.json": b'{"env": {"ANTHROPIC_BASE_URL": "http://x"}, "outputStyle": "x"}'}
    >>> deliverable_files("claude-code", given)
    ({'.claude/settings.json': b'{"outputStyle": "x"}'}, ('.claude/settings.json: env.ANTHROPIC_BASE_URL',))
    """
    delivered: dict[str, bytes] = {}
    left_out: list[str] = []
    for path, data in files.items():
        if _matches(path, WHOLE_FILES.get(kind, "")):
            left_out.append(path)
        elif not _matches(path, SETTINGS_FILES.get(kind, "")):
            delivered[path] = data
        elif (settings := _json_object(data)) is None:
            left_out.append(f"{path} (it is no JSON object)")
        else:
            refused = list[str]()
            allowed = _allowed(kind, settings, (), refused)
            delivered[path] = json.dumps(allowed).encode() if refused else data
            left_out += [f"{path}: {name}" for name in refused]
    return delivered, tuple(left_out)


def _matches(path: str, patterns: str) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns.split())


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


def _allowed(kind: str, value: Any, path: tuple[str, ...], refused: list[str]) -> Any:
    """`value` without what is reserved; an object or a list that loses all is gone, too."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return dict(_allowed_items(kind, items.items(), path, refused))
    if isinstance(value, list):
        numbered = ((str(n), one) for n, one in enumerate(cast("Iterable[Any]", value)))
        return [one for _, one in _allowed_items(kind, numbered, path, refused)]
    return value


def _allowed_items(kind: str, items: Any, path: tuple[str, ...], refused: list[str]) -> Iterator[tuple[str, Any]]:
    for name, value in items:
        place = (*path, name)
        if isinstance(value, dict | list) and value:
            kept = _allowed(kind, value, place, refused)
            if kept:
                yield name, kept
        elif place[0] in _AS_FILES.get(kind, ()) or reserved_way_out(kind, place) is None:
            yield name, value
        else:
            refused.append(".".join(place))
