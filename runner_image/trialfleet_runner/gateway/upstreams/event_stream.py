"""Amazon's binary event stream, decoded. Source: Smithy's specification "Amazon Event Stream"."""

from __future__ import annotations

import http.client
import struct
from binascii import crc32
from collections.abc import Iterator
from dataclasses import dataclass

_PRELUDE = struct.Struct("!III")  # bytes of the message, bytes of its headers, CRC of these two
_CRC_BYTES = 4
_LARGEST = 24 * 2**20
_STRING = 7
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}  # type of a header's value -> bytes
_COUNTED = (6, _STRING)


@dataclass(frozen=True)
class EventMessage:
    """`headers`: those with a string as value."""

    headers: dict[str, str]
    payload: bytes


class EventStreamDecoder:
    """Feed bytes in any cut; get whole messages. Raises `http.client.HTTPException` for a damaged stream."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, chunk: bytes) -> Iterator[EventMessage]:
        self._data += chunk
        while len(self._data) >= _PRELUDE.size:
            size, headers, checksum = _PRELUDE.unpack_from(self._data)
            room = size - _PRELUDE.size - _CRC_BYTES
            if crc32(self._data[:8]) != checksum or size > _LARGEST or not 0 <= headers <= room:
                raise http.client.HTTPException("an event of the stream is damaged")
            if len(self._data) < size:
                return
            message = bytes(self._data[:size])
            del self._data[:size]
            yield _message(message, headers)


def _message(data: bytes, headers: int) -> EventMessage:
    (checksum,) = struct.unpack("!I", data[-_CRC_BYTES:])
    if crc32(data[:-_CRC_BYTES]) != checksum:
        raise http.client.HTTPException("an event of the stream is damaged")
    end = _PRELUDE.size + headers
    try:
        return EventMessage(dict(_strings(data[_PRELUDE.size : end])), data[end:-_CRC_BYTES])
    except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
        raise http.client.HTTPException("an event of the stream has damaged headers") from error


def _strings(data: bytes) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(data):
        name = data[at + 1 : at + 1 + data[at]].decode()
        at += 1 + data[at]
        kind = data[at]
        at += 1
        size = struct.unpack_from("!H", data, at)[0] if kind in _COUNTED else _FIXED[kind]
        at += 2 if kind in _COUNTED else 0
        if kind == _STRING:
            yield name, data[at : at + size].decode()
        at += size
