"""Cells of pass rates: Wilson's, the exact and Jeffreys' interval of one; of a condition over its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray
from scipy import special

from trialfleet_statistics.estimates import (
    NOTHING_MEASURED,
    Counts,
    EffectiveInterval,
    Floats,
    Integers,
    Interval,
    Intervals,
    Tally,
    counts,
    floats,
    normal_quantile,
    share,
    state_lack,
)
from trialfleet_statistics.intervals.beta_binomial import marginals


def answered(
    numbers: tuple[Floats, Floats, Floats], *, n: Integers, level: float, method: str, reason: NDArray[np.object_]
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
    return state_lack(empty, n.size, "task", "no valid trial") if empty else None


@overload
def wilson(passes: int, trials: int, *, level: float = 0.95) -> Interval: ...
@overload
def wilson(passes: Counts, trials: Counts, *, level: float = 0.95) -> Intervals: ...
def wilson(passes: Tally, trials: Tally, *, level: float = 0.95) -> Interval | Intervals:
    """Wilson's score interval for one cell's pass rate, without continuity correction.

    Limits are the rates p with |x/n − p| = z √(p (1 − p) / n). Source: Wilson 1927; Brown, Cai & DasGupta 2001.
    Mean coverage is near nominal at every n, the worst rate's is not (.83 at n = 5): `clopper_pearson` never
    falls below. For one cell's reps, not for reps pooled over tasks (`effective_sample_wilson`).

    >>> wilson(3, 5).rounded(3)
    (0.231, 0.882)
    >>> wilson(0, 0).estimate, wilson(0, 0).reason
    (None, 'no valid trial')
    """
    x, n = counts(passes, trials)
    limits = wilson_limits(x.astype(np.float64), n.astype(np.float64), normal_quantile(level))
    return _answer(x, n, limits, level, "wilson")


@overload
def clopper_pearson(passes: int, trials: int, *, level: float = 0.95) -> Interval: ...
@overload
def clopper_pearson(passes: Counts, trials: Counts, *, level: float = 0.95) -> Intervals: ...
def clopper_pearson(passes: Tally, trials: Tally, *, level: float = 0.95) -> Interval | Intervals:
    """The exact interval for one cell's pass rate: both binomial tails held at (1 − level) / 2.

    Limits are beta quantiles: B(α/2; x, n − x + 1) and B(1 − α/2; x + 1, n − x), 0 at x = 0 and 1 at x = n.
    Source: Clopper & Pearson 1934. Coverage is never below the level and usually well above it.

    >>> clopper_pearson(3, 5).rounded(3)
    (0.147, 0.947)
    """
    x, n = counts(passes, trials)
    return _answer(x, n, _beta_limits(x, n, level, low=(0.0, 1.0), high=(1.0, 0.0)), level, "clopper_pearson")


@overload
def jeffreys(passes: int, trials: int, *, level: float = 0.95) -> Interval: ...
@overload
def jeffreys(passes: Counts, trials: Counts, *, level: float = 0.95) -> Intervals: ...
def jeffreys(passes: Tally, trials: Tally, *, level: float = 0.95) -> Interval | Intervals:
    """The equal-tailed credible interval for one cell's pass rate under Jeffreys' prior, Beta(½, ½).

    Limits are the quantiles of Beta(x + ½, n − x + ½), except that low is 0 at x = 0 and high is 1 at x = n:
    without these edges coverage falls to 0 as the rate nears them. Source: Brown, Cai & DasGupta 2001, section
    4.1. The estimate is x/n, as for the other intervals of one cell. Never average such posteriors over tasks:
    each is drawn towards ½, and that does not average out.

    >>> jeffreys(3, 5).rounded(3)
    (0.209, 0.906)
    >>> jeffreys(0, 5).rounded(3)
    (0.0, 0.379)
    """
    x, n = counts(passes, trials)
    return _answer(x, n, _beta_limits(x, n, level, low=(0.5, 0.5), high=(0.5, 0.5)), level, "jeffreys")


def wilson_limits(x: Floats, n: Floats, z: float) -> tuple[Floats, Floats]:
    """Limits for x passes of n, both real; NaN where n is 0, exactly 0 and 1 at the edges, which statsmodels'
    proportion_confint misses by rounding."""
    with np.errstate(invalid="ignore", divide="ignore"):
        p = x / n
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = np.where(p <= 0, 0.0, np.clip(centre - half, 0, 1))
    high = np.where(p >= 1, 1.0, np.clip(centre + half, 0, 1))
    return floats(low), floats(high)


def _beta_limits(
    x: Integers, n: Integers, level: float, *, low: tuple[float, float], high: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Quantiles of Beta(x + low₀, n − x + low₁) and Beta(x + high₀, n − x + high₁), with the edges at 0 and 1."""
    tail = (1 - share(level, "level")) / 2
    with np.errstate(all="ignore"):
        lower = np.where(x == 0, 0.0, special.betaincinv(x + low[0], n - x + low[1], tail))
        upper = np.where(x == n, 1.0, special.betainccinv(x + high[0], n - x + high[1], tail))
    return floats(lower), floats(upper)


