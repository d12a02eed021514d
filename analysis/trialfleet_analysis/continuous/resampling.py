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


def medians(values: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Medians of resampled reps, by their position: the k-th of n uniforms is Beta(k, n + 1 − k), and, given it,
    the one below is it times the (k − 1)-th root of a uniform. Values are ascending, so that the k-th position
    drawn holds the k-th value drawn."""
    size, k = values.size, values.size // 2 + 1
    upper = rng.beta(k, size + 1 - k, draws)
    above = values[_position(upper, size)]
    if size % 2:
        return above
    lower = upper * rng.random(draws) ** (1 / (k - 1))
    return (above + values[_position(lower, size)]) / 2


def _position(uniform: Floats, size: int) -> Integers:
    return np.minimum((uniform * size).astype(np.int64), size - 1)
