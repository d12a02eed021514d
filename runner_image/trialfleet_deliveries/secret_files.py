"""Finds secrets in the files of a context, before any store has them. Pure; no message holds a value."""

from __future__ import annotations

import codecs
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

from trialfleet_deliveries.commands import is_text
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.secret_values import find_issued, is_secret_name, judge_variable, looks_random
from trialfleet_repository.trees import EntryKind, Tree

_VARIABLES = {"env", "environment", "headers", "http_headers", "httpheaders"}  # tables of names and values
_NAME = r"""(?<![\w$])([A-Z][A-Z0-9_]+)["']?[ \t]*[:=][ \t]*"""
_ASSIGNED = re.compile(_NAME + r"""["']?([^"'\s,}#]+)""")
_CREDENTIALS = re.compile(r"\.env.*|.*\.env|\.(?:npm|pypi)rc", re.IGNORECASE | re.DOTALL)  # names of such files
_ASSIGNED_IN_ENV = re.compile(
    r"""^[ \t]*(?:export[ \t]+|//\S*:)?([A-Z_]\w*)["']?[ \t]*[:=][ \t]*["']?([^"'\s,}#]+)""",
    re.IGNORECASE | re.MULTILINE,
)
_ASSIGNED_IN_NETRC = re.compile(
    r"^[^#\n]{0,500}?(?<!\S)(password|account)\s+([^\s#]\S*)", re.IGNORECASE | re.MULTILINE
)
_OF_NPM = {"_auth": "_token", "_authtoken": "_token"}
_ASSIGNED_IN_CODE = re.compile(_NAME + r"""["']([^"'\n]+)""")
_NAMED = re.compile(  # anywhere: apiKey = "…", ?token=…, Authorization: Bearer …
    r"""(?<![\w-])([A-Za-z_][\w-]*)["']?[ \t]{0,9}(?::=|=>|[:=])[ \t]{0,9}["']?"""
    r"""(?=(?:(?:Bearer|Basic|Token)\s)?([^"'\s,;}&#]{20,200}))"""
)
_CODE = (".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua")
_ARGUMENT = re.compile(  # NAME=value, --name=value, Name: value, Name: Scheme value; no sentence
    r"-*([A-Za-z_][\w-]*)(?:=|(?=:\s*(?:[\w-]+ )?\S+\Z):\s*)(.*)", re.DOTALL
)
_REFERENCE = re.compile(
    r"^(?:\w+ )?\$(?:env:)?\w+$|^(?:\w+ )?\$\(|\$\{[\w:]+|\{env:|\{\{|<[^<>]+>|^%\w+%$|^@"
)  # also after the scheme of an Authorization
_PLACEHOLDER = re.compile(r"your|xxx|example|placeholder|changeme|dummy|\.\.\.|\*\*\*", re.IGNORECASE)
_NO_SECRET = re.compile(r"sha\d+[-:]|AAAA[A-Z]3Nz")  # digests, public keys
_LOCAL_ADDRESS = re.compile(r"://[^/\s:@]+:[^/\s:@]+@(?:localhost|127\.0\.0\.1|\[::1\]|[\w-]+(?=[:/\s]|$))")
_HOST = re.compile(r"[\w.-]*")
_STRING = r'"(?:\\.|[^"\\\n])*"?'  # an open one too: a search that fails starts again at the next quote
_QUOTED = re.compile(rf"{_STRING}|'[^'\n]*'")
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[\]}}])")
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


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
        text = "" if entry.kind is EntryKind.LINK else _decode(entry.data)
        line, last = 1, 0
        named = set[int]()
        for place, reason in sorted({} if "\0" in text else _find_in(path, text)):
            line, last = line + text.count("\n", last, place), place
            if line not in named:
                named.add(line)
                yield SecretPlace(path, line, reason)


