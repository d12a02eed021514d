"""From arrays of limits to the answer's shape, and what makes an answer undefined."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trialfleet_analysis.estimates import NOTHING_MEASURED, Floats, Integers, Interval, Intervals, floats


def answered(
    numbers: tuple[Floats, Floats, Floats],
    *,
    n: Integers,
    level: float,
    method: str,
    reason: NDArray[np.object_],
) -> Interval | Intervals:
    """`numbers`: estimate, low, high. An `Interval` for 0-dimensional counts, else `Intervals`; undefined where
    there is a reason."""
    if n.ndim == 0:
        why = reason.item()
        if why is not None:
            return Interval(None, None, None, level, int(n), method, reason=why)
        estimate, low, high = (float(value) for value in numbers)
        return Interval(estimate, low, high, level, int(n), method)
    undefined = reason != np.full(n.shape, None, dtype=np.object_)
    estimates, lows, highs = (np.where(undefined, np.nan, floats(values)) for values in numbers)
    return Intervals(estimates, lows, highs, level, n, method, None, reason)


def unmeasured(n: Integers) -> NDArray[np.object_]:
    """The reason, cell by cell, why a rate is undefined."""
    reason = np.full(n.shape, None, dtype=np.object_)
    reason[n == 0] = NOTHING_MEASURED
    return reason


def unmeasured_arm(n_a: Integers, n_b: Integers) -> NDArray[np.object_]:
    """The reason, cell by cell, why a difference of two rates is undefined."""
    reason = np.full(n_a.shape, None, dtype=np.object_)
    reason[n_b == 0] = f"{NOTHING_MEASURED} in arm b"
    reason[n_a == 0] = f"{NOTHING_MEASURED} in arm a"
    reason[(n_a == 0) & (n_b == 0)] = f"{NOTHING_MEASURED} in either arm"
    return reason


def unmeasured_tasks(n: Integers) -> str | None:
    """The reason why a mean over tasks is undefined: a task without a valid trial has no rate, and a mean
    without it would be another estimand."""
    empty = int(np.sum(n == 0))
    if n.size == 0:
        return "no tasks"
    return f"{empty} of {n.size} tasks have no valid trial" if empty else None
