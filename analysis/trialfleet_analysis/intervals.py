"""Intervals for pass rates: one cell's reps, and one condition over its tasks.

Counts in, intervals out; nothing is rounded. Scalars give an `Interval` whose numbers are None, with a reason,
where they are undefined; arrays give `Intervals`, NaN and a reason there. `ValueError` for counts that cannot
be: negative, fractional, not finite, more passes than trials, or a level outside (0, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Estimand = Literal["these_tasks", "tasks_like_these"]
Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = Sequence[int] | NDArray[Any]

NOTHING_MEASURED = "no valid trial"


@dataclass(frozen=True)
class Interval:
    """An estimate with its limits, all on the rate scale [0, 1], or None with the `reason`.

    `n`: trials used. `estimand`: what a rate over several tasks stands for; None for a single cell.
    """

    estimate: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    method: str
    estimand: Estimand | None = None
    reason: str | None = None

    def rounded(self, digits: int) -> tuple[float, float] | None:
        """The limits for a person to read; None when undefined."""
        if self.low is None or self.high is None:
            return None
        return round(self.low, digits), round(self.high, digits)


@dataclass(frozen=True)
class EffectiveInterval(Interval):
    """An interval that also says how many independent trials of one rate would be as informative."""

    n_effective: float | None = None


@dataclass(frozen=True, eq=False)
class Intervals:
    """`Interval` for arrays: every number an array of the input's shape, NaN and a reason where undefined."""

    estimate: Floats
    low: Floats
    high: Floats
    level: float
    n: NDArray[np.int64]
    method: str
    estimand: Estimand | None
    reason: NDArray[np.object_]


@overload
def wilson(passes: int, trials: int, *, level: float = 0.95) -> Interval: ...
@overload
def wilson(passes: Counts, trials: Counts, *, level: float = 0.95) -> Intervals: ...
def wilson(passes: int | Counts, trials: int | Counts, *, level: float = 0.95) -> Interval | Intervals:
    """Wilson's score interval for one cell's pass rate, without continuity correction.

    Limits are the rates p with |x/n − p| = z √(p (1 − p) / n). Source: Wilson 1927; Brown, Cai & DasGupta 2001.
    Mean coverage is near nominal at every n, the worst rate's is not (.83 at n = 5): `clopper_pearson` never
    falls below. For one cell's reps, not for reps pooled over tasks (`effective_sample_wilson`).

    >>> wilson(3, 5).rounded(3)
    (0.231, 0.882)
    >>> wilson(0, 0).estimate, wilson(0, 0).reason
    (None, 'no valid trial')
    """
    x, n = _counts(passes, trials)
    low, high = _wilson_limits(x.astype(np.float64), n.astype(np.float64), _z(level))
    return _answer(x, n, low, high, level, "wilson")


@overload
def clopper_pearson(passes: int, trials: int, *, level: float = 0.95) -> Interval: ...
@overload
def clopper_pearson(passes: Counts, trials: Counts, *, level: float = 0.95) -> Intervals: ...
def clopper_pearson(passes: int | Counts, trials: int | Counts, *, level: float = 0.95) -> Interval | Intervals:
    """The exact interval for one cell's pass rate: both binomial tails held at (1 − level) / 2.

    Limits are beta quantiles: B(α/2; x, n − x + 1) and B(1 − α/2; x + 1, n − x), 0 at x = 0 and 1 at x = n.
    Source: Clopper & Pearson 1934. Coverage is never below the level and usually well above it.

    >>> clopper_pearson(3, 5).rounded(3)
    (0.147, 0.947)
    """
    x, n = _counts(passes, trials)
    tail = (1 - _checked(level)) / 2
    with np.errstate(all="ignore"):
        low = np.where(x == 0, 0.0, special.betaincinv(x, n - x + 1.0, tail))
        high = np.where(x == n, 1.0, special.betaincinv(x + 1.0, n - x, 1 - tail))
    return _answer(x, n, _floats(low), _floats(high), level, "clopper_pearson")


