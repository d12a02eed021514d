"""What every bootstrap draws: how often each task, and which reps of a cell, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trialfleet_analysis.estimates import Estimand, Floats, Integers, floats

GATHERED = 1 << 18  # values held at once: what fits a core's cache


def too_few_tasks(tasks: int, estimand: Estimand) -> str | None:
    one = tasks < 2 and estimand == "tasks_like_these"
    return "one task says nothing about other tasks" if one else None


def times_drawn(tasks: int, estimand: Estimand, resamples: int, rng: np.random.Generator) -> Iterator[Integers]:
    """For each task in turn, how often every resample has it: once, or as multinomial draws of T from T."""
    left = np.full(resamples, tasks, dtype=np.int64)
    for remaining in range(tasks, 0, -1):
        if estimand == "these_tasks":
            yield np.ones(resamples, dtype=np.int64)
        else:
            times = rng.binomial(left, 1 / remaining)
            left -= times
            yield times


def batches(size: int, draws: int) -> Iterator[int]:
    """How many of `draws` resamples of `size` values to hold at a time."""
    rows = max(1, GATHERED // size)
    for start in range(0, draws, rows):
        yield min(rows, draws - start)


def gather(size: int, rows: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Positions of `rows` resamples of a cell's reps, shape (rows, size)."""
    return rng.integers(0, size, (rows, size), dtype=np.int32)


def summed_by_resample(times: Integers, drawn: Floats) -> Floats:
    """One sum per resample of what was drawn for it: `times[i]` consecutive entries for resample i."""
    sums = np.bincount(np.repeat(np.arange(times.size), times), weights=drawn, minlength=times.size)
    return floats(sums)
