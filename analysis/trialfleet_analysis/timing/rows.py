"""Columns of trials, checked and laid out by task."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trialfleet_analysis.continuous.samples import measured
from trialfleet_analysis.estimates import Floats, Integers


def numbered(labels: ArrayLike, name: str, rows: int) -> tuple[Integers, int]:
    """Each row's place among the sorted labels, and how many there are. Raises `ValueError` for another length."""
    found: NDArray[Any] = np.asarray(labels)
    if found.shape != (rows,):
        raise ValueError(f"{name}: one label per row is wanted, shape ({rows},); got shape {found.shape}")
    names, place = np.unique(found, return_inverse=True)
    return place.astype(np.int64), int(names.size)


def as_long(values: ArrayLike, name: str, rows: int) -> Floats:
    """As `measured`, of as many entries as `rows`."""
    found = measured(values, name)
    if found.size != rows:
        raise ValueError(f"{name}: {found.size} entries for {rows} rows")
    return found


def by_task(values: Floats, task: Integers) -> list[Floats]:
    """Every task's values, ascending, in the order of the tasks' numbers."""
    order = np.lexsort((values, task))
    starts = np.unique(task[order], return_index=True)[1]
    return np.split(values[order], starts[1:]) if values.size else []
