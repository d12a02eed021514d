"""Columns in, cells out: what was measured, checked and laid out by stratum and arm; and its ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trialfleet_statistics.estimates import Floats, Integers, state_lack

DUST = 1e-12  # relative: what float arithmetic leaves between equal values; measured values lie further apart


class Rows(NamedTuple):
    """Which rows of the columns belong to a stratum, by arm."""

    a: Integers
    b: Integers


class Cells(NamedTuple):
    """The values of one stratum, by arm, ascending."""

    a: Floats
    b: Floats


def measured(values: ArrayLike, name: str, rows: int | None = None) -> Floats:
    """One finite number per row, of as many rows as there are. Raises `ValueError`, with their number, for what is
    NaN or infinite."""
    numbers = np.asarray(values)
    if numbers.size and numbers.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected numbers, got {numbers.dtype}")
    if numbers.ndim != 1:
        raise ValueError(f"{name}: expected one entry per row, shape (n,); got shape {numbers.shape}")
    unknown = np.count_nonzero(~np.isfinite(numbers))
    if unknown:
        raise ValueError(f"{name}: {unknown} of {numbers.size} are not finite; leave them out, and count them")
    if rows not in (None, numbers.size):
        raise ValueError(f"{name}: {numbers.size} entries for {rows} rows")
    return numbers.astype(np.float64)


def duration(values: ArrayLike, name: str) -> Floats:
    """As `measured`, 0 or more."""
    numbers = measured(values, name)
    if np.any(numbers < 0):
        raise ValueError(f"{name}: {np.count_nonzero(numbers < 0)} of {numbers.size} are negative")
    return numbers


def coded(values: ArrayLike, name: str, codes: int, rows: int) -> Integers:
    """As many entries as `rows`, each a whole number from 0 to `codes` − 1."""
    numbers = measured(values, name, rows)
    if not np.all(np.isin(numbers, np.arange(codes))):
        raise ValueError(f"{name}: only {', '.join(map(str, range(codes)))} are known")
    return numbers.astype(np.int64)


def rows_by_stratum(arm: ArrayLike, stratum: ArrayLike, rows: int) -> tuple[Rows, ...]:
    """The rows of every stratum, in the order of the strata's sorted labels."""
    is_a = coded(arm, "arm", 2, rows)
    number, strata = numbered(stratum, "stratum", rows)
    cell = 2 * number + (1 - is_a)
    order = np.argsort(cell, kind="stable")
    found = np.split(order, np.searchsorted(cell[order], np.arange(1, 2 * strata)))
    return tuple(Rows(found[2 * t], found[2 * t + 1]) for t in range(strata))


def numbered(values: ArrayLike, name: str, rows: int) -> tuple[Integers, int]:
    """Each row's place among the sorted labels, and how many labels there are."""
    labels: NDArray[Any] = np.asarray(values)
    if labels.shape != (rows,):
        raise ValueError(f"{name}: expected one label per row, shape ({rows},); got shape {labels.shape}")
    if labels.dtype.kind == "f" and np.any(np.isnan(labels)):
        raise ValueError(f"{name}: {np.count_nonzero(np.isnan(labels))} of {rows} labels are not a number")
    try:
        found, place = np.unique(labels, return_inverse=True)
    except TypeError as mixed:
        raise ValueError(f"{name}: expected labels of one kind, all text or all numbers") from mixed
    return place.astype(np.int64), int(found.size)


def cells(values: Floats, strata: tuple[Rows, ...]) -> tuple[Cells, ...]:
    """Ascending, so that no answer and no random draw depends on the order of the rows."""
    return tuple(Cells(np.sort(values[of.a]), np.sort(values[of.b])) for of in strata)


def incomplete(strata: tuple[Rows, ...] | tuple[Cells, ...]) -> str | None:
    """Why an equal-weight mean over these strata is undefined; None when every stratum has both arms.

    A mean over the others would be another estimand: which strata to leave out is the caller's decision.
    """
    if not strata:
        return "nothing was measured"
    short = sum(not of.a.size or not of.b.size for of in strata)
    return state_lack(short, len(strata), "stratum", "no value in one arm") if short else None


def tie_groups(ascending: Floats, tolerance: float) -> Integers:
    """The number, from 0, of the group of equal values that each belongs to; neighbours within the relative
    tolerance are equal."""
    apart = np.diff(ascending) > tolerance * np.maximum(np.abs(ascending[1:]), np.abs(ascending[:-1]))
    first = np.zeros(min(1, ascending.size), dtype=np.int64)
    return np.concatenate((first, np.cumsum(apart, dtype=np.int64)))


def doubled_midranks(values: Floats, tolerance: float) -> Integers:
    """Twice the ranks from 1, ties at their mean."""
    order = np.argsort(values, kind="stable")
    group = tie_groups(values[order], tolerance)
    size = np.bincount(group)
    ranks = np.empty(values.size, dtype=np.int64)
    ranks[order] = (2 * np.cumsum(size) - size + 1)[group]
    return ranks
