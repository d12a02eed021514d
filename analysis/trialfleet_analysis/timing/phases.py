"""How a trial's turns divide into exploration, edit and tail."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from trialfleet_analysis.continuous.resampling import too_few_tasks
from trialfleet_analysis.continuous.samples import DUST, known_estimand
from trialfleet_analysis.estimates import Estimand, Floats, Interval, share
from trialfleet_analysis.timing.first_edit import ONE_REP
from trialfleet_analysis.timing.rows import as_long, by_task, numbered


class Spread(NamedTuple):
    """Of a mean: its standard error and the degrees of freedom that this was estimated with."""

    se: float
    df: float


def mean_share(
    part: ArrayLike, whole: ArrayLike, task: ArrayLike, *, estimand: Estimand, level: float = 0.95
) -> Interval:
    """Mean over tasks of the mean share part / whole of their trials: one phase's share of the turns.

    `part` (0 or more), `whole` (above 0, at least `part`), `task`: shape (n,), one entry per trial. *These
    tasks*: se² = Σ s_t² / n_t / T² with Satterthwaite's degrees of freedom; *tasks like these*: t over the tasks'
    means, T − 1 degrees. Sources: Satterthwaite 1946; Miller 2024 (tasks as clusters). Limits are kept inside [0,
    1].

    The shares of one trial are averaged, not turns summed: long trials would outweigh short ones, and long trials
    are the ones that failed. Pitfall: the three shares add up to 1, so that one cannot grow without another
    shrinking; three tests on them are not three findings. A phase that most trials lack has a skewed share, and
    limits that are too short on its side. Beta shares on 7 tasks x 5 trials: a nominal .95 covers .95 for these
    tasks and .94 for tasks like these (measured by simulation, 2,000 campaigns).

    Undefined (None, with the reason): without trials. Limits alone are None where a task has one trial (*these
    tasks*), where there is one task (*tasks like these*), and without any spread. Raises `ValueError` for what is
    not finite, for shares outside [0, 1], and for columns of unequal length.

    >>> exploration, turns, task = [2, 4, 5, 8], [10, 10, 10, 10], ["a", "a", "b", "b"]
    >>> found = mean_share(exploration, turns, task, estimand="these_tasks")
    >>> round(found.estimate, 3), found.rounded(2)
    (0.475, (0.03, 0.92))
    """
    known_estimand(estimand)
    shares = _shares(part, whole)
    parts = by_task(shares, numbered(task, "task", shares.size)[0])
    named = Interval(None, None, None, share(level, "level"), shares.size, "mean_share_t", estimand)
    if not parts:
        return replace(named, reason="nothing was measured")
    means = np.array([one.mean() for one in parts])
    estimate, reason = float(means.mean()), too_few_tasks(len(parts), estimand)
    single = sum(one.size == 1 for one in parts)
    if single and estimand == "these_tasks":
        reason = ONE_REP.format(single, len(parts))
    if reason:
        return replace(named, estimate=estimate, reason=reason)
    spread = _within(parts) if estimand == "these_tasks" else _between(means)
    if spread.se <= DUST:
        return replace(named, estimate=estimate, reason="no spread: how far it would vary is unknown, not 0")
    half = float(special.stdtrit(spread.df, (1 + level) / 2)) * spread.se
    return replace(named, estimate=estimate, low=max(0.0, estimate - half), high=min(1.0, estimate + half))


def _shares(part: ArrayLike, whole: ArrayLike) -> Floats:
    counted = np.asarray(part, dtype=np.float64)
    numerator = as_long(counted, "part", counted.size)
    denominator = as_long(whole, "whole", numerator.size)
    if np.any(denominator <= 0) or np.any(numerator < 0) or np.any(numerator > denominator):
        raise ValueError("part: between 0 and the whole is wanted, and a whole above 0")
    return numerator / denominator


def _within(parts: list[Floats]) -> Spread:
    variance = np.array([np.var(one, ddof=1) / one.size for one in parts]) / len(parts) ** 2
    total, squares = float(variance.sum()), [v**2 / (one.size - 1) for v, one in zip(variance, parts, strict=True)]
    return Spread(float(np.sqrt(total)), total**2 / float(np.sum(squares)) if total else 1.0)


def _between(means: Floats) -> Spread:
    return Spread(float(np.std(means, ddof=1)) / means.size**0.5, means.size - 1)
