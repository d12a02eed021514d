"""Resampling tasks and reps: how far the mean effect over tasks would move."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_analysis.continuous.percentile import BootstrapInterval, enough_resamples, percentile_interval
from trialfleet_analysis.continuous.resampling import (
    batches,
    gather,
    medians,
    summed_by_resample,
    times_drawn,
    too_few_tasks,
)
from trialfleet_analysis.continuous.samples import (
    Cells,
    cells,
    chosen,
    incomplete,
    known_estimand,
    measured,
    rows_by_stratum,
)
from trialfleet_analysis.estimates import Estimand, Floats

Statistic = Literal["mean", "median"]


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
    resampled, both arms together, and reps within each drawn task, anew each time it is drawn. Sources: Efron
    1979; Davison & Hinkley 1997, 3.8. Same input and seed, same answer; the order of the rows does not matter.

    Percentile intervals are narrow in small samples: of *these tasks* by the factor √((R − 1) / R) for R reps of a
    cell (normal values: a nominal .95 covers .91 at 7 tasks x 5 reps, .94 at 7 x 25); of *tasks like these* with
    few tasks and many reps (.92 at 7 x 25), where `hodges_lehmann` on task differences is the safer choice, and
    wide with few reps, whose noise is drawn twice (.97 at 20 x 5). Medians of few reps take few values, and so do
    their limits.

    Undefined (None, with the reason): a task without values in one arm, since a mean over the others would be
    another estimand; one task only, for *tasks like these*. Limits alone are None where a cell of *these tasks*
    has one rep, and where every resample is equal. Raises `ValueError` for what is not finite, for columns of
    unequal length, and for fewer resamples than the level needs.

    >>> arm, task = [1, 1, 1, 0, 0, 0] * 2, ["django"] * 6 + ["flask"] * 6
    >>> turns = [12, 15, 11, 20, 18, 25, 31, 29, 36, 40, 38, 33]
    >>> found = hierarchical_bootstrap(turns, arm, task, estimand="these_tasks", seed=1)
    >>> round(found.estimate, 2), found.low < found.estimate < found.high < 0
    (-6.67, True)
    """
    known_estimand(estimand)
    chosen(statistic, "statistic", ("mean", "median"))
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
        return replace(named, estimate=estimate, reason=f"{single} of {len(found)} tasks have one rep in an arm")
    resampled = _resampled(found, statistic, estimand, wanted, np.random.default_rng(seed))
    interval = percentile_interval(estimate, resampled, float(np.abs(column).max()), level=level, n=column.size)
    return replace(interval, method=named.method, estimand=estimand)


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
