"""A table in memory: typed columns as numpy arrays, and the rows that they make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trialfleet_analysis.tables.schema import Column, Kind

NULL = -(2**63)  # no value of a count, an ordinal or a moment, as numpy's NaT
LIMITS = {
    Kind.COUNT: (NULL + 1, 2**63 - 1),
    Kind.ORDINAL: (-(2**31), 2**31 - 1),
    Kind.MOMENT: (-62_135_596_800_000_000, 253_402_300_799_999_999),  # years 1 to 9999
}
INTEGERS = tuple(LIMITS)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Table:
    """`values`: by column, each of shape (num_rows,), and what stands for no value. Reals: float64, NaN. Counts,
    ordinals, moments (µs since the epoch): int64, `NULL`. Claims: int8, −1. Words: int32, which index `names`, −1.
    Texts, lists: objects, None."""

    columns: tuple[Column, ...]
    values: Mapping[str, NDArray[Any]]  # Any: by the column's type
    names: Mapping[str, tuple[str, ...]]

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.values.values()), ()))

    @property
    def column_names(self) -> list[str]:
        return list(self.values)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64] | slice) -> Table:
        """Those rows: a mask, places, or a part."""
        return Table(self.columns, {name: values[rows] for name, values in self.values.items()}, self.names)

    def select(self, names: Sequence[str]) -> Table:
        """Those columns, in that order."""
        return Table(tuple(map(self.column, names)), {name: self.values[name] for name in names}, self.names)

    def replaced(self, column: Column, values: Sequence[Any]) -> Table:
        """With another column of that name, or one more."""
        more = table_of((column,), {column.name: values})
        columns = {one.name: one for one in (*self.columns, column)}
        return Table(tuple(columns.values()), {**self.values, **more.values}, {**self.names, **more.names})

    def listed(self, name: str) -> list[Any]:
        """A column as Python's values; None: no value."""
        values = self.values[name].tolist()
        match self.column(name).type:
            case Kind.REAL:
                return [None if value != value else value for value in values]
            case Kind.MOMENT:
                return [None if at == NULL else _EPOCH + timedelta(microseconds=at) for at in values]
            case Kind.COUNT | Kind.ORDINAL:
                return [None if value == NULL else value for value in values]
            case Kind.CLAIM:
                return [(False, True, None)[value] for value in values]
            case Kind.WORD:
                names = (*self.names[name], None)
                return [names[code] for code in values]
            case _:
                return list(values)

    def different(self, name: str) -> tuple[NDArray[Any], list[Any]]:
        """Each row's place among the different values of a column; −1: no value of a word, a text or a list."""
        column, values = self.column(name), self.values[name]
        if column.type == Kind.WORD:
            return values, list(self.names[name])
        if column.type == Kind.TEXT:
            return coded(values.tolist())
        if values.dtype == object:
            keys = [None if value is None else repr(value) for value in values.tolist()]
            codes, _ = coded(keys)
            _, first = np.unique(codes, return_index=True)
            return codes, values[first[codes[first] >= 0]].tolist()
        found, places = np.unique(values, return_inverse=True)
        return places, Table((column,), {name: found}, {}).listed(name)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Each row's values by column."""
        names = self.column_names
        return [dict(zip(names, row, strict=True)) for row in zip(*map(self.listed, names), strict=True)]

    def equals(self, other: Table) -> bool:
        return self.columns == other.columns and self.to_pylist() == other.to_pylist()


def table_of(columns: Sequence[Column], values: Mapping[str, Sequence[Any]]) -> Table:
    """`values`: by column, as `Table.listed` gives them, moments in microseconds. Raises `OverflowError` for
    a number that the column cannot hold."""
    made: dict[str, NDArray[Any]] = {}
    names: dict[str, tuple[str, ...]] = {}
    for column in columns:
        given = values[column.name]
        if column.type == Kind.WORD:
            made[column.name], different = coded(given)
            names[column.name] = tuple(map(str, different))
        else:
            made[column.name] = _array(column.type, given)
    return Table(tuple(columns), made, names)


def coded(values: Sequence[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    """Each value's place among the different ones, in their first order; −1: None."""
    places: dict[Any, int] = {}
    codes = [-1 if value is None else places.setdefault(value, len(places)) for value in values]
    return np.array(codes, np.int32), list(places)


def fits(kind: Kind, value: Any) -> bool:
    """Whether a column of that type holds the value."""
    if value is None or kind not in (*INTEGERS, Kind.REAL):
        return True
    return math.isfinite(value) if kind == Kind.REAL else LIMITS[kind][0] <= value <= LIMITS[kind][1]


def _array(kind: Kind, values: Sequence[Any]) -> NDArray[Any]:
    if kind in INTEGERS or kind == Kind.REAL:
        if not all(fits(kind, value) for value in values):
            raise OverflowError(kind)
        null = np.nan if kind == Kind.REAL else NULL
        return np.array([null if v is None else v for v in values], np.float64 if kind == Kind.REAL else np.int64)
    if kind == Kind.CLAIM:
        return np.array([-1 if value is None else value for value in values], np.int8)
    made = values if kind == Kind.TEXT else [None if value is None else list(value) for value in values]
    return np.fromiter(made, dtype=object, count=len(made))
