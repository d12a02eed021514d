"""Finds secrets in the files of a context, before any store has them. Pure; no message holds a value."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

from trialfleet_deliveries.commands import is_text
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.secret_values import judge_text, judge_variable
from trialfleet_repository.trees import EntryKind, Tree

_VARIABLES = {"env", "environment", "headers", "http_headers", "httpheaders"}  # tables of names and values
_NAME = r"""(?<![\w$])([A-Z][A-Z0-9_]+)["']?\s*[:=]\s*"""
_ASSIGNED = re.compile(_NAME + r"""["']?([^"'\s,}#]+)""")
_ASSIGNED_IN_CODE = re.compile(_NAME + r"""["']([^"'\n]+)""")
_CODE = (".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua")
_REFERENCE = re.compile(r"\$|\{env:|\{\{|<[^<>]+>|^%\w+%$|^@")
_PLACEHOLDER = re.compile(r"your|xxx|example|placeholder|changeme|dummy|\.\.\.|\*\*\*", re.IGNORECASE)
_LOCAL_ADDRESS = re.compile(r"://[^/\s:@]+:[^/\s:@]+@(?:localhost|127\.0\.0\.1|\[::1\]|[\w-]+(?=[:/\s]|$))")


class SecretPlace(NamedTuple):
    """`line`: from 1."""

    path: str
    line: int
    reason: str


def refuse_secrets(tree: Tree, where: str) -> None:
    """Raises `OperatorError` naming the first file and line that looks like a secret: contexts are part of the
    store and of the agent's workspace."""
    for place in find_secrets(tree):
        raise OperatorError(
            f"{place.path!r}, line {place.line}, looks like a secret ({place.reason}): the store and every "
            "workspace would hold it in plain text",
            where=where,
            hint="write a reference such as ${NAME} in its place, or leave the file out: copy the other context "
            "files to a folder and name that folder as the context",
        )


def find_secrets(tree: Tree) -> Iterator[SecretPlace]:
    """In the order of paths.

    >>> from trialfleet_repository.trees import TreeEntry
    >>> list(find_secrets({".mcp.json": TreeEntry(b'{"m": {"env": {"API_KEY": "abc", "B_TOKEN": "${B}"}}}')}))
    [SecretPlace(path='.mcp.json', line=1, reason='its name is that of a secret')]
    """
    for path, entry in sorted(tree.items()):
        if entry.kind is not EntryKind.LINK and b"\0" not in entry.data:
            text = entry.data.decode(errors="replace")
            found = dict[int, str]()
            for value, reason in _find_in(path, text):
                found.setdefault(text.count("\n", 0, max(0, text.find(value))) + 1, reason)
            yield from (SecretPlace(path, line, reason) for line, reason in sorted(found.items()))


def _find_in(path: str, text: str) -> Iterator[tuple[str, str]]:
    """(Words as they stand in the text, reason)."""
    is_prose = (is_text(path) and "." in PurePosixPath(path).name[1:]) or path.endswith((".rst", ".adoc"))
    if not is_prose:
        yield from _find_in_settings(path, text)
    for line in text.splitlines():
        plain = _LOCAL_ADDRESS.sub("", line) if is_prose else line
        found = judge_text(plain)
        if found is not None and not _PLACEHOLDER.search(plain):
            yield line, found


def _find_in_settings(path: str, text: str) -> Iterator[tuple[str, str]]:
    parsed = _parse(path, text)
    pattern = _ASSIGNED_IN_CODE if path.endswith(_CODE) else _ASSIGNED
    assigned = ((found[1], found[2]) for found in pattern.finditer(text))
    pairs = assigned if parsed is None else _walk_pairs(parsed, in_table=False)
    for name, value in pairs:
        if not _REFERENCE.search(value) and not _PLACEHOLDER.search(value):
            reason = judge_variable(name.replace("-", "_"), value)
            if reason is not None:
                yield json.dumps(value, ensure_ascii=False)[1:-1], reason


def _parse(path: str, text: str) -> Any:
    """None: it is no table of a known format."""
    try:
        if path.endswith((".json", ".jsonc")):
            return json.loads(text)
        return tomllib.loads(text) if path.endswith(".toml") else None
    except (ValueError, RecursionError):
        return None


def _walk_pairs(value: Any, *, in_table: bool) -> Iterator[tuple[str, str]]:
    """Variables, headers, and flags of commands with their values."""
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            if isinstance(inner, str) and in_table:
                yield name, inner
            yield from _walk_pairs(inner, in_table=name.lower() in _VARIABLES)
    elif isinstance(value, list):
        items: list[Any] = [*cast("Iterable[Any]", value), None]
        for one, following in pairwise(items):
            if isinstance(one, str) and one.startswith("-"):
                name, equals, given = one.lstrip("-").partition("=")
                if equals or isinstance(following, str):
                    yield name, given or str(following)
            yield from _walk_pairs(one, in_table=False)
