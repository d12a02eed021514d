"""Configuration files, read as far as they can be: one that cannot be read is one that is not there."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, cast

import yaml

_LARGEST = 2**20
# An unclosed bracket extends to the end of the text: searching for its end from each position is quadratic.
_NOISE = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\\n]|\\.)*+"?)|,(?=\s*[}\]])')
_LARGEST_YAML = 2**16


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


def yaml_table(data: bytes) -> Mapping[str, Any]:
    """A YAML mapping, of at most 64 KiB; every scalar is text.

    >>> yaml_table(b"packages:\\n  - 'x/*' # y\\n  - 7\\n"), yaml_table(b"packages: *a")
    ({'packages': ['x/*', '7']}, {})
    """
    try:
        return table(yaml.load(_text(data[:_LARGEST_YAML]), Loader=yaml.BaseLoader))  # makes text only
    except (yaml.YAMLError, RecursionError):
        return {}


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
