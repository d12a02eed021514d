"""Configuration files, read as far as they can be: one that cannot be read is one that is not there."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

_LARGEST = 2**20
# What is not closed goes on to its end: looked for anew at every place, it took time that grew with its square.
_NOISE = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\\n]|\\.)*+"?)|,(?=\s*[}\]])')
_LONGEST_ROW = 400
_ROW = re.compile(r"""\s*-\s+(?:'([^']*)'|"([^"\\]*)"|([^\s'"#&*!|>%@`\[{][^#]*?))\s*(?:#.*)?""")
_BRACKETED = re.compile(r"""'([^'\n]*)'|"([^"\\\n]*)"|([^\s,'"#&*!|>%@`\[{][^,\n#]*)|#[^\n]*""")


def json_table(data: bytes) -> Mapping[str, Any]:
    """A JSON object, with comments and trailing commas as tsconfig.json has them.

    >>> json_table(b'{"a": "//x", // y\\n "b": [1,],}')
    {'a': '//x', 'b': [1]}
    >>> json_table(b'{"a": ')
    {}
    """
    text = _text(data)
    for attempt in (text, None):
        try:
            return table(json.loads(_plain(text) if attempt is None else attempt))
        except (ValueError, RecursionError):
            continue
    return {}


def toml_table(data: bytes) -> Mapping[str, Any]:
    try:
        return table(tomllib.loads(_text(data)))
    except (ValueError, RecursionError):
        return {}


def yaml_strings(data: bytes, key: str) -> list[str]:
    """The list of strings under a key at the top of a YAML file, in rows or in brackets, as people write it. No
    reader of YAML is needed for that, and nothing is expanded: aliases and all else are as if they were not there.

    >>> yaml_strings(b"a: 1\\npackages:\\n  - 'x/*' # y\\n  - z\\nb:\\n  - c\\n", "packages")
    ['x/*', 'z']
    >>> yaml_strings(b"packages: [a, 'b',\\n c]\\n", "packages"), yaml_strings(b"packages: *a", "packages")
    (['a', 'b', 'c'], [])
    """
    lines = iter(_text(data).splitlines())
    for line in lines:
        name, colon, rest = line[:_LONGEST_ROW].partition(":")
        if colon and name.rstrip().strip("'\"") == key:
            if rest.lstrip().startswith("["):
                return _bracketed([rest.lstrip()[1:], *lines])
            return [] if rest.partition("#")[0].strip() else list(_rows(lines))
    return []


def _rows(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if line[:1] not in ("", " ", "\t", "-", "#"):
            return
        found = _ROW.fullmatch(line) if len(line) <= _LONGEST_ROW else None
        if found:
            yield next(group for group in found.groups() if group is not None)


def _bracketed(lines: Iterable[str]) -> list[str]:
    inside = "\n".join(line[:_LONGEST_ROW] for line in lines).partition("]")[0]
    groups = (found.groups() for found in _BRACKETED.finditer(inside))
    return [one.strip() for found in groups for one in found if one is not None]


def table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def rows(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def strings(value: object) -> list[str]:
    """The strings of a list, or one string as a list."""
    return [value] if isinstance(value, str) else [one for one in rows(value) if isinstance(one, str)]


def at(value: object, *keys: str) -> Any:
    """Of nested tables, what is under the keys; None when nothing is."""
    for key in keys:
        value = table(value).get(key)
    return value


def _text(data: bytes) -> str:
    return data[:_LARGEST].decode("utf-8-sig", "replace")


def _plain(text: str) -> str:
    without = _NOISE.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)
    return _TRAILING.sub(lambda found: found[1] or "", without)
