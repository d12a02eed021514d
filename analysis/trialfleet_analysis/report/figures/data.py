"""The numbers of a figure as a table for programs: unrounded, as report.json has them."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TypeAlias

from trialfleet_ledger.display_text import csv_cell

DataValue: TypeAlias = str | int | float | None


@dataclass(frozen=True)
class FigureData:
    """None: there is no number. Rates and differences of rates are fractions, 0.25 for 25 points."""

    columns: tuple[str, ...]
    rows: tuple[tuple[DataValue, ...], ...]


def to_csv(found: FigureData) -> str:
    """With a header; nothing between two commas where there is no number. No spreadsheet computes a text of it.

    >>> to_csv(FigureData(("task", "rate"), (("=a", 0.1), ("b", None))))
    "task,rate\\n'=a,0.1\\nb,\\n"
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(found.columns)
    writer.writerows([csv_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in found.rows)
    return stream.getvalue()
