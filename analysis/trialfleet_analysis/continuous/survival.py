"""Time on a run that a limit may cut short: mean time up to that limit, compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_analysis.continuous.samples import Rows, coded, duration, incomplete, rows_by_stratum
from trialfleet_analysis.estimates import Estimand, Floats, Integers, Interval, floats, normal_quantile

THESE_TASKS: Estimand = "these_tasks"


class Curve(NamedTuple):
    """A Kaplan-Meier curve at its distinct event times, ascending: shape (k,) each."""

    time: Floats
    events: Integers
    at_risk: Integers
    survival: Floats


class RestrictedMean(NamedTuple):
    mean: float
    variance: float


def restricted_mean_difference(
    time: ArrayLike,
    event: ArrayLike,
    arm: ArrayLike,
    stratum: ArrayLike,
    *,
    limit: float,
    level: float = 0.95,
) -> Interval:
    """Mean of min(T, limit) under a less that under b, each stratum weighing the same.

    `time` (0 or more), `event` (1: the run ended then; 0: it was cut off then, censored), `arm` (1 = a), `stratum`
    (the task): shape (n,), one entry per trial. Time over the `limit` counts as the limit. Per stratum and arm the
    area under the Kaplan-Meier curve up to the limit, with variance Σ Aᵢ² dᵢ / (Yᵢ (Yᵢ − dᵢ)) over event times
    before it: Aᵢ the area right of tᵢ, dᵢ events among Yᵢ at risk (Greenwood's terms). The difference is the mean
    over strata, its interval normal, for *these tasks*. Sources: Kaplan & Meier 1958; Irwin 1949; Royston & Parmar
    2013. When nothing is cut off before the limit this is the plain mean of min(T, limit).

    For time spent, tokens or cost under a budget: a run that a time-out cut off is censored, neither missing nor
    an event. Not for the time to a pass, where failing ends the run too (`restricted_time_to_pass_difference`).
    The variance divides by R, not R − 1: with 5 reps per cell the limits are some 11 % too near, and a
    nominal .95 covers .92 at 7 tasks.

    Undefined (None, with the reason): a stratum without trials in one arm; a cell whose last trial is cut off
    before the limit, where the curve is unknown. Limits alone are None when no time varies within a cell. Raises
    `ValueError` for what is negative or not finite, for columns of unequal length, and for a limit not above 0.

    >>> time, event = [10, 20, 30, 30, 5, 10, 15, 30], [1, 1, 0, 0, 1, 1, 1, 0]
    >>> found = restricted_mean_difference(time, event, [1] * 4 + [0] * 4, ["django"] * 8, limit=30)
    >>> found.estimate, found.rounded(2)
    (7.5, (-4.75, 19.75))
    """
    z, bound, until = normal_quantile(level), known_limit(limit), duration(time, "time")
    ended = coded(event, "event", 2, until.size)
    strata = rows_by_stratum(arm, stratum, until.size)
    method, estimand = "restricted_mean_difference", THESE_TASKS
    reason = incomplete(strata) or _cut_short(until, ended, strata, bound)
    if reason:
        return Interval(None, None, None, level, until.size, method, estimand, reason)
    pairs = [tuple(restricted_mean(until[rows], ended[rows], bound) for rows in of) for of in strata]
    estimate = float(np.mean([a.mean - b.mean for a, b in pairs]))
    error = float(np.sqrt(sum(a.variance + b.variance for a, b in pairs))) / len(pairs)
    if error == 0:
        reason = "no time varies within a cell: the spread is unknown, not 0"
        return Interval(estimate, None, None, level, until.size, method, estimand, reason)
    return Interval(estimate, estimate - z * error, estimate + z * error, level, until.size, method, estimand)


def restricted_mean(time: Floats, event: Integers, limit: float) -> RestrictedMean:
    """The area under one cell's Kaplan-Meier curve up to the limit."""
    curve = kaplan_meier(time, event)
    before = curve.time < limit
    edges = np.concatenate(([0.0], curve.time[before], [limit]))
    areas = np.diff(edges) * np.concatenate(([1.0], curve.survival[before]))
    right = np.cumsum(areas[::-1])[::-1][1:]
    return RestrictedMean(float(areas.sum()), float(np.sum(right**2 * greenwood(curve)[before])))


def kaplan_meier(time: Floats, event: Integers) -> Curve:
    """Trials cut off at an event's time are still at risk then."""
    at = np.unique(time[event == 1])
    events = np.bincount(np.searchsorted(at, time[event == 1]), minlength=at.size)
    at_risk = time.size - np.searchsorted(np.sort(time), at, side="left")
    return Curve(at, events, at_risk, floats(np.cumprod(1 - events / at_risk)))


def greenwood(curve: Curve) -> Floats:
    """d / (Y (Y − d)); 0 where the curve reaches 0, and nothing is left to vary."""
    left = curve.at_risk - curve.events
    return np.where(left > 0, curve.events / (curve.at_risk * np.maximum(left, 1)), 0.0)


def known_limit(limit: float) -> float:
    if not (np.isfinite(limit) and limit > 0):
        raise ValueError(f"limit: a time above 0 is wanted, got {limit}")
    return float(limit)


def _cut_short(time: Floats, event: Integers, strata: tuple[Rows, ...], limit: float) -> str | None:
    """Why a curve does not reach the limit."""
    short = 0
    for rows in (rows for of in strata for rows in of):
        last = time[rows].max()
        short += last < limit and not np.all(event[rows][time[rows] == last] == 1)
    return f"{short} of {2 * len(strata)} cells: the last trial is cut off before the limit" if short else None
