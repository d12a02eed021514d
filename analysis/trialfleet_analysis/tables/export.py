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
    """With a header; lists as JSON, moments in UTC, nothing between two commas for what has no value."""
    untyped = cast("Any", table)
    for place, name in enumerate(table.column_names):
        if pa.types.is_list(untyped.schema.field(name).type):
            lists = [json.dumps(value) for value in untyped.column(name).to_pylist()]
            untyped = untyped.set_column(place, name, pa.array(lists, pa.string()))
    buffer = io.BytesIO()
    csv.write_csv(untyped, buffer)
    return buffer.getvalue()
