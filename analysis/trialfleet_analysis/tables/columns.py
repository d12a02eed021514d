"""Columns of the tables as numpy arrays: what computes on 100,000 trials takes these, not rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trialfleet_analysis.tables.schema import MOMENT
from trialfleet_statistics.estimates import Bools

# What pyarrow's stubs leave unknown is `Any` here, and nowhere else.


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


def words(table: pa.Table, name: str) -> CategoryColumn:
    """A dictionary column. ValueError for another type."""
    column = _whole(table, name)
    if not pa.types.is_dictionary(column.type):
        raise ValueError(f"{name}: no column of words")
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    return CategoryColumn(codes, tuple(column.dictionary.to_pylist()))


def numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    """Counts, reals, claims (1 or 0) and moments (seconds since the epoch); NaN: no value.

    >>> numbers(pa.table({"turns": pa.array([3, None])}), "turns")
    array([ 3., nan])
    """
    column = _whole(table, name)
    moments = column.type == MOMENT
    plain = column.cast(pa.int64()) if moments else column
    values = plain.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return cast("NDArray[np.float64]", values / 1e6 if moments else values)


def texts(table: pa.Table, name: str) -> list[str | None]:
    """A text column, as Python's strings."""
    return cast("list[str | None]", _whole(table, name).to_pylist())


def known(table: pa.Table, name: str) -> NDArray[np.bool_]:
    """Which rows have a value."""
    column = _whole(table, name)
    return cast("NDArray[np.bool_]", column.is_valid().to_numpy(zero_copy_only=False))


def some(table: pa.Table, rows: NDArray[np.bool_]) -> pa.Table:
    """The rows where `rows` is True."""
    return cast("pa.Table", cast("Any", table).filter(pa.array(rows)))


def _whole(table: pa.Table, name: str) -> Any:
    column: Any = cast("Any", table).column(name)
    if column.num_chunks == 1:
        return column.chunk(0)
    arrow: Any = pa
    return (
        arrow.concat_arrays(column.unify_dictionaries().chunks)
        if column.num_chunks
        else arrow.array([], column.type)
    )


Integers: TypeAlias = NDArray[np.int64]


def codes(table: pa.Table, name: str, known: Sequence[str]) -> Integers:
    """Each word's place among `known`; −1 for null and for what is not known."""
    column = words(table, name)
    place = {word: n for n, word in enumerate(known)}
    lookup = np.array([*(place.get(word, -1) for word in column.names), -1], dtype=np.int64)
    return lookup[column.codes]


def among(table: pa.Table, name: str, wanted: Sequence[str]) -> Bools:
    """Where the word is one of these."""
    return codes(table, name, wanted) >= 0


def integers(table: pa.Table, name: str) -> Integers:
    """Of a column without nulls."""
    return numbers(table, name).astype(np.int64)


def truths(table: pa.Table, name: str) -> Bools:
    """Claims; False for null."""
    return np.equal(numbers(table, name), 1)


def denied(table: pa.Table, name: str) -> Bools:
    """Where a claim is False, and not null."""
    return np.equal(numbers(table, name), 0)


def lists(table: pa.Table, name: str) -> list[list[Any]]:  # Any: texts, or pairs of them
    """A column of lists, as Python's."""
    return cast("list[list[Any]]", cast("Any", table).column(name).to_pylist())


def tally(values: Iterable[str | None]) -> dict[str, int]:
    """How often each text occurs, in the texts' order; null is none."""
    return dict(sorted(Counter(value for value in values if value is not None).items()))
