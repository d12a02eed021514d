"""Result tables as values: columns, rows and notes, in the words that a reader gets. Every format shows these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from trialfleet_designs.document.figures import NOTHING, bare_p, bare_points, limits, percent, point_limits

if TYPE_CHECKING:
    from trialfleet_statistics.estimates import Interval, Test

R = TypeVar("R")
K = TypeVar("K")


@dataclass(frozen=True)
class Value:
    """One cell. `note`: why it is undefined, or what must be read with it; `alarm`: highlighted. Text and note may
    hold text of others: a renderer escapes them."""

    text: str
    note: str | None = None
    alarm: bool = False


Cell: TypeAlias = Value | str | int


@dataclass(frozen=True)
class TableColumn(Generic[R]):
    """One column of a table of R. `words`: it holds text, not numbers."""

    name: str
    cell: Callable[[R], Cell]
    words: bool


@dataclass(frozen=True)
class ReportTable:
    """`columns`: the first one names the rows. `words`: positions of the columns that hold text. `folded`: hidden
    until a reader opens it, where the format can do that; `group`: folded together with the others of it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    words: frozenset[int]
    lead: str = ""
    folded: bool = False
    group: str = ""


@dataclass(frozen=True)
class ReportSection:
    """One question, its tables, and a sentence or two on how to read them."""

    anchor: str
    title: str
    lead: str
    tables: tuple[ReportTable, ...]


def section(anchor: str, title: str, lead: str, *tables: ReportTable | None) -> ReportSection:
    """With the tables that have rows."""
    return ReportSection(anchor, title, lead, tuple(one for one in tables if one is not None and one.rows))


def number(name: str, cell: Callable[[R], Cell]) -> TableColumn[R]:
    return TableColumn(name, cell, words=False)


def text(name: str, cell: Callable[[R], Cell]) -> TableColumn[R]:
    return TableColumn(name, cell, words=True)


def table(
    title: str, found: Iterable[R], *columns: TableColumn[R], lead: str = "", folded: bool = False, group: str = ""
) -> ReportTable:
    """One row per result."""
    rows = tuple(tuple(_value(column.cell(one)) for column in columns) for one in found)
    words = frozenset(n for n, column in enumerate(columns) if column.words)
    return ReportTable(title, tuple(column.name for column in columns), rows, words, lead, folded, group)


def crossed(
    title: str,
    first: str,
    names: Iterable[str],
    kinds: Mapping[K, str],
    cell: Callable[[str, K], Cell],
    *,
    folded: bool = False,
) -> ReportTable:
    """One row per name and one column per kind; `kinds`: their heads. No rows without a kind."""
    rows = tuple((Value(name), *(_value(cell(name, kind)) for kind in kinds)) for name in names if kinds)
    return ReportTable(title, (first, *kinds.values()), rows, frozenset({0}), folded=folded)


def or_reason(shown: str, reason: str | None) -> Value:
    """An undefined number with its reason."""
    return Value(shown, reason if shown == NOTHING else None)


def rate(found: Interval) -> Value:
    return or_reason(percent(found.estimate), found.reason)


def rate_limits(found: Interval) -> Value:
    return or_reason(limits(found), found.reason if found.estimate is not None else None)


def difference(found: Interval) -> Value:
    return or_reason(bare_points(found.estimate), found.reason)


def difference_limits(found: Interval) -> Value:
    return or_reason(point_limits(found) or NOTHING, found.reason if found.estimate is not None else None)


def p_of(test: Test | None) -> Value:
    """With the reason, also where p is 1 because nothing could be compared."""
    return Value(NOTHING) if test is None else Value(bare_p(test.p_value), test.reason)


def sampled_p(test: Test, error: float | None) -> Value:
    """With the Monte Carlo standard error of a resampled p; None: the p is exact."""
    return p_of(test) if test.p_value is None or error is None else Value(bare_p(test.p_value), f"± {error:.1g}")


def failures(count: int) -> Value:
    """A count that should be 0: highlighted above that."""
    return Value(f"{count:,}", alarm=count > 0)


def spaced(name: str) -> str:
    """An identifier as words."""
    return name.replace("_", " ")


def _value(cell: Cell) -> Value:
    if isinstance(cell, Value):
        return cell
    return Value(f"{cell:,}" if isinstance(cell, int) else cell)
