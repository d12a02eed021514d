"""What every bootstrap draws, in bounded memory, and its interval, which says what resampling could not tell."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trialfleet_statistics.continuous.samples import DUST
from trialfleet_statistics.estimates import Estimand, Floats, Integers, Interval, floats, share, whole

NO_SPREAD = "every resample gives the same value: the spread is unknown, not 0"


@dataclass(frozen=True)
class BootstrapInterval(Interval):
    """`undefined_share`: of the `resamples`, how many had no value. `monte_carlo_se`: the standard error of the
    limits (low, high) that drawing only so many leaves; a limit shown to more digits is noise."""

    resamples: int = 0
    undefined_share: float = 0.0
    monte_carlo_se: tuple[float, float] | None = None


class PercentileLimits(NamedTuple):
    """Either end may be infinite: resamples without a value count against both."""

    low: float
    high: float
    low_se: float
    high_se: float


def enough_resamples(resamples: int, level: float) -> int:
    """Raises `ValueError` where a limit would lie beyond the most extreme resample."""
    least, given = math.ceil(2 / (1 - share(level, "level")) - 1e-9) - 1, int(whole(resamples, "resamples"))
    if given < least:
        raise ValueError(f"resamples: expected at least {least} for level {level}, got {given}")
    return given


def percentile_limits(resampled: Floats, level: float) -> PercentileLimits:
    """The order statistics k and B + 1 − k, k = ⌊(B + 1) (1 − level) / 2⌋ (Davison & Hinkley 1997, 2.1).

    NaN: a resample without a value, put where it widens the interval. The limits' own errors are half the
    distance between the order statistics one binomial standard deviation of k to either side.
    """
    size, tail = resampled.size, (1 - level) / 2
    k = math.floor((size + 1) * tail + 1e-9)
    low, low_se = _order_statistic(np.where(np.isnan(resampled), -np.inf, resampled), k, tail)
    high, high_se = _order_statistic(-np.where(np.isnan(resampled), np.inf, resampled), k, tail)
    return PercentileLimits(low, -high, low_se, high_se)


def with_limits(
    named: BootstrapInterval, resampled: Floats, *, scale: float, unbounded: str = "a limit is infinite"
) -> BootstrapInterval:
    """`named` with percentile limits. None with the reason: both where all resamples are equal at the values'
    `scale`, and one that is infinite (reason `unbounded`)."""
    named = replace(named, resamples=resampled.size)
    if np.all(np.isfinite(resampled)) and float(np.ptp(resampled)) <= DUST * scale:
        return replace(named, reason=NO_SPREAD)
    found = percentile_limits(resampled, named.level)
    low, high = (end if math.isfinite(end) else None for end in (found.low, found.high))
    if low is None or high is None:
        return replace(named, low=low, high=high, reason=unbounded)
    errors = found.low_se, found.high_se
    known = all(math.isfinite(error) for error in errors)
    return replace(named, low=low, high=high, monte_carlo_se=errors if known else None)


def _order_statistic(values: Floats, k: int, tail: float) -> tuple[float, float]:
    ascending, spread = np.sort(values), math.ceil(math.sqrt(values.size * tail * (1 - tail)))
    before, after = ascending[max(0, k - 1 - spread)], ascending[min(values.size - 1, k - 1 + spread)]
    return float(ascending[k - 1]), float((after - before) / 2) if np.isfinite(before) else math.inf


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
