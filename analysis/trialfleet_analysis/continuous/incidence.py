"""Time to a pass, which a failure forestalls."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trialfleet_analysis.continuous.samples import coded, duration
from trialfleet_analysis.continuous.survival import (
    greenwood,
    kaplan_meier,
    known_limit,
    restricted_mean_difference,
)
from trialfleet_analysis.estimates import NOTHING_MEASURED, Floats, Integers, Interval, Intervals, normal_quantile
from trialfleet_analysis.intervals.single import wilson_limits


class Incidence(NamedTuple):
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
    trials. Raises `ValueError` for what is negative or not finite and for columns of unequal length.

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
    time: ArrayLike,
    cause: ArrayLike,
    arm: ArrayLike,
    stratum: ArrayLike,
    *,
    limit: float,
    level: float = 0.95,
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
    reason = f"{cut} of {until.size} trials were cut off before the limit"
    return replace(named, estimate=None, low=None, high=None, reason=reason) if cut else named


def _incidence(time: Floats, cause: Integers, at: Floats) -> Incidence:
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
    return Incidence(np.minimum(f, 1.0), np.maximum(spread + own - 2 * shared, 0.0), time.size - cut)


def _summed(terms: Floats, upto: Integers) -> Floats:
    return np.concatenate(([0.0], np.cumsum(terms)))[upto]


def _effective_trials(found: Incidence) -> Floats:
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
