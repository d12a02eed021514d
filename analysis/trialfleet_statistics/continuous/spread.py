"""How far trials of one cell differ."""

from __future__ import annotations

import math

import numpy as np

from trialfleet_statistics.estimates import Floats, Integers


def pool_variation(values: Floats, cells: Integers) -> float | None:
    """The coefficient of variation within cells: √(exp(s²) − 1), of the variance s² of logs, pooled over cells.
    `cells`: of each value. Values that are missing or not above 0 are left out; None without a cell of two.

    >>> round(pool_variation(np.array([1.0, 2.0, 3.0, 6.0]), np.array([0, 0, 1, 1])), 3)
    0.521
    """
    known = np.isfinite(values) & (values > 0)
    logs, _, places = np.log(values[known]), *np.unique(cells[known], return_inverse=True)
    counts = np.bincount(places)
    freedom = int(np.sum(counts - 1))
    if not freedom:
        return None
    means = np.bincount(places, logs) / counts
    return math.sqrt(math.expm1(float(np.sum((logs - means[places]) ** 2)) / freedom))


def pool_mean_variation(values: Floats, cells: Integers) -> float | None:
    """What a difference of means depends on: the square root of the mean variance within cells, over the mean of
    the cells' means. Larger than `pool_variation` where cells differ in size: a large one has large deviations.
    Values that are missing or not above 0 are left out, and cells of one; None without any other.

    >>> round(pool_mean_variation(np.array([1.0, 2.0, 3.0, 6.0]), np.array([0, 0, 1, 1])), 3)
    0.527
    """
    known = np.isfinite(values) & (values > 0)
    of, _, places = values[known], *np.unique(cells[known], return_inverse=True)
    counts = np.bincount(places)
    if not (counts > 1).any():
        return None
    means = np.bincount(places, of) / counts
    squares = np.bincount(places, (of - means[places]) ** 2)
    several = counts > 1
    variance = float(np.mean(squares[several] / (counts[several] - 1)))
    return math.sqrt(variance) / float(np.mean(means[several]))
