"""Bytes and digests that are the same on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel


def sha256(data: bytes) -> str:
    """Lower-case hex SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def canonical_json(value: BaseModel | Any) -> bytes:
    """JSON with sorted keys and no spaces, UTF-8, one trailing newline: what the store holds.

    >>> canonical_json({"b": 1, "a": "é"})
    b'{"a":"\\xc3\\xa9","b":1}\\n'
    """
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def digest(value: BaseModel | Any) -> str:
    """SHA-256 of the canonical JSON of `value`."""
    return sha256(canonical_json(value))
