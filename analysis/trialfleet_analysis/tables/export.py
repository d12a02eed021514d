"""The tables as files, for DuckDB, pandas, Polars and spreadsheets."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Literal

from trialfleet_analysis.tables.parquet import to_parquet
from trialfleet_analysis.tables.read import CampaignTables
from trialfleet_analysis.tables.schema import TEXTS, VERSIONS, Column
from trialfleet_analysis.tables.table import Table
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


def to_csv(table: Table) -> bytes:
    """With a header; lists as JSON, moments in UTC, nothing between two commas for what has no value. Text is in
    quotes, and such that no spreadsheet computes it: `display_text.csv_cell`."""
    head = ",".join(map(_quoted, table.column_names))
    rows = map(",".join, zip(*(_cells(table, column) for column in table.columns), strict=True))
    return "".join(f"{line}\n" for line in (head, *rows)).encode()


def _cells(table: Table, column: Column) -> list[str]:
    """A cell of each row; a value that many rows share is formatted once."""
    codes, values = table.different(column.name)
    absent = _quoted("null") if column.type in (TEXTS, VERSIONS) else ""
    cells = [*(absent if value is None else _cell(value) for value in values), absent]
    return [cells[code] for code in codes.tolist()]


def _cell(value: object) -> str:
    match value:
        case str():
            return _quoted(csv_cell(value))
        case list():
            return _quoted(json.dumps(value))
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S.%f}Z"
        case _:
            return json.dumps(value)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
