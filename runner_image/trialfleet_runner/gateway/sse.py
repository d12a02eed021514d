"""Server-sent events, parsed while they pass through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

MAX_EVENT_BYTES = 32 * 2**20


class EventParser:
    """Feed bytes in any cut; get the JSON objects of the `data:` fields. `[DONE]` arrives as `{"done": True}`.

    Events that are not JSON objects, or larger than `MAX_EVENT_BYTES`, are skipped: the bytes themselves went
    to the agent untouched.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_EVENT_BYTES:
            self._rest = b""
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._add(line[5:].removeprefix(b" "))
            elif not line:
                yield from self._event()

    def _add(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= MAX_EVENT_BYTES:
            self._data.append(data)

    def _event(self) -> Iterator[dict[str, Any]]:
        data, whole = b"\n".join(self._data), self._size <= MAX_EVENT_BYTES
        self._data, self._size = [], 0
        if not data or not whole:
            return
        if data.strip() == b"[DONE]":
            yield {"done": True}
            return
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            yield cast("dict[str, Any]", value)
