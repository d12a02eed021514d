"""A table as Arrow, and as a Parquet file for other programs: the same for the same table."""

from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from arro3 import core
from arro3.core import Array, DataType, Field, Schema
from arro3.core import Table as ArrowTable
from arro3.io import write_parquet

from trialfleet_analysis.tables.columns import known
from trialfleet_analysis.tables.schema import TEXT, TEXTS, VERSION, VERSIONS, WORD, Column, Kind
from trialfleet_analysis.tables.table import Table
from trialfleet_ledger.canonical import canonical_json

ABOUT = "trialfleet"  # metadata key of the file's description

_core: Any = core  # whose stubs leave much unknown

_STRING, _INT64 = DataType.string(), DataType.int64()
_PAIR = [Field("name", _STRING), Field("version", _STRING)]
_TYPES: dict[Kind, DataType] = {
    Kind.TEXT: _STRING,
    Kind.WORD: DataType.dictionary(DataType.int32(), _STRING),
    Kind.COUNT: _INT64,
    Kind.ORDINAL: DataType.int32(),
    Kind.REAL: DataType.float64(),
    Kind.CLAIM: DataType.bool(),
    Kind.MOMENT: DataType.timestamp("us", tz="UTC"),
    Kind.TEXTS: DataType.list(Field("item", _STRING)),
    Kind.VERSIONS: DataType.list(Field("item", DataType.struct(_PAIR))),
}


def to_parquet(table: Table, about: Mapping[str, object]) -> bytes:
    """One file, zstd. Its metadata holds `about` (JSON values) and the columns' version."""
    metadata = {ABOUT: canonical_json({**about, "tables": VERSION}).strip().decode()}
    buffer = io.BytesIO()
    write_parquet(
        arrow_table(table, metadata),
        buffer,
        compression="zstd(1)",
        key_value_metadata=metadata,
        max_row_group_size=2**20,
        created_by="trialfleet",
    )
    return buffer.getvalue()


def arrow_table(table: Table, metadata: Mapping[str, str] | None = None) -> ArrowTable:
    """For what reads Arrow: DuckDB, pandas, Polars, pyarrow. The fields' metadata say what the columns mean."""
    schema = Schema([_field(column) for column in table.columns], metadata=dict(metadata or {}))
    places: dict[bytes, Array] = {}  # by which rows have a value: the same ones in many columns
    made: ArrowTable = _core.Table.from_arrays(
        [_array(table, column, places) for column in table.columns], schema=schema
    )
    return made


def _field(column: Column) -> Field:
    told = {"meaning": column.meaning, "unit": column.unit, "null": column.null}
    return Field(
        column.name,
        _TYPES[column.type],
        nullable=bool(column.null),
        metadata={name: text for name, text in told.items() if text},
    )


def _array(table: Table, column: Column, places: dict[bytes, Array]) -> Array:
    if column.type in (TEXTS, VERSIONS):
        return _lists(table.values[column.name].tolist(), column.type)
    if column.type in (TEXT, WORD):
        return Array(table.listed(column.name), _STRING).cast(_TYPES[column.type])
    values: Any = Array.from_numpy(np.ascontiguousarray(table.values[column.name]))
    there = known(table, column.name)
    if not there.all():
        rows = there.tobytes()
        if rows not in places:
            places[rows] = Array([row if has else None for row, has in enumerate(there.tolist())], _INT64)
        values = values.take(places[rows])
    made: Array = values.cast(_TYPES[column.type])
    return made


def _lists(values: list[list[Any] | None], kind: Kind) -> Array:
    offsets = np.cumsum([0, *(len(value or ()) for value in values)]).astype(np.int32)
    mask = np.array([value is None for value in values], np.bool_)
    flat: list[Any] = list(chain.from_iterable(value or () for value in values))
    if kind == TEXTS:
        items = Array(flat, _STRING)
    else:
        parts = [Array([one[name] for one in flat], _STRING) for name in ("name", "version")]
        items = _core.struct_array(parts, fields=_PAIR)
    made: Array = _core.list_array(
        Array.from_numpy(offsets), items, type=_TYPES[kind], mask=Array.from_numpy(mask)
    )
    return made