def _answer(
    x: Integers, n: Integers, limits: tuple[Floats, Floats], level: float, method: str
) -> Interval | Intervals:
    with np.errstate(invalid="ignore"):
        estimate = floats(x / n)
    return answered((estimate, *limits), n=n, level=level, method=method, reason=unmeasured(n))


def effective_sample_wilson(passes: Tally, trials: Tally, *, level: float = 0.95) -> EffectiveInterval:
    """Mean of the tasks' pass rates, for *these tasks*, with an interval that does not pool counts.

    `passes`, `trials`: shape (T,), one entry per task. With p the mean of p_t = x_t / n_t, the mean's variance
    is V = T⁻² Σ p_t (1 − p_t) / (n_t − 1), with p (1 − p) / n_t where n_t = 1, and at least T⁻² Σ r_t (1 − r_t) /
    n_t with r_t = (x_t + ½) / (n_t + 1), since no pass and no failure is not certainty; n_e = p (1 − p) / V, at
    least n_0 = T² / Σ (1 / n_t); then Wilson's interval at n_e trials of rate p. Counting all reps as draws of one
    rate is too wide where tasks differ, and wrong where tasks lost unequally many.

    Undefined (None, with the reason) without tasks, or when a task has no valid trial: its rate is unknown, and
    a mean without it would be another estimand. Says nothing about other tasks.

    >>> mixed = effective_sample_wilson([25, 20, 5, 0], [25, 25, 25, 25])
    >>> mixed.estimate, mixed.rounded(3), round(mixed.n_effective or 0)
    (0.5, (0.441, 0.559), 269)
    """
    x, n = counts_by_task(passes, trials)
    z, total, method = normal_quantile(level), int(n.sum()), "effective_sample_wilson"
    reason = unmeasured_tasks(n)
    if reason is not None:
        return EffectiveInterval(None, None, None, level, total, method, "these_tasks", reason)
    rate = float(np.mean(x / n))
    trials_worth = _effective_trials(x, n, rate)
    low, high = wilson_limits(np.array(rate * trials_worth), np.array(trials_worth), z)
    return EffectiveInterval(
        rate, float(low), float(high), level, total, method, "these_tasks", n_effective=trials_worth
    )


def counts_by_task(passes: Tally, trials: Tally) -> tuple[Integers, Integers]:
    """Both of shape (T,). Raises `ValueError` for another shape and for counts that cannot be."""
    x, n = counts(np.atleast_1d(np.asarray(passes)), np.atleast_1d(np.asarray(trials)))
    if x.ndim != 1:
        raise ValueError(f"expected one entry per task, shape (T,); got shape {x.shape}")
    return x, n


def harmonic_trials(n: Integers) -> float:
    """n_0 = T² / Σ (1 / n_t): what the trials of tasks with one common rate are worth in the mean of rates."""
    return n.size**2 / float(np.sum(1 / n))


def _effective_trials(x: Integers, n: Integers, rate: float) -> float:
    p, shrunk, pq = x / n, (x + 0.5) / (n + 1), rate * (1 - rate)
    unbiased = np.where(n > 1, p * (1 - p) / np.maximum(n - 1, 1), pq / n).sum()
    variance = max(float(unbiased), float((shrunk * (1 - shrunk) / n).sum())) / n.size**2
    return max(harmonic_trials(n), pq / variance)


