"""Arrow tables as Parquet bytes: the same tables, the same bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from trialfleet_analysis.tables.schema import VERSION
from trialfleet_runner.canonical import canonical_json

_parquet: Any = pq  # whose stubs leave much unknown
ABOUT = b"trialfleet"  # the key of what a file says of itself


class NotThese(Exception):
    """Bytes that are no table of this schema."""


def to_parquet(table: pa.Table, about: Mapping[str, object]) -> bytes:
    """One file, zstd. `about` (JSON values) stands in its metadata beside the schema's version."""
    said = canonical_json({**about, "tables": VERSION}).strip()
    buffer = io.BytesIO()
    labelled = table.replace_schema_metadata({ABOUT: said})
    _parquet.write_table(labelled, buffer, compression="zstd", row_group_size=2**20)
    return buffer.getvalue()


def from_parquet(raw: bytes, schema: pa.Schema) -> pa.Table:
    """The table that `to_parquet` wrote. Raises `NotThese` on other bytes, columns, types or nulls."""
    try:
        table: pa.Table = _parquet.ParquetFile(pa.BufferReader(raw)).read().combine_chunks()
    except (pa.ArrowException, OSError) as error:
        raise NotThese(str(error)) from error
    if not table.schema.equals(schema):
        raise NotThese("other columns")
    columns: Any = schema
    holes = [field.name for field in columns if not field.nullable and table.column(field.name).null_count]
    if holes:
        raise NotThese(f"no value in {', '.join(holes)}")
    return pa.Table.from_arrays(table.columns, schema=schema)  # without what reading adds to the fields' metadata
