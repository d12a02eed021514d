"""Intervals from resampled tasks and reps: of a mean effect, of Cliff's delta, of a ratio of costs per pass."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_statistics.continuous.resampling import (
    NO_SPREAD,
    BootstrapInterval,
    batches,
    enough_resamples,
    gather,
    medians,
    percentile_limits,
    summed_by_resample,
    times_drawn,
    too_few_tasks,
    with_limits,
)
from trialfleet_statistics.continuous.samples import (
    DUST,
    Cells,
    Rows,
    cells,
    coded,
    duration,
    incomplete,
    measured,
    rows_by_stratum,
    tie_groups,
)
from trialfleet_statistics.estimates import Estimand, Floats, Integers, floats, known_estimand, one_of, state_lack

Statistic = Literal["mean", "median"]
ONE_REP = "one rep in an arm"


def hierarchical_bootstrap(
    values: ArrayLike,
    arm: ArrayLike,
    task: ArrayLike,
    *,
    estimand: Estimand,
    statistic: Statistic = "mean",
    resamples: int = 10_000,
    seed: int,
    level: float = 0.95,
) -> BootstrapInterval:
    """The mean over tasks of (statistic of a − statistic of b), each task weighing the same, with a percentile
    interval.

    `values`, `arm` (1 = a), `task`: shape (n,), one entry per trial. `statistic`: of one task's reps in one arm,
    "mean" or "median". *These tasks*: reps are resampled within every task and arm. *Tasks like these*: tasks are
    resampled, both arms together, and reps within each drawn task, again each time it is drawn. Sources: Efron
    1979; Davison & Hinkley 1997, 3.8. Same input and seed, same answer; the order of the rows does not matter.

    Percentile intervals are narrow in small samples: of *these tasks* by the factor √((R − 1) / R) for R reps of a
    cell (normal values: a nominal .95 covers .91 at 7 tasks x 5 reps, .94 at 7 x 25); of *tasks like these* with
    few tasks and many reps (.92 at 7 x 25), where `hodges_lehmann` on task differences is the safer choice, and
    wide with few reps, whose noise is drawn twice (.97 at 20 x 5). Medians of few reps take few values, and so do
    their limits.

    Undefined (None, with the reason): a task without values in one arm, since a mean over the others would be
    another estimand; one task only, for *tasks like these*. Limits alone are None where a cell of *these tasks*
    has one rep, and where every resample is equal. Raises `ValueError` for values that are not finite, for columns
    of unequal length, and for fewer resamples than the level needs.

    >>> arm, task = [1, 1, 1, 0, 0, 0] * 2, ["django"] * 6 + ["flask"] * 6
    >>> turns = [12, 15, 11, 20, 18, 25, 31, 29, 36, 40, 38, 33]
    >>> found = hierarchical_bootstrap(turns, arm, task, estimand="these_tasks", seed=1)
    >>> round(found.estimate, 2), found.low < found.estimate < found.high < 0
    (-6.67, True)
    """
    known_estimand(estimand)
    one_of(Statistic, statistic, "statistic")
    wanted, column = enough_resamples(resamples, level), measured(values, "values")
    found = cells(column, rows_by_stratum(arm, task, column.size))
    named = BootstrapInterval(
        None, None, None, level, column.size, f"hierarchical_bootstrap_{statistic}", estimand
    )
    reason = incomplete(found) or too_few_tasks(len(found), estimand)
    if reason:
        return replace(named, reason=reason)
    of_cell = np.mean if statistic == "mean" else np.median
    estimate = float(np.mean([of_cell(of.a) - of_cell(of.b) for of in found]))
    single = sum(of.a.size == 1 or of.b.size == 1 for of in found)
    if single and estimand == "these_tasks":
        return replace(named, estimate=estimate, reason=state_lack(single, len(found), "task", ONE_REP))
    resampled = _resampled(found, statistic, estimand, wanted, np.random.default_rng(seed))
    return with_limits(replace(named, estimate=estimate), resampled, scale=float(np.abs(column).max()))


def _resampled(
    found: tuple[Cells, ...], statistic: Statistic, estimand: Estimand, resamples: int, rng: np.random.Generator
) -> Floats:
    """The effect in every resample, shape (resamples,)."""
    total, of_cell = np.zeros(resamples), _means if statistic == "mean" else medians
    for of, times in zip(found, times_drawn(len(found), estimand, resamples, rng), strict=True):
        draws = int(times.sum())
        total += summed_by_resample(times, of_cell(of.a, draws, rng) - of_cell(of.b, draws, rng))
    return total / len(found)


def _means(values: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Means of resampled reps. Passes need no gather: their number is binomial."""
    size = values.size
    if np.all((values == 0) | (values == 1)):
        return rng.binomial(size, float(values.mean()), draws) / size
    return np.concatenate(
        [np.empty(0), *(values[gather(size, rows, rng)].mean(axis=1) for rows in batches(size, draws))]
    )