@dataclass(frozen=True)
class PooledInterval(Interval):
    """A rate for tasks like these; `icc`: the share of one trial's variance that lies between tasks."""

    icc: Interval | None = None


def pooled_fixed(passes: Tally, trials: Tally, *, level: float = 0.95) -> Interval:
    """Mean of the tasks' pass rates, for *these tasks*: Wilson's interval as if all trials shared one rate.

    `passes`, `trials`: shape (T,), one entry per task. Wilson at the mean p of p_t = x_t / n_t and n_0 = T² /
    Σ (1 / n_t) trials: with equal n_t that is Wilson's interval of the summed counts. Its variance p (1 − p) / n_0
    counts the spread between tasks as noise, so it is valid and too wide where tasks differ: on rates (1, 1, .8,
    .6, .4, .1, 0) at 5 reps it covers .999. `effective_sample_wilson` does not waste that. With very unequal n_t
    the task of few trials dominates the error, and this width does not know whether its rate is the uncertain one.
    Never an interval for tasks like these (`pooled_random`): there it covers .66 to .90, worse with more reps.

    Undefined (None, with the reason) without tasks, or when a task has no valid trial.

    >>> pooled_fixed([25, 20, 5, 0], [25, 25, 25, 25]).rounded(3)
    (0.404, 0.596)
    """
    x, n = counts_by_task(passes, trials)
    z, total = normal_quantile(level), int(n.sum())
    reason = unmeasured_tasks(n)
    if reason is not None:
        return Interval(None, None, None, level, total, "pooled_fixed", "these_tasks", reason)
    rate, size = float(np.mean(x / n)), harmonic_trials(n)
    low, high = wilson_limits(np.array(rate * size), np.array(size), z)
    return Interval(rate, float(low), float(high), level, total, "pooled_fixed", "these_tasks")


def pooled_random(passes: Tally, trials: Tally, *, level: float = 0.95) -> PooledInterval:
    """Mean pass rate of *tasks like these*: the equal-tailed interval of a hierarchical beta-binomial model.

    `passes`, `trials`: shape (T,), one entry per task. Tasks' rates come from one beta distribution with mean mu
    and intra-class correlation icc, both with flat priors; the posterior is summed on a grid, so that the same
    counts give the same numbers. The estimate is the posterior's median of mu (the tasks' own mean can lie outside
    the limits when all pass), `icc` the same for the correlation. Coverage over 7 tasks of 5 reps is .93 to .96;
    more tasks narrow it, more reps hardly do. Assumes that the tasks are a sample of the tasks meant.

    With one rep per task, icc is not identified and stays at its prior. Undefined (None, with the reason) below
    two tasks, or when a task has no valid trial.

    >>> found = pooled_random([5, 5, 4, 3, 2, 1, 0], [5] * 7)
    >>> found.rounded(2)
    (0.32, 0.79)
    >>> None if found.icc is None else found.icc.rounded(2)
    (0.13, 0.76)
    """
    x, n = counts_by_task(passes, trials)
    tail, total = (1 - share(level, "level")) / 2, int(n.sum())
    reason = unmeasured_tasks(n) or ("one task says nothing about others" if n.size < 2 else None)
    if reason is not None:
        return PooledInterval(None, None, None, level, total, "pooled_random", "tasks_like_these", reason)
    (rate, low, high), (between, least, most) = _quantiles(tuple(x.tolist()), tuple(n.tolist()), tail)
    icc = Interval(between, least, most, level, total, "pooled_random_icc", "tasks_like_these")
    return PooledInterval(rate, low, high, level, total, "pooled_random", "tasks_like_these", icc=icc)


@lru_cache(maxsize=256)
def _quantiles(
    passes: tuple[int, ...], trials: tuple[int, ...], tail: float
) -> tuple[Sequence[float], Sequence[float]]:
    """Median and limits of both parameters."""
    found = marginals(np.array(passes), np.array(trials), np.array([0.5, tail, 1 - tail]))
    return found.mu.tolist(), found.icc.tolist()
