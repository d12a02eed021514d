"""The tables as files, for DuckDB, pandas, Polars and spreadsheets."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
from pyarrow import csv

from trialfleet_analysis.tables.read import CampaignTables
from trialfleet_analysis.tables.schema import to_parquet
from trialfleet_ledger.display_text import csv_cell
from trialfleet_ledger.output_files import replace_outputs

Format = Literal["parquet", "csv"]


def write_tables(campaign: CampaignTables, folder: Path, form: Format) -> tuple[Path, ...]:
    """trials and attempts in `folder`, replaced if trialfleet wrote them. Same campaign, same bytes.
    `OperatorError` when they cannot be written or are somebody else's."""
    about = {
        "campaign": campaign.frame.plan.campaign,
        "uid": campaign.frame.plan.uid,
        "dry_run": campaign.frame.plan.dry_run,
        "verified": campaign.verified,
    }
    tables = {"trials": campaign.trials, "attempts": campaign.attempts}
    written = {
        folder / f"{name}.{form}": to_parquet(table, about) if form == "parquet" else to_csv(table)
        for name, table in tables.items()
    }
    replace_outputs(folder, {path.name: raw for path, raw in written.items()}, what="tables")
    return tuple(written)


def to_csv(table: pa.Table) -> bytes:
    """With a header; lists as JSON, moments in UTC, nothing between two commas for what has no value. Text is in
    quotes, and such that no spreadsheet computes it: `display_text.csv_cell`."""
    columns = {name: _safe_column(table.column(name)) for name in table.column_names}
    buffer = io.BytesIO()
    csv.write_csv(pa.table(cast("Any", columns)), buffer)
    return buffer.getvalue()


def _safe_column(column: pa.ChunkedArray[Any]) -> Any:
    """Each different text is made safe once."""
    untyped: Any = column
    if pa.types.is_list(untyped.type):
        return pa.array([json.dumps(value) for value in untyped.to_pylist()], pa.string())
    if not (pa.types.is_string(untyped.type) or pa.types.is_dictionary(untyped.type)):
        return untyped
    encoded = untyped.cast(pa.string()).combine_chunks().dictionary_encode()
    safe = [csv_cell(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(safe, pa.string()).take(encoded.indices)