class Levels(NamedTuple):
    """One stratum's values as positions among its distinct values, by arm."""

    a: Integers
    b: Integers
    distinct: int


def cliffs_delta(
    values: ArrayLike,
    arm: ArrayLike,
    stratum: ArrayLike | None = None,
    *,
    resamples: int = 10_000,
    seed: int,
    level: float = 0.95,
) -> BootstrapInterval:
    """(#(a > b) − #(a < b)) / (n_a n_b) within each stratum, averaged with equal weights; in [−1, 1].

    `values`, `arm` (1 = a), `stratum` (the task; None: one stratum): shape (n,), one entry per trial. Interval:
    percentiles over reps resampled within stratum and arm, hence of *these tasks*. Source: Cliff 1993. Without
    strata, trials of several tasks measure how the tasks differ, not the arms.

    Percentile intervals of few reps are narrow (`hierarchical_bootstrap`). Undefined (None, with the reason): a
    stratum without values in one arm. Limits alone are None where a cell has one rep, and where every resample is
    equal, as when the arms do not overlap. Raises `ValueError` for values that are not finite, for columns of
    unequal length, and for fewer resamples than the level needs.

    >>> found = cliffs_delta([3, 5, 8, 9, 1, 2, 4, 6], [1, 1, 1, 1, 0, 0, 0, 0], seed=1)
    >>> found.estimate, found.rounded(2)
    (0.625, (-0.12, 1.0))
    """
    wanted, column = enough_resamples(resamples, level), measured(values, "values")
    labels = np.zeros(column.size, dtype=np.int64) if stratum is None else stratum
    found = cells(column, rows_by_stratum(arm, labels, column.size))
    estimand: Estimand | None = None if stratum is None else "these_tasks"
    named = BootstrapInterval(None, None, None, level, column.size, "cliffs_delta", estimand)
    reason = incomplete(found)
    if reason:
        return replace(named, reason=reason)
    coded = [_levels(of) for of in found]
    estimate = float(np.mean([_delta(of.a[None], of.b[None], of.distinct)[0] for of in coded]))
    single = sum(of.a.size == 1 or of.b.size == 1 for of in found)
    if single:
        return replace(named, estimate=estimate, reason=state_lack(single, len(found), "stratum", ONE_REP))
    rng = np.random.default_rng(seed)
    resampled = np.mean([_resampled_delta(of, wanted, rng) for of in coded], axis=0)
    return with_limits(replace(named, estimate=estimate), resampled, scale=1.0)


def _levels(of: Cells) -> Levels:
    pooled = np.concatenate((of.a, of.b))
    order = np.argsort(pooled, kind="stable")
    number = np.empty(pooled.size, dtype=np.int64)
    number[order] = tie_groups(pooled[order], DUST)
    return Levels(number[: of.a.size], number[of.a.size :], int(number.max()) + 1)


def _resampled_delta(of: Levels, resamples: int, rng: np.random.Generator) -> Floats:
    """The delta of every resample, shape (resamples,)."""
    parts: list[Floats] = []
    for rows in batches(of.a.size + of.b.size, resamples):
        a, b = (arm[gather(arm.size, rows, rng)] for arm in (of.a, of.b))
        parts.append(_delta(a, b, of.distinct))
    return np.concatenate(parts)


def _delta(a: Integers, b: Integers, distinct: int) -> Floats:
    """Per row of levels: for a trial at level l, #(b below) − #(b above) is C(l − 1) + C(l) − n_b, C the cumulated
    counts of b."""
    first: Integers = distinct * np.arange(a.shape[0], dtype=np.int64)[:, np.newaxis]
    at = np.bincount((b + first).ravel(), minlength=a.shape[0] * distinct).reshape(-1, distinct)
    ahead = 2 * np.cumsum(at, axis=1) - at - b.shape[1]
    return floats(ahead.ravel()[a + first].sum(axis=1) / (a.shape[1] * b.shape[1]))


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
    one task only for *tasks like these*. Raises `ValueError` for values that are negative or not finite, for
    columns of unequal length, and for fewer resamples than the level needs.

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
        resampled = _log_ratio(*_resampled_totals(trials, strata, estimand, wanted, np.random.default_rng(seed)))
    return _limited(replace(named, estimate=math.exp(observed), resamples=wanted), resampled)


def _limited(named: BootstrapInterval, logs: Floats) -> BootstrapInterval:
    """The limits that are finite, and why one is not."""
    named = replace(named, undefined_share=float(np.mean(~np.isfinite(logs))))
    if np.all(np.isfinite(logs)) and float(np.ptp(logs)) <= DUST:
        return replace(named, reason=NO_SPREAD)
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


def _resampled_totals(
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
