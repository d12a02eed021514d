"""Tables as values: what every rendering shows of the document, already in the words that a person reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from trialfleet_analysis.estimates import Interval, Test
from trialfleet_analysis.report.figures import (
    NOTHING,
    bare_p,
    bare_points,
    limits,
    percent,
    point_limits,
)


@dataclass(frozen=True)
class Value:
    """One entry. `note`: why it is undefined, or what it must not be read without; `alarm`: look here. Text and
    note may hold what others wrote: a rendering escapes them."""

    text: str
    note: str | None = None
    alarm: bool = False


@dataclass(frozen=True)
class Words:
    """The name of a column that holds words instead of numbers."""

    name: str


Cell: TypeAlias = Value | str | int
Head: TypeAlias = Words | str


@dataclass(frozen=True)
class Table:
    """`columns`: the first one names the rows. `words`: places of the columns that hold words. `folded`: not shown
    before it is asked for, where a rendering can do that; `group`: with which others, where there are many."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    words: frozenset[int]
    lead: str = ""
    folded: bool = False
    group: str = ""


@dataclass(frozen=True)
class Section:
    """One question, its tables, and a sentence or two on how to read them."""

    anchor: str
    title: str
    lead: str
    tables: tuple[Table, ...]


def table(
    title: str,
    columns: Sequence[Head],
    rows: Iterable[Sequence[Cell]],
    *,
    lead: str = "",
    folded: bool = False,
    group: str = "",
) -> Table:
    """Raises `ValueError` for a row that is longer or shorter than the head."""
    made = tuple(tuple(_value(cell) for cell in row) for row in rows)
    if any(len(row) != len(columns) for row in made):
        raise ValueError(f"{title}: a row does not fit its {len(columns)} columns")
    names = tuple(column.name if isinstance(column, Words) else column for column in columns)
    words = frozenset(n for n, column in enumerate(columns) if isinstance(column, Words) or n == 0)
    return Table(title, names, made, words, lead, folded, group)


def full(*tables: Table | None) -> tuple[Table, ...]:
    """Those that have rows."""
    return tuple(one for one in tables if one is not None and one.rows)


def maybe(text: str, reason: str | None) -> Value:
    """A dash comes with its reason."""
    return Value(text, reason if text == NOTHING else None)


def rate(found: Interval) -> Value:
    return maybe(percent(found.estimate), found.reason)


def rate_limits(found: Interval) -> Value:
    return maybe(limits(found), found.reason if found.estimate is not None else None)


def gap(found: Interval) -> Value:
    return maybe(bare_points(found.estimate), found.reason)


def gap_limits(found: Interval) -> Value:
    return maybe(point_limits(found) or NOTHING, found.reason if found.estimate is not None else None)


def p_of(test: Test | None) -> Value:
    """With the reason also where it is 1 because nothing could be compared."""
    return Value(NOTHING) if test is None else Value(bare_p(test.p_value), test.reason)


def sampled_p(test: Test, error: float) -> Value:
    """With the standard error that only so many resamples leave in it."""
    return p_of(test) if test.p_value is None else Value(bare_p(test.p_value), f"± {error:.1g}")


def counted(number: int) -> Value:
    """A count of what should not be."""
    return Value(f"{number:,}", alarm=number > 0)


def spaced(name: str) -> str:
    """An identifier as words."""
    return name.replace("_", " ")


def _value(cell: Cell) -> Value:
    if isinstance(cell, Value):
        return cell
    return Value(f"{cell:,}" if isinstance(cell, int) else cell)
