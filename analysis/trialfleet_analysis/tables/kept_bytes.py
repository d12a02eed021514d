"""A table as bytes and back: what a store keeps. Same table, same bytes; other bytes are refused before they are
believed, and take no more memory than they say.

One zstd frame: a line of JSON (version, rows, columns, the different texts of each column that has some), then the
values of each column, little-endian, in their order. Texts, words and lists are places among the different ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

import numpy as np
from backports import zstd
from numpy.typing import NDArray

from trialfleet_analysis.tables.columns import known
from trialfleet_analysis.tables.schema import CLAIM, REAL, TEXT, TEXTS, VERSION, VERSIONS, WORD, Column, Kind
from trialfleet_analysis.tables.table import INTEGERS, LIMITS, NULL, Table
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.plurals import plural

MOST_ROWS = 10_000_000  # a plan has at most a million trials
MOST_BYTES = 2 * 2**30  # expanded: three times a million trials
_PACKED: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.checksum_flag: 1,
}
_TEXTS = (TEXT, WORD, TEXTS, VERSIONS)
_CODES, _WHOLE = np.dtype("<i4"), np.dtype("<i8")
_DTYPES: dict[Kind, np.dtype[Any]] = {
    REAL: np.dtype("<f8"),
    CLAIM: np.dtype("i1"),
    **dict.fromkeys(INTEGERS, _WHOLE),
}


class NotThese(Exception):
    """Bytes that are no table of these columns."""


def pack_table(table: Table, about: Mapping[str, object]) -> bytes:
    """`about`: JSON values for the head of the file, of what the table was made."""
    names: dict[str, Sequence[str]] = {}
    arrays: list[NDArray[Any]] = []
    for column in table.columns:
        values = table.values[column.name]
        if column.type in _TEXTS:
            values, different = table.different(column.name)
            names[column.name] = [one if isinstance(one, str) else json.dumps(one) for one in different]
        arrays.append(values.astype(_dtype(column.type)))
    head = {
        "tables": VERSION,
        "rows": table.num_rows,
        "columns": table.column_names,
        "names": names,
        "about": about,
    }
    raw = b"".join([canonical_json(head).strip(), b"\n", *(array.tobytes() for array in arrays)])
    return zstd.compress(raw, options=_PACKED)


def _dtype(kind: Kind) -> np.dtype[Any]:
    return _CODES if kind in _TEXTS else _DTYPES[kind]


def unpack_table(data: bytes, columns: Sequence[Column], most: int = MOST_BYTES) -> Table:
    """The table that `pack_table` wrote. Raises `NotThese` on other bytes, columns, types or nulls, and where it
    expands to more than `most` bytes."""
    try:
        raw = _expanded(data, min(most, MOST_BYTES))
        end = raw.index(b"\n")
        head = json.loads(raw[:end].decode())
        if (head["tables"], head["columns"]) != (VERSION, [column.name for column in columns]):
            raise NotThese("other columns")
        rows, names = head["rows"], head["names"]
        if type(rows) is not int or not 0 <= rows <= MOST_ROWS:
            raise NotThese(plural(rows, "row"))
        if len(raw) - end - 1 != rows * sum(_dtype(column.type).itemsize for column in columns):
            raise NotThese("not as long as it says")
        values, at = dict[str, NDArray[Any]](), end + 1
        for column in columns:
            dtype = _dtype(column.type)
            array = np.frombuffer(raw, dtype, rows, at)
            values[column.name] = array if column.type not in _TEXTS else _texts(column, array, names[column.name])
            at += rows * dtype.itemsize
        words = {column.name: tuple(names[column.name]) for column in columns if column.type == WORD}
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        MemoryError,
        zstd.ZstdError,
    ) as error:
        raise NotThese(str(error)) from error
    table = Table(tuple(columns), values, words)
    for column in columns:
        _check(table, column)
    return table


def _expanded(data: bytes, most: int) -> bytes:
    size = cast("int | None", zstd.get_frame_info(data).decompressed_size)  # the stubs forget None
    if size is None or size > most:
        raise NotThese("it expands to more than a table has")
    unpacker = zstd.ZstdDecompressor()
    raw = unpacker.decompress(data, size + 1)
    if not unpacker.eof or unpacker.unused_data:
        raise NotThese("not one whole frame")
    return raw


def _texts(column: Column, codes: NDArray[Any], names: Any) -> NDArray[Any]:
    if not _are_texts(names) or len(names) > len(codes):
        raise NotThese(f"{column.name}: no texts")
    if column.type in (TEXT, WORD) and len(set(names)) < len(names):
        raise NotThese(f"{column.name}: a text that is there twice")
    if len(codes) and not -1 <= codes.min() <= codes.max() < len(names):
        raise NotThese(f"{column.name}: a text that is not there")
    if column.type == WORD:
        return codes
    different = names if column.type == TEXT else [_list(column, one) for one in names]
    found: NDArray[Any] = np.fromiter([*different, None], dtype=object, count=len(different) + 1)[codes]
    return found


def _list(column: Column, told: str) -> list[Any]:
    found: Any = json.loads(told)
    if column.type == VERSIONS:
        found = [{part: one[part] for part in ("name", "version")} for one in found]
    if not _are_texts([text for one in found for text in one.values()] if column.type == VERSIONS else found):
        raise NotThese(f"{column.name}: no list of texts")
    return cast("list[Any]", found)


def _are_texts(values: object) -> TypeGuard[list[str]]:
    """Raises `ValueError` for half of a surrogate pair, which no output could have."""
    if not isinstance(values, list) or not all(isinstance(one, str) for one in cast("list[object]", values)):
        return False
    "".join(cast("list[str]", values)).encode()
    return True


def _check(table: Table, column: Column) -> None:
    values, there = table.values[column.name], known(table, column.name)
    if not column.null and not there.all():
        raise NotThese(f"no value in {column.name}")
    if column.type in INTEGERS:
        least, most = LIMITS[column.type]
        sound = (values == NULL) | ((values >= least) & (values <= most))
    elif column.type == CLAIM:
        sound = (values >= -1) & (values <= 1)
    else:
        sound = ~np.isinf(values) if column.type == REAL else there | True
    if not sound.all():
        raise NotThese(f"{column.name}: a value that is none")
