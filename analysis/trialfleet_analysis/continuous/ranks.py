"""Ranks as integers, so that sums of them tie exactly."""

from __future__ import annotations

import numpy as np

from trialfleet_analysis.estimates import Floats, Integers


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
