"""Columns of the tables as the analysis asks for them: places among known names, truths, counts of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trialfleet_analysis.estimates import Integers
from trialfleet_analysis.tables.columns import numbers, words

Bools: TypeAlias = NDArray[np.bool_]


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
