"""Time on a run: its mean up to a limit that may cut it short; time to a pass, which a failure forestalls."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trialfleet_statistics.continuous.samples import Rows, coded, duration, incomplete, rows_by_stratum
from trialfleet_statistics.estimates import (
    NOTHING_MEASURED,
    Estimand,
    Floats,
    Integers,
    Interval,
    Intervals,
    floats,
    normal_quantile,
)
from trialfleet_statistics.intervals.rates import wilson_limits

THESE_TASKS: Estimand = "these_tasks"


class Curve(NamedTuple):
    """A Kaplan-Meier curve at its distinct event times, ascending: shape (k,) each."""

    time: Floats
    events: Floats
    at_risk: Floats
    survival: Floats


class RestrictedMean(NamedTuple):
    mean: float
    variance: float


def restricted_mean_difference(
    time: ArrayLike, event: ArrayLike, arm: ArrayLike, stratum: ArrayLike, *, limit: float, level: float = 0.95
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
    `ValueError` for values that are negative or not finite, for columns of unequal length, and for a limit not
    above 0.

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
    """Trials cut off at an event's time are still at risk then. Not by statsmodels, whose import takes 2 s."""
    at, events = np.unique(time[event == 1], return_counts=True)
    at_risk = time.size - np.searchsorted(np.sort(time), at)
    with np.errstate(divide="ignore"):  # nothing is left where all that were at risk have ended
        survival = np.exp(np.cumsum(np.log(1 - events / at_risk)))
    return Curve(at, floats(events), floats(at_risk), survival)


def greenwood(curve: Curve) -> Floats:
    """d / (Y (Y − d)); 0 where the curve reaches 0, and nothing is left to vary."""
    left = curve.at_risk - curve.events
    return np.where(left > 0, curve.events / (curve.at_risk * np.maximum(left, 1)), 0.0)


def known_limit(limit: float) -> float:
    if not (np.isfinite(limit) and limit > 0):
        raise ValueError(f"limit: expected a time above 0, got {limit}")
    return float(limit)


def _cut_short(time: Floats, event: Integers, strata: tuple[Rows, ...], limit: float) -> str | None:
    """Why a curve does not reach the limit."""
    short = 0
    for rows in (rows for of in strata for rows in of):
        last = time[rows].max()
        short += last < limit and not np.all(event[rows][time[rows] == last] == 1)
    return f"{short} of {2 * len(strata)} cells: the last trial is cut off before the limit" if short else None


class CumulativeIncidence(NamedTuple):
    """At the asked times: the share passed, its variance, and how many trials' state is known then."""

    passed: Floats
    variance: Floats
    known: Integers


@overload
def cumulative_incidence(time: ArrayLike, cause: ArrayLike, *, at: float, level: float = 0.95) -> Interval: ...
@overload
def cumulative_incidence(
    time: ArrayLike, cause: ArrayLike, *, at: list[float] | NDArray[np.float64], level: float = 0.95
) -> Intervals: ...
def cumulative_incidence(
    time: ArrayLike, cause: ArrayLike, *, at: float | list[float] | NDArray[np.float64], level: float = 0.95
) -> Interval | Intervals:
    """The share of trials that have passed by the times `at`, failing being a competing end.

    `time` (0 or more), `cause` (0: cut off, 1: passed, 2: failed): shape (n,), trials of one task and condition.
    F(t) = Σ S(tᵢ₋₁) d₁ᵢ / Yᵢ over tᵢ ≤ t, S the Kaplan-Meier curve of either end; its delta-method variance V
    gives F (1 − F) / V effective trials, and the limits are Wilson's for these: exactly Wilson's for the share
    passed by then when nothing was cut off earlier. At 0 and 1 the trials whose state is known are counted.
    Sources: Aalen & Johansen 1978; Marubini & Valsecchi 1995, 10.2.

    Counting failures as cut off (1 − Kaplan-Meier) would answer how many would pass if nobody failed, and is too
    high. Undefined (NaN with the reason; None for a scalar `at`) after the last trial was cut off, and without
    trials. Raises `ValueError` for values that are negative or not finite and for columns of unequal length.

    >>> found = cumulative_incidence([5, 8, 8, 12, 20], [1, 2, 1, 0, 1], at=[8.0, 20.0])
    >>> found.estimate.tolist(), found.low.round(3).tolist()
    ([0.4, 0.8], [0.118, 0.376])
    """
    z, until, asked = normal_quantile(level), duration(time, "time"), duration(np.atleast_1d(at), "at")
    ended = coded(cause, "cause", 3, until.size)
    reason = _unknown(until, ended, asked)
    found = _incidence(until, ended, asked)
    undefined = np.array([why is not None for why in reason], dtype=np.bool_)
    trials = _effective_trials(found)
    limits = wilson_limits(found.passed * trials, trials, z)
    low, high = (np.where(undefined, np.nan, limit) for limit in limits)
    estimate = np.where(undefined, np.nan, found.passed)
    if np.ndim(at):
        n = np.full(asked.shape, until.size, dtype=np.int64)
        return Intervals(estimate, low, high, level, n, "aalen_johansen", None, reason)
    if reason[0] is not None:
        return Interval(None, None, None, level, until.size, "aalen_johansen", None, str(reason[0]))
    return Interval(float(estimate[0]), float(low[0]), float(high[0]), level, until.size, "aalen_johansen")