def _decode(data: bytes) -> str:
    """Without a byte order mark. Where every other byte is a zero, it is UTF-16 without one."""
    if data.startswith(_MARKS):
        return data.decode("utf-16", errors="replace")
    zeros = [data[first::2].count(0) for first in (0, 1)]
    if max(zeros) > 0.9 * (len(data) // 2) and not min(zeros):
        return data.decode("utf-16-be" if zeros[0] else "utf-16-le", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def _find_in(path: str, text: str) -> Iterator[tuple[int, str]]:
    """(Place in the text, reason)."""
    is_prose = (is_text(path) and "." in PurePosixPath(path).name[1:]) or path.endswith((".rst", ".adoc"))
    if not is_prose:
        yield from _find_in_settings(path, text)
    for place, reason in find_issued(text):
        end = place.stop
        if text[end - 1] == "@":  # an address with a password: its host tells
            end = cast("re.Match[str]", _HOST.match(text, end)).end()
        is_local = is_prose and _LOCAL_ADDRESS.match(text, place.start)
        if not is_local and not _PLACEHOLDER.search(text, place.start, end):
            yield place.start, reason
    for named in _NAMED.finditer(text):
        name, value = named.groups()
        is_known = _PLACEHOLDER.search(value) or _REFERENCE.search(value) or _NO_SECRET.match(value)
        if is_secret_name(name) and looks_random(value) and not is_known:
            yield named.start(2), "its name is that of a secret, and it looks random"


def _find_in_settings(path: str, text: str) -> Iterator[tuple[int, str]]:
    parsed = _parse(path, text)
    if parsed is None:
        found_pairs = _assigned_in(path).finditer(text)
        pairs = ((_OF_NPM.get(one[1].lower(), one[1]), one[2], one.start(2)) for one in found_pairs)
    else:
        places = _locate_strings(text)
        pairs = ((name, value, places.get(string, 0)) for name, value, string in _walk_pairs(parsed))
    for name, value, place in pairs:
        if not _REFERENCE.search(value) and not _PLACEHOLDER.search(value):
            reason = judge_variable(name.replace("-", "_"), value)
            if reason is not None:
                yield place, reason


def _assigned_in(path: str) -> re.Pattern[str]:
    """Names and values in a file that is no table: what counts as a name depends on what such files hold."""
    name = PurePosixPath(path).name
    if name.lower() in (".netrc", "_netrc"):
        return _ASSIGNED_IN_NETRC
    if path.endswith(_CODE):
        return _ASSIGNED_IN_CODE
    return _ASSIGNED_IN_ENV if _CREDENTIALS.fullmatch(name) else _ASSIGNED


def _parse(path: str, text: str) -> Any:
    """None: it is no table of a known format. JSON may have comments, and commas before a closing bracket."""
    try:
        if path.endswith((".json", ".jsonc")):
            plain = _COMMENT.sub(lambda found: found[1] or " ", text)
            return json.loads(_LAST_COMMA.sub(lambda found: found[1] or "", plain))
        return tomllib.loads(text) if path.endswith(".toml") else None
    except (ValueError, RecursionError):
        return None


def _locate_strings(text: str) -> dict[str, int]:
    """The first place of each quoted string."""
    places = dict[str, int]()
    for found in _QUOTED.finditer(text):
        string = found[0][1:-1]
        if "\\" in string and found[0][0] == '"':
            with suppress(ValueError):  # an escape that only TOML has
                string = json.loads(found[0], strict=False)
        places.setdefault(string, found.start())
    return places


def _walk_pairs(value: Any) -> Iterator[tuple[str, str, str]]:
    """Variables, headers, and flags of commands: name, value, and the string that holds the value."""
    todo: list[tuple[Any, bool]] = [(value, False)]
    while todo:
        one, in_table = todo.pop()
        if isinstance(one, dict):
            for name, inner in cast("dict[str, Any]", one).items():
                if isinstance(inner, str) and in_table:
                    yield name, inner, inner
                todo.append((inner, name.lower() in _VARIABLES))
        elif isinstance(one, list):
            items: list[Any] = [*cast("Iterable[Any]", one), None]
            for item, following in pairwise(items):
                if isinstance(item, str):
                    yield from _read_argument(item, following)
                todo.append((item, False))


def _read_argument(item: str, following: object) -> Iterator[tuple[str, str, str]]:
    """Of a command: `--token=value`, `--token` and its value, `NAME=value` and `Name: value`, also as the value of
    `--env=` or `--header=`."""
    found = _ARGUMENT.fullmatch(item)
    if found is None and item.startswith("-") and isinstance(following, str):
        yield item.lstrip("-"), following, following
    if found is not None:
        yield found[1], found[2], item
        inner = _ARGUMENT.fullmatch(found[2])
        if inner is not None:
            yield inner[1], inner[2], item
