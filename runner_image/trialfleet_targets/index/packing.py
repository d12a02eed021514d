"""Arrays and lists of words in one file that is mapped, not read.

    magic, 8 bytes · length of the header, 4 · header, JSON · values, at multiples of 64 · SHA-256 of all that

The header names each value with its type, shape and place. Words are UTF-8 between NULs and are decoded when they
are asked for. The same values give the same bytes. Nothing in the file is executed: no pickles.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from trialfleet_targets.arrays import Stored, Value

MAGIC = b"tfIndex\n"
WORDS = "words"
_LENGTH = struct.Struct("<I")
_ALIGNED = 64
_DIGEST = 32
_TYPES = frozenset({"|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<u4", "<u8", "<f4", "<f8"})


class DamagedIndex(Exception):
    """The file was not written by `packed`, or by another version."""


def packed(head: Mapping[str, Any], values: Stored) -> bytes:
    """`head`: JSON metadata. Raises ValueError for an unsupported array type or a word with NUL.

    >>> unpacked(packed({"a": 1}, {"words": ["x", ""], "none": []}))[1]["words"]
    ['x', '']
    """
    parts: list[bytes] = []
    rows: list[list[Any]] = []
    at = 0
    for name in sorted(values):
        kind, shape, data = _as_bytes(values[name])
        rows.append([name, kind, shape, at, len(data)])
        parts += [data, bytes(-len(data) % _ALIGNED)]
        at += len(data) + len(parts[-1])
    header = json.dumps({**head, "values": rows}, separators=(",", ":"), sort_keys=True).encode()
    header += b" " * (-(len(MAGIC) + _LENGTH.size + len(header)) % _ALIGNED)
    whole = b"".join((MAGIC, _LENGTH.pack(len(header)), header, *parts))
    return whole + sha256(whole).digest()


def unpacked(data: bytes | mmap.mmap, *, trusted: bool = False) -> tuple[dict[str, Any], Stored]:
    """Head and values; arrays are views of `data` and cannot be written. `trusted`: `packed` has just written
    it, and its checksum need not be made again. Raises `DamagedIndex`."""
    view = memoryview(data)
    start = len(MAGIC) + _LENGTH.size
    if len(view) < start + _DIGEST or bytes(view[: len(MAGIC)]) != MAGIC:
        raise DamagedIndex("not an index")
    if not trusted and sha256(view[:-_DIGEST]).digest() != bytes(view[-_DIGEST:]):
        raise DamagedIndex("its checksum is wrong")
    end = start + _LENGTH.unpack(view[len(MAGIC) : start])[0]
    try:
        head = json.loads(bytes(view[start:end]))
        rows = head.pop("values")
        return head, _LazyMapping({name: _value(view[end:-_DIGEST], *row) for name, *row in rows})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedIndex(str(error)) from None


def mapped(path: Path) -> tuple[dict[str, Any], Stored]:
    """`unpacked` of a file, which may be replaced or removed meanwhile. Raises `DamagedIndex` and OSError."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            raise DamagedIndex("it is empty")
        return unpacked(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class _LazyMapping(Mapping[str, Value]):
    """Lists of words are decoded on demand."""

    def __init__(self, values: dict[str, Value | memoryview]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Value:
        value = self._values[name]
        if isinstance(value, memoryview):
            value = self._values[name] = bytes(value).decode("utf-8", "surrogateescape").split("\0")
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _as_bytes(value: Value) -> tuple[str, list[int], bytes]:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        if array.dtype.str not in _TYPES:
            raise ValueError(f"arrays of {value.dtype} are not supported")
        return array.dtype.str, list(value.shape), array.tobytes()
    if any("\0" in word for word in value):
        raise ValueError("a word must not contain NUL")
    return WORDS, [len(value)], "\0".join(value).encode("utf-8", "surrogateescape")


def _value(data: memoryview, kind: str, shape: list[int], at: int, size: int) -> Value | memoryview:
    if not (0 <= at <= at + size <= len(data)):
        raise ValueError("a value lies outside the file")
    part = data[at : at + size]
    if kind == WORDS:
        return part if shape[0] else []
    if kind not in _TYPES:
        raise ValueError(f"unknown type {kind}")
    return cast("npt.NDArray[np.generic]", np.frombuffer(part, dtype=np.dtype(kind)).reshape(shape))
