"""The document's values on a terminal: sentences, tables and cautions. What others wrote is printed as plain text,
never as markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from trialfleet_designs.document.tables import ReportTable, Value
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.plurals import plural

MOST = 12  # cautions, and rows of a table that is cut
LONGEST = 2000  # characters of a sentence or a cell


def print_sentences(sentences: Sequence[str]) -> Iterator[Text]:
    """The first one decides."""
    for number, sentence in enumerate(sentences):
        yield Text(one_line(sentence, longest=LONGEST), style="" if number else "bold")


def print_table(
    found: ReportTable, *, elsewhere: str | None = None, rows: str = "row", folds: bool = False
) -> Iterator[RenderableType]:
    """Below its title; nothing without rows. `elsewhere`: where all of them are, of a table that is cut; `rows`:
    the noun for one of them; `folds`: as `lay_out_table`."""
    if not found.rows:
        return
    shown = found.rows[:MOST] if elsewhere else found.rows
    yield Text(f"\n{one_line(found.title)}", style="italic")
    yield lay_out_table(found, shown, folds=folds)
    if len(shown) < len(found.rows):
        yield Text(f"and {plural(len(found.rows) - len(shown), f'more {rows}')} in {elsewhere}", style="dim")


def lay_out_table(
    found: ReportTable, rows: Sequence[Sequence[Value]] | None = None, *, folds: bool = False
) -> Table:
    """Text folds; a number keeps its line unless a note stands below one of its column, or the table `folds`: its
    heads are names, or its numbers would not fit. `rows`: None: all."""
    shown = found.rows if rows is None else rows
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(found.columns):
        words = place in found.words
        whole = not words and not folds and all(row[place].note is None for row in shown)
        grid.add_column(Text(one_line(name)), justify="left" if words else "right", overflow="fold", no_wrap=whole)
    for row in shown:
        grid.add_row(*map(_show_value, row))
    return grid


def _show_value(value: Value) -> Text:
    shown = Text(one_line(value.text, longest=LONGEST), style="red" if value.alarm else "")
    return shown.append(f"\n{one_line(value.note)}", style="dim") if value.note else shown


def print_cautions(cautions: Sequence[str], *, elsewhere: str = "the files") -> Iterator[Text]:
    """`elsewhere`: where all of them are."""
    for caution in cautions[:MOST]:
        yield Text(f"! {one_line(caution)}", style="yellow")
    if len(cautions) > MOST:
        more = plural(len(cautions) - MOST, "more caution")
        yield Text(f"! and {more} in {elsewhere}", style="yellow")
