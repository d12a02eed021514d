"""Values as TOML, which the standard library only reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from trialfleet_ledger.untrusted import mapping

_BARE = re.compile(r"[A-Za-z0-9_-]+")  # a key without quotes


def toml(settings: dict[str, Any], name: str = "") -> str:
    """Nested dicts as TOML: plain values first, then a table for each dict.

    >>> print(toml({"a": True, "b": {"c.d": {"e": ["f\\n", {"g": 1}]}}}))
    a = true
    [b]
    [b."c.d"]
    e = ["f\\n", {g = 1}]
    """
    settings = {_key(key): value for key, value in settings.items()}
    rows = [f"{key} = {_value(value)}" for key, value in settings.items() if not isinstance(value, dict)]
    for key, value in settings.items():
        if isinstance(value, dict):
            place = f"{name}{key}"
            rows += [f"[{place}]", *([inner] if (inner := toml(mapping(settings[key]), f"{place}.")) else [])]
    return "\n".join(rows)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        return f"{{{', '.join(f'{_key(key)} = {_value(held)}' for key, held in pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(held) for held in cast('list[object]', value))}]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    """JSON's escapes are TOML's, except those of characters beyond 16 bits."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