def restricted_time_to_pass_difference(
    time: ArrayLike, cause: ArrayLike, arm: ArrayLike, stratum: ArrayLike, *, limit: float, level: float = 0.95
) -> Interval:
    """Mean time to a pass up to the limit, under a less that under b, a failure counting as the whole limit.

    Columns as for `restricted_mean_difference`, with `cause` as for `cumulative_incidence`. The area above the
    pass's cumulative incidence, up to the limit: negative when a passes more, or sooner. Time given a pass alone
    would compare the survivors only. Undefined (None, with the reason) also when a trial was cut off before the
    limit: whether and when it would have passed is unknown.

    >>> time, cause = [10, 20, 4, 30, 5, 10, 6, 30], [1, 1, 2, 0, 1, 2, 2, 2]
    >>> restricted_time_to_pass_difference(time, cause, [1] * 4 + [0] * 4, ["django"] * 8, limit=30).estimate
    -1.25
    """
    until, bound = duration(time, "time"), known_limit(limit)
    ended = coded(cause, "cause", 3, until.size)
    to_pass = np.where(ended == 2, bound, until)
    found = restricted_mean_difference(to_pass, ended == 1, arm, stratum, limit=bound, level=level)
    named = replace(found, method="restricted_time_to_pass_difference")
    cut = int(np.count_nonzero((ended == 0) & (until < bound)))
    reason = f"trials that were cut off before the limit: {cut} of {until.size}"
    return replace(named, estimate=None, low=None, high=None, reason=reason) if cut else named


def _incidence(time: Floats, cause: Integers, at: Floats) -> CumulativeIncidence:
    """statsmodels' CumIncidenceRight gives the same, but no variance once every trial has ended."""
    curve = kaplan_meier(time, (cause > 0).astype(np.int64))
    passes = np.bincount(np.searchsorted(curve.time, time[cause == 1]), minlength=curve.time.size)
    before = np.concatenate(([1.0], curve.survival))[:-1]
    step = before * passes / curve.at_risk
    share, terms = np.cumsum(step), greenwood(curve)
    upto = np.searchsorted(curve.time, at, side="right")
    f = _summed(step, upto)
    spread = f**2 * _summed(terms, upto) - 2 * f * _summed(share * terms, upto) + _summed(share**2 * terms, upto)
    own = _summed(step**2 * (curve.at_risk - passes) / (curve.at_risk * np.maximum(passes, 1)), upto)
    shared = f * _summed(step / curve.at_risk, upto) - _summed(share * step / curve.at_risk, upto)
    cut = np.searchsorted(np.sort(time[cause == 0]), at, side="left")
    return CumulativeIncidence(np.minimum(f, 1.0), np.maximum(spread + own - 2 * shared, 0.0), time.size - cut)


def _summed(terms: Floats, upto: Integers) -> Floats:
    return np.concatenate(([0.0], np.cumsum(terms)))[upto]


def _effective_trials(found: CumulativeIncidence) -> Floats:
    """As many trials of one rate as have this variance; at 0, at 1 and without one, the trials that are known."""
    f = found.passed
    known = (f <= 0) | (f >= 1) | (found.variance <= 0)
    return np.where(known, found.known, f * (1 - f) / np.where(known, 1.0, found.variance))


def _unknown(time: Floats, cause: Integers, at: Floats) -> NDArray[np.object_]:
    """Why the share at a time is unknown, None where it is known."""
    reason = np.full(at.shape, None, dtype=np.object_)
    if not time.size:
        reason[:] = NOTHING_MEASURED
    elif np.any(cause[time == time.max()] == 0):
        reason[at > time.max()] = "the last trial was cut off before"
    return reason
