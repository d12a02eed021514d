"""What one pass costs, in one arm over the other."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_analysis.continuous.percentile import BootstrapInterval, enough_resamples, percentile_limits
from trialfleet_analysis.continuous.resampling import (
    batches,
    gather,
    summed_by_resample,
    times_drawn,
    too_few_tasks,
)
from trialfleet_analysis.continuous.samples import (
    DUST,
    Rows,
    coded,
    duration,
    incomplete,
    known_estimand,
    rows_by_stratum,
)
from trialfleet_analysis.estimates import Estimand, Floats, Integers


class Spending(NamedTuple):
    """Of trials, or of resamples: money, and passes."""

    cost: Floats
    passed: Floats


def cost_per_pass(
    cost: ArrayLike,
    passed: ArrayLike,
    arm: ArrayLike,
    task: ArrayLike,
    *,
    estimand: Estimand,
    resamples: int = 10_000,
    seed: int,
    level: float = 0.95,
) -> BootstrapInterval:
    """(Σ cost / Σ passes) of a over that of b: below 1, a pass is cheaper under a.

    `cost` (0 or more, any one currency), `passed` (0 or 1), `arm` (1 = a), `task`: shape (n,), one row per trial;
    rows of lost attempts, not passed, tell what passes cost with losses. Interval: percentiles of the log ratio,
    exponentiated, over resampled reps within task and arm (*these tasks*), or tasks and then reps (*tasks like
    these*), cost and pass of a trial together. Sums run over all trials: a task with more reps weighs more.

    Resamples in which an arm has no pass (or no cost) have no ratio: `undefined_share`. One without passes of a
    counts as infinitely dear, of b as infinitely cheap, of both against both limits: a limit which that makes
    infinite is None, with the reason. `monte_carlo_se` is on the scale of the limits, where both exist.

    Undefined (None, with the reason): an arm without a pass or without a cost, a task without trials in one arm,
    one task only for *tasks like these*. Raises `ValueError` for what is negative or not finite, for columns of
    unequal length, and for fewer resamples than the level needs.

    >>> arm, task = ([1] * 5 + [0] * 5) * 2, ["django"] * 10 + ["flask"] * 10
    >>> cost, passed = [3, 2, 2, 1, 2, 1, 1, 2, 1, 1] * 2, [1, 1, 1, 1, 1, 1, 1, 0, 1, 1] * 2
    >>> found = cost_per_pass(cost, passed, arm, task, estimand="these_tasks", seed=1)
    >>> round(found.estimate, 3), found.rounded(1)
    (1.333, (0.7, 2.1))
    """
    known_estimand(estimand)
    wanted, money = enough_resamples(resamples, level), duration(cost, "cost")
    trials = Spending(money, coded(passed, "passed", 2, money.size).astype(np.float64))
    strata = rows_by_stratum(arm, task, money.size)
    named = BootstrapInterval(None, None, None, level, money.size, "cost_per_pass", estimand)
    reason = incomplete(strata) or too_few_tasks(len(strata), estimand)
    if reason:
        return replace(named, reason=reason)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = float(_log_ratio(*(_total(trials, strata, of_a) for of_a in (True, False))))
        if not math.isfinite(observed):
            return replace(named, reason="an arm without a pass, or without a cost")
        resampled = _log_ratio(*_resampled(trials, strata, estimand, wanted, np.random.default_rng(seed)))
    return _limited(replace(named, estimate=math.exp(observed), resamples=wanted), resampled)


def _limited(named: BootstrapInterval, logs: Floats) -> BootstrapInterval:
    """The limits that are finite, and why one is not."""
    named = replace(named, undefined_share=float(np.mean(~np.isfinite(logs))))
    if np.all(np.isfinite(logs)) and float(np.ptp(logs)) <= DUST:
        return replace(named, reason="every resample gives the same value: the spread is unknown, not 0")
    found = percentile_limits(logs, named.level)
    low, high = (math.exp(end) if math.isfinite(end) else None for end in (found.low, found.high))
    if low is None or high is None:
        reason = f"{named.undefined_share:.1%} of the resamples have an arm without a pass, or without a cost"
        return replace(named, low=low, high=high, reason=reason)
    return replace(named, low=low, high=high, monte_carlo_se=(low * found.low_se, high * found.high_se))


def _log_ratio(a: Spending, b: Spending) -> Floats:
    return np.log(a.cost) - np.log(a.passed) - np.log(b.cost) + np.log(b.passed)


def _total(trials: Spending, strata: tuple[Rows, ...], of_a: bool) -> Spending:
    rows = np.concatenate([of.a if of_a else of.b for of in strata])
    return Spending(np.asarray(trials.cost[rows].sum()), np.asarray(trials.passed[rows].sum()))


def _resampled(
    trials: Spending, strata: tuple[Rows, ...], estimand: Estimand, resamples: int, rng: np.random.Generator
) -> tuple[Spending, Spending]:
    """Both arms' totals in every resample, each shape (resamples,)."""
    a, b = (Spending(np.zeros(resamples), np.zeros(resamples)) for _ in range(2))
    for of, times in zip(strata, times_drawn(len(strata), estimand, resamples, rng), strict=True):
        for total, rows in ((a, of.a), (b, of.b)):
            drawn = _drawn(_ascending(trials, rows), int(times.sum()), rng)
            total.cost[:] += summed_by_resample(times, drawn.cost)
            total.passed[:] += summed_by_resample(times, drawn.passed)
    return a, b


def _ascending(trials: Spending, rows: Integers) -> Spending:
    """So that the order of the rows does not matter."""
    order = rows[np.lexsort((trials.passed[rows], trials.cost[rows]))]
    return Spending(trials.cost[order], trials.passed[order])


def _drawn(of: Spending, draws: int, rng: np.random.Generator) -> Spending:
    """Sums of one cell's resampled reps."""
    parts = [Spending(np.empty(0), np.empty(0))]
    for rows in batches(of.cost.size, draws):
        at = gather(of.cost.size, rows, rng)
        parts.append(Spending(of.cost[at].sum(axis=1), of.passed[at].sum(axis=1)))
    return Spending(np.concatenate([part.cost for part in parts]), np.concatenate([part.passed for part in parts]))
