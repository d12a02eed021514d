"""How often a trial of one arm beats one of the other, within a task."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_analysis.continuous.percentile import BootstrapInterval, enough_resamples, percentile_interval
from trialfleet_analysis.continuous.ranks import tie_groups
from trialfleet_analysis.continuous.resampling import batches, gather
from trialfleet_analysis.continuous.samples import DUST, Cells, cells, incomplete, measured, rows_by_stratum
from trialfleet_analysis.estimates import Estimand, Floats, Integers, floats


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
    equal, as when the arms do not overlap. Raises `ValueError` for what is not finite, for columns of unequal
    length, and for fewer resamples than the level needs.

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
        return replace(named, estimate=estimate, reason=f"{single} of {len(found)} strata have one rep in an arm")
    rng = np.random.default_rng(seed)
    resampled = np.mean([_resampled(of, wanted, rng) for of in coded], axis=0)
    interval = percentile_interval(estimate, resampled, 1.0, level=level, n=column.size)
    return replace(interval, method=named.method, estimand=estimand)


def _levels(of: Cells) -> Levels:
    pooled = np.concatenate((of.a, of.b))
    order = np.argsort(pooled, kind="stable")
    number = np.empty(pooled.size, dtype=np.int64)
    number[order] = tie_groups(pooled[order], DUST)
    return Levels(number[: of.a.size], number[of.a.size :], int(number.max()) + 1)


def _resampled(of: Levels, resamples: int, rng: np.random.Generator) -> Floats:
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
