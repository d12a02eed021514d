"""Columns of the tables as numpy arrays: what computes on 100,000 trials takes these, not rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trialfleet_analysis.tables.schema import MOMENT, REAL
from trialfleet_analysis.tables.table import INTEGERS, NULL, Table
from trialfleet_statistics.estimates import Bools


class CategoryColumn(NamedTuple):
    """A column of one-of-few words. `codes` (int32, shape (n,)) index `names`; −1: no value."""

    codes: NDArray[np.int32]
    names: tuple[str, ...]

    def are(self, name: str) -> NDArray[np.bool_]:
        """Which rows have this word.

        >>> CategoryColumn(np.array([0, 1, -1], np.int32), ("a", "b")).are("b")
        array([False,  True, False])
        """
        if name not in self.names:
            return np.zeros(len(self.codes), np.bool_)
        return np.equal(self.codes, self.names.index(name))

    def used(self) -> set[str]:
        """The words that some row has."""
        return {self.names[code] for code in np.unique(self.codes) if code >= 0}


def words(table: Table, name: str) -> CategoryColumn:
    """A column of words. ValueError for another type."""
    if name not in table.names:
        raise ValueError(f"{name}: no column of words")
    return CategoryColumn(table.values[name], table.names[name])


def numbers(table: Table, name: str) -> NDArray[np.float64]:
    """Counts, reals, claims (1 or 0) and moments (seconds since the epoch); NaN: no value.

    >>> from trialfleet_analysis.tables.schema import COUNT, Column
    >>> from trialfleet_analysis.tables.table import table_of
    >>> numbers(table_of([Column("turns", COUNT, "")], {"turns": [3, None]}), "turns")
    array([ 3., nan])
    """
    kind, values = table.column(name).type, table.values[name]
    found = np.where(known(table, name), values, np.nan).astype(np.float64)
    return found / 1e6 if kind == MOMENT else found


def texts(table: Table, name: str) -> list[str | None]:
    """A column of texts or words, as Python's strings."""
    return table.listed(name)


def known(table: Table, name: str) -> NDArray[np.bool_]:
    """Which rows have a value."""
    kind, values = table.column(name).type, table.values[name]
    if values.dtype == object:
        return np.array([value is not None for value in values.tolist()], np.bool_)
    found: NDArray[np.bool_] = ~np.isnan(values) if kind == REAL else values != (NULL if kind in INTEGERS else -1)
    return found


def some(table: Table, rows: NDArray[np.bool_]) -> Table:
    """The rows where `rows` is True."""
    return table.take(rows)


Integers: TypeAlias = NDArray[np.int64]


def codes(table: Table, name: str, known: Sequence[str]) -> Integers:
    """Each word's place among `known`; −1 for null and for what is not known."""
    column = words(table, name)
    place = {word: n for n, word in enumerate(known)}
    lookup = np.array([*(place.get(word, -1) for word in column.names), -1], dtype=np.int64)
    return lookup[column.codes]


def among(table: Table, name: str, wanted: Sequence[str]) -> Bools:
    """Where the word is one of these."""
    return codes(table, name, wanted) >= 0


def integers(table: Table, name: str) -> Integers:
    """Of a column without nulls."""
    return numbers(table, name).astype(np.int64)


def truths(table: Table, name: str) -> Bools:
    """Claims; False for null."""
    return np.equal(numbers(table, name), 1)


def denied(table: Table, name: str) -> Bools:
    """Where a claim is False, and not null."""
    return np.equal(numbers(table, name), 0)


def lists(table: Table, name: str) -> list[list[Any]]:  # Any: texts, or pairs of them
    """A column of lists, as Python's."""
    return table.listed(name)


def tally(values: Iterable[str | None]) -> dict[str, int]:
    """How often each text occurs, in the texts' order; null is none."""
    return dict(sorted(Counter(value for value in values if value is not None).items()))
