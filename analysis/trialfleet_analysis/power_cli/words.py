"""Pieces of what `trialfleet power` prints."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text


def head(text: str) -> Text:
    return Text(text, style="italic")


def points(value: float) -> str:
    return f"{100 * value:.1f} points"


def table(*names: str, header: bool = True, numbers: int = 0) -> Table:
    """The first columns may be `numbers`."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=header)
    for place, name in enumerate(names):
        made.add_column(name, overflow="fold", justify="right" if place < numbers else "left")
    return made