def effective_sample_wilson(
    passes: int | Counts, trials: int | Counts, *, level: float = 0.95
) -> EffectiveInterval:
    """Mean of the tasks' pass rates, for *these tasks*, with an interval that does not pool counts.

    `passes`, `trials`: shape (T,), one entry per task. With p the mean of p_t = x_t / n_t, the mean's variance
    is V = T⁻² Σ p_t (1 − p_t) / (n_t − 1), with p (1 − p) / n_t where n_t = 1; n_e = p (1 − p) / V, at least
    n_0 = T² / Σ (1 / n_t), and n_0 where V = 0; then Wilson's interval at n_e trials of rate p. Counting all
    reps as draws of one rate is too wide where tasks differ, and wrong where tasks lost unequally many.

    Undefined (None, with the reason) without tasks, or when a task has no valid trial: its rate is unknown, and
    a mean without it would be another estimand. Says nothing about other tasks.

    >>> mixed = effective_sample_wilson([25, 20, 5, 0], [25, 25, 25, 25])
    >>> mixed.estimate, mixed.rounded(3), round(mixed.n_effective or 0)
    (0.5, (0.444, 0.556), 300)
    """
    x, n = _counts(np.atleast_1d(np.asarray(passes)), np.atleast_1d(np.asarray(trials)))
    if x.ndim != 1:
        raise ValueError(f"one entry per task is wanted, shape (T,); got shape {x.shape}")
    z, total = _z(level), int(n.sum())
    empty = np.flatnonzero(n == 0)
    if x.size == 0 or empty.size:
        reason = f"{empty.size} of {n.size} tasks have no valid trial" if x.size else "no tasks"
        return EffectiveInterval(None, None, None, level, total, "effective_sample_wilson", "these_tasks", reason)
    rate = float(np.mean(x / n))
    n_effective = _effective_trials(x, n, rate)
    low, high = _wilson_limits(np.array(rate * n_effective), np.array(n_effective), z)
    return EffectiveInterval(
        rate,
        float(low),
        float(high),
        level,
        total,
        "effective_sample_wilson",
        "these_tasks",
        n_effective=n_effective,
    )


def _effective_trials(x: NDArray[np.int64], n: NDArray[np.int64], rate: float) -> float:
    tasks, p, pq = n.size, x / n, rate * (1 - rate)
    variance = float(np.sum(np.where(n > 1, p * (1 - p) / np.maximum(n - 1, 1), pq / n))) / tasks**2
    floor = tasks**2 / float(np.sum(1 / n))
    return floor if variance == 0 else max(floor, pq / variance)


def _wilson_limits(x: Floats, n: Floats, z: float) -> tuple[Floats, Floats]:
    """Limits for x passes of n, both real; NaN where n is 0, exactly 0 and 1 at the edges."""
    with np.errstate(invalid="ignore", divide="ignore"):
        p = x / n
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = np.where(p <= 0, 0.0, np.clip(centre - half, 0, 1))
    high = np.where(p >= 1, 1.0, np.clip(centre + half, 0, 1))
    return _floats(low), _floats(high)


def _counts(passes: ArrayLike, trials: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    x, n = np.broadcast_arrays(_whole(passes, "passes"), _whole(trials, "trials"))
    if np.any(x > n):
        raise ValueError("passes above trials")
    return x, n


def _whole(values: ArrayLike, name: str) -> NDArray[np.int64]:
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iuf" and numbers.size:
        raise ValueError(f"{name}: counts are wanted, got {numbers.dtype}")
    as_float = numbers.astype(np.float64)
    if not np.all(np.isfinite(as_float)) or np.any(as_float < 0) or np.any(as_float != np.floor(as_float)):
        raise ValueError(f"{name}: counts are whole numbers, 0 or more")
    return numbers.astype(np.int64)


def _checked(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    return level


def _z(level: float) -> float:
    return float(special.ndtri((1 + _checked(level)) / 2))


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _answer(
    x: NDArray[np.int64], n: NDArray[np.int64], low: Floats, high: Floats, level: float, method: str
) -> Interval | Intervals:
    """Scalars for 0-dimensional counts, else arrays; undefined where n is 0."""
    if x.ndim == 0:
        if n == 0:
            return Interval(None, None, None, level, 0, method, reason=NOTHING_MEASURED)
        return Interval(float(x / n), float(low), float(high), level, int(n), method)
    measured = n > 0
    with np.errstate(invalid="ignore"):
        estimate = _floats(x / n)
    reason = np.full(n.shape, None, dtype=np.object_)
    reason[~measured] = NOTHING_MEASURED
    return Intervals(
        estimate,
        np.where(measured, low, np.nan),
        np.where(measured, high, np.nan),
        level,
        n,
        method,
        None,
        reason,
    )
