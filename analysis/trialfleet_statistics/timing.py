"""When agents first edit, how their turns divide before and after, and what a later first edit goes with.

All of it describes what happened after the treatment began: none of it is a causal effect of an early edit, or of
a hit. What a condition changed is in the contrasts of `first_edit_turn` and `first_edit_s`, which compare arms as
they were assigned. Numbers are of *these tasks* unless a function asks for the estimand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from trialfleet_statistics.continuous.resampling import (
    BootstrapInterval,
    enough_resamples,
    medians,
    too_few_tasks,
    with_limits,
)
from trialfleet_statistics.continuous.samples import DUST, coded, measured, numbered
from trialfleet_statistics.estimates import Estimand, Floats, Integers, Interval, known_estimand, share, state_lack

__all__ = ["HitGroup", "described_by_hit", "mean_share", "median_over_tasks", "slope_after_first_edit"]


def by_task(values: Floats, task: Integers) -> list[Floats]:
    """Every task's values, ascending, in the order of the tasks' numbers."""
    order = np.lexsort((values, task))
    starts = np.unique(task[order], return_index=True)[1]
    return np.split(values[order], starts[1:]) if values.size else []


NEVER = "at least half of the trials of the middle task never did it"
LIMIT_NEVER = "the limit lies beyond every trial that did it: others never did"
ONE_TRIAL = "one trial"


def median_over_tasks(
    values: ArrayLike, task: ArrayLike, *, resamples: int = 10_000, seed: int, level: float = 0.95
) -> BootstrapInterval:
    """Median over *these tasks* of each task's median, with a percentile bootstrap interval over its trials.

    `values`: shape (n,), one per trial, in turns or seconds; +∞ for a trial in which it never happened. `task`:
    its task. Each task counts once, however many trials it has. Source: Efron 1979; percentile limits as in
    Davison & Hinkley 1997, 2.1; trials are resampled within their task.

    A trial without an edit has no first edit, and leaving it out would keep the trials that went well: it stands
    behind all others instead, as a time that was not reached. The median then needs no assumption on when the edit
    would have come.

    Pitfall: medians of few trials take few values, and so do their limits. Normal values of spread 1 around task
    medians of spread 1: a nominal .95 covers .93 at 7 tasks x 5 trials and .94 at 7 x 25 (measured by simulation,
    2,000 campaigns).

    Undefined (None, with the reason): without trials, and where the median is +∞. Limits alone are None where a
    task has one trial, where every resample is equal, and where they are +∞. Raises `ValueError` for NaN, −∞,
    columns of unequal length, and fewer resamples than the level needs.

    >>> turns, task = [3, 4, 6, 9, 8, 7, 5, 6, float("inf")], ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    >>> median_over_tasks(turns, task, seed=1).estimate
    6.0
    >>> median_over_tasks([4, float("inf"), float("inf")], ["a"] * 3, seed=1).reason
    'at least half of the trials of the middle task never did it'
    """
    wanted, column = enough_resamples(resamples, level), np.asarray(values, dtype=np.float64)
    if column.ndim != 1 or np.any(np.isnan(column)) or np.any(np.isneginf(column)):
        raise ValueError("values: expected numbers, one per trial; +inf where it never happened")
    parts = by_task(column, numbered(task, "task", column.size)[0])
    named = BootstrapInterval(None, None, None, level, column.size, "bootstrap_median", "these_tasks")
    if not parts:
        return replace(named, reason="nothing was measured")
    estimate = float(np.median([np.median(part) for part in parts]))
    if math.isinf(estimate):
        return replace(named, reason=NEVER)
    named, single = replace(named, estimate=estimate), sum(part.size == 1 for part in parts)
    if single:
        return replace(named, reason=state_lack(single, len(parts), "task", ONE_TRIAL))
    resampled = _resampled(parts, wanted, np.random.default_rng(seed))
    return with_limits(named, resampled, scale=abs(estimate), unbounded=LIMIT_NEVER)


def _resampled(parts: list[Floats], resamples: int, rng: np.random.Generator) -> Floats:
    return np.asarray(np.median([medians(part, resamples, rng) for part in parts], axis=0), dtype=np.float64)


class MeanError(NamedTuple):
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
    tasks*), where there is one task (*tasks like these*), and without any spread. Raises `ValueError` for values
    that are not finite, for shares outside [0, 1], and for columns of unequal length.

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
        reason = state_lack(single, len(parts), "task", ONE_TRIAL)
    if reason:
        return replace(named, estimate=estimate, reason=reason)
    spread = _within(parts) if estimand == "these_tasks" else _between(means)
    if spread.se <= DUST:
        return replace(named, estimate=estimate, reason="no spread: how far it would vary is unknown, not 0")
    half = float(special.stdtrit(spread.df, (1 + level) / 2)) * spread.se
    return replace(named, estimate=estimate, low=max(0.0, estimate - half), high=min(1.0, estimate + half))


def _shares(part: ArrayLike, whole: ArrayLike) -> Floats:
    counted = np.asarray(part, dtype=np.float64)
    numerator = measured(counted, "part", counted.size)
    denominator = measured(whole, "whole", numerator.size)
    if np.any(denominator <= 0) or np.any(numerator < 0) or np.any(numerator > denominator):
        raise ValueError("part: expected a number between 0 and the whole, and a whole above 0")
    return numerator / denominator


def _within(parts: list[Floats]) -> MeanError:
    variance = np.array([np.var(one, ddof=1) / one.size for one in parts]) / len(parts) ** 2
    total, squares = float(variance.sum()), [v**2 / (one.size - 1) for v, one in zip(variance, parts, strict=True)]
    return MeanError(float(np.sqrt(total)), total**2 / float(np.sum(squares)) if total else 1.0)


def _between(means: Floats) -> MeanError:
    return MeanError(float(np.std(means, ddof=1)) / means.size**0.5, means.size - 1)


@dataclass(frozen=True)
class HitGroup:
    """The trials that hit, or those that did not. `median_first_edit`: over trials, those without an edit behind
    all others; None where at least half have none. `median_turns`: over trials. `tasks`: in how many tasks they
    lie."""

    hit: bool
    trials: int
    tasks: int
    passes: int
    median_first_edit: float | None
    median_turns: float | None


def described_by_hit(
    hit: ArrayLike, passed: ArrayLike, first_edit: ArrayLike, turns: ArrayLike, task: ArrayLike
) -> tuple[HitGroup, HitGroup]:
    """Trials with a hit, then those without: counts, passes and medians, and no interval, test or difference.

    `hit`, `passed` (0 or 1), `first_edit` (turn; +∞ without an edit), `turns`, `task`: shape (n,), one per trial.

    Pitfall: a hit comes after the treatment began. An agent that hits works on an easier task, or would pass
    anyhow; a prediction hits by the task. The gap between the groups is no effect of hitting, and not a
    share of the effect of a condition. `tasks` shows how far the groups are of different tasks.

    Raises `ValueError` for anything but 0 and 1 in `hit` and `passed`, NaN, and columns of unequal length.

    >>> yes, no = described_by_hit([1, 1, 0], [1, 0, 0], [3, 5, float("inf")], [9, 11, 30], ["a", "a", "b"])
    >>> yes.trials, yes.passes, yes.median_first_edit, no.median_first_edit, no.median_turns
    (2, 1, 4.0, None, 30.0)
    """
    first = np.asarray(first_edit, dtype=np.float64)
    if np.any(np.isnan(first)):
        raise ValueError("first_edit: expected a turn, +inf where there was none")
    rows = first.size
    kinds, good = coded(hit, "hit", 2, rows), coded(passed, "passed", 2, rows)
    length, (place, _) = measured(turns, "turns", rows), numbered(task, "task", rows)

    def group(kind: int) -> HitGroup:
        mine = kinds == kind
        return HitGroup(
            hit=bool(kind),
            trials=int(mine.sum()),
            tasks=int(np.unique(place[mine]).size),
            passes=int(good[mine].sum()),
            median_first_edit=_median(first[mine]),
            median_turns=_median(length[mine]),
        )

    return group(1), group(0)


def _median(values: Floats) -> float | None:
    found = float(np.median(values)) if values.size else np.inf
    return found if np.isfinite(found) else None


NO_VARIATION = "first edits do not vary within any task"


class SlopeError(NamedTuple):
    """Of a slope: its standard error and degrees of freedom; or why there is none."""

    se: float = 0.0
    df: float = 0.0
    reason: str | None = None


class Within(NamedTuple):
    """Trials as deviations from their task's mean. `others`: shape (n, columns), the other conditions' dummies."""

    x: Floats
    y: Floats
    others: Floats
    task: Integers
    tasks: int


def slope_after_first_edit(
    first_edit: ArrayLike,
    after: ArrayLike,
    task: ArrayLike,
    condition: ArrayLike | None = None,
    *,
    estimand: Estimand,
    level: float = 0.95,
) -> Interval:
    """By how many turns what follows is longer, per turn that the first edit comes later: β of

        after_i = α(task_i) + γ(condition_i) + β · first_edit_i + ε_i.

    `first_edit`: the turn (or second) of the first edit; `after`: what came after it, never the whole; `task`,
    `condition` (left out: no γ): labels. All of shape (n,), one entry per trial that edited.

    Pitfall, and why the whole is not regressed: first edit + after = total, so that total on first edit has the
    slope 1 + β, and every delayed turn "adds" one by arithmetic, also where nothing depends on it. Without task
    effects β mostly says that hard tasks take long before and after. Even so it describes: what makes an agent
    search long may make it work long, and a limit on turns cuts what follows most where the edit came late, which
    pulls β down.

    *These tasks*: HC3 (MacKinnon & White 1985), n − parameters degrees of freedom: trials of a task differ by
    chance, with any variance. *Tasks like these*: jackknife over tasks (CV3; MacKinnon, Nielsen & Webb
    2023), t with T − 1 degrees. The usual cluster sandwich is too narrow for the few tasks that campaigns have,
    and a bootstrap of few clusters is as well; leaving out one task at a time errs on the wide side. Normal
    noise, 7 tasks x 2 conditions x 5 trials: a nominal .95 covers .96 (these tasks); with slopes that vary
    between tasks by .3, .93, at 20 tasks .94 (tasks like these; measured by simulation, 2,000 campaigns).

    `n`: trials of tasks with two or more. Undefined (None, with the reason): where the first edit does not vary
    within any task once conditions are accounted for. Limits alone are None without degrees of freedom, with one
    task (*tasks like these*), and where one task alone carries the slope. Raises `ValueError` for what is not
    finite and for columns of unequal length.

    >>> first, after = [2, 4, 6, 10, 12, 17], [3, 4, 6, 20, 21, 23]
    >>> found = slope_after_first_edit(first, after, ["a"] * 3 + ["b"] * 3, estimand="these_tasks")
    >>> round(found.estimate, 3)
    0.5
    """
    known_estimand(estimand)
    x = np.asarray(first_edit, dtype=np.float64)
    x = measured(x, "first_edit", x.size)
    y, (of_task, _) = measured(after, "after", x.size), numbered(task, "task", x.size)
    of_condition, conditions = numbered(np.zeros(x.size) if condition is None else condition, "condition", x.size)
    kept = np.bincount(of_task)[of_task] > 1 if x.size else np.zeros(0, np.bool_)
    named = Interval(None, None, None, share(level, "level"), int(kept.sum()), "task_effects_slope", estimand)
    within = _deviations(x[kept], y[kept], of_task[kept], of_condition[kept], conditions)
    products = _products(within)
    beta = _slope(products.own.sum(axis=0), products.with_y.sum(axis=0))
    if beta is None:
        return replace(named, reason=NO_VARIATION)
    spread = _of_trials(within, beta) if estimand == "these_tasks" else _of_tasks(products, beta)
    if spread.reason:
        return replace(named, estimate=beta, reason=spread.reason)
    half = float(special.stdtrit(spread.df, (1 + level) / 2)) * spread.se
    return replace(named, estimate=beta, low=beta - half, high=beta + half)


def _deviations(x: Floats, y: Floats, task: Integers, condition: Integers, conditions: int) -> Within:
    of, tasks = numbered(task, "task", x.size)
    dummies = (condition[:, None] == np.arange(1, conditions)).astype(np.float64)
    columns = np.column_stack([x, y, dummies])
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], np.arange(tasks))
    sums = np.add.reduceat(columns[order], starts, axis=0) if tasks else np.zeros((0, columns.shape[1]))
    columns = columns - (sums / np.bincount(of, minlength=tasks)[:, None])[of]
    return Within(columns[:, 0], columns[:, 1], columns[:, 2:], of, tasks)


class Products(NamedTuple):
    """Per task the cross products of (first edit, other columns): with themselves, shape (T, k, k), and with what
    follows, shape (T, k)."""

    own: Floats
    with_y: Floats


def _products(within: Within) -> Products:
    design = np.column_stack([within.x, within.others])
    order = np.argsort(within.task, kind="stable")
    ends = np.searchsorted(within.task[order], np.arange(1, within.tasks))
    own, with_y = (
        np.zeros((within.tasks, design.shape[1], design.shape[1])),
        np.zeros((within.tasks, design.shape[1])),
    )
    for number, rows in enumerate(np.split(order, ends) if within.tasks else []):
        own[number], with_y[number] = design[rows].T @ design[rows], design[rows].T @ within.y[rows]
    return Products(own, with_y)


def _slope(products: Floats, with_y: Floats) -> float | None:
    """By the normal equations, the other columns partialled out; None without variation."""
    xx, xo, oo = float(products[0, 0]), products[0, 1:], products[1:, 1:]
    weights = xo @ np.linalg.pinv(oo, hermitian=True) if xo.size else xo
    left = xx - float(weights @ xo)
    if left <= DUST**0.5 * max(xx, DUST):
        return None
    return (float(with_y[0]) - float(weights @ with_y[1:])) / left


def _of_trials(within: Within, beta: float) -> SlopeError:
    """HC3: squared residuals over (1 − leverage)², leverage of task means, other columns and the first edit.

    statsmodels' OLS with a dummy per task gives the same limits; it takes 40 times as long at 4,000 trials of 40
    tasks, and is undefined at a leverage of 1.
    """
    basis = _basis(within.others)
    x = within.x - basis @ (basis.T @ within.x)
    y = within.y - basis @ (basis.T @ within.y)
    scale = float(x @ x)
    df = x.size - within.tasks - basis.shape[1] - 1
    if df < 1:
        return SlopeError(reason="as many parameters as trials")
    leverage = 1 / np.bincount(within.task)[within.task] + np.sum(basis**2, axis=1) + x**2 / scale
    residual, free = y - beta * x, 1 - leverage > 1e-9  # the fit of a trial alone in its cell is exact
    scaled = np.divide(residual, 1 - leverage, out=np.zeros(x.size), where=free)
    return SlopeError(float(np.sqrt(np.sum((x * scaled) ** 2))) / scale, df)


def _basis(columns: Floats) -> Floats:
    """Orthonormal columns that span the same."""
    if not columns.size:
        return np.zeros((columns.shape[0], 0))
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    kept = u[:, s > 1e-9 * max(float(s[0]), DUST)]
    return np.asarray(kept, dtype=np.float64)


def _of_tasks(of: Products, beta: float) -> SlopeError:
    tasks = of.own.shape[0]
    if tasks < 2:
        return SlopeError(reason="one task says nothing about other tasks")
    whole, with_y = of.own.sum(axis=0), of.with_y.sum(axis=0)
    without = [_slope(whole - own, with_y - mixed) for own, mixed in zip(of.own, of.with_y, strict=True)]
    known = np.array([slope for slope in without if slope is not None])
    if known.size < tasks:
        return SlopeError(reason="one task alone carries the slope")
    return SlopeError(float(np.sqrt((tasks - 1) / tasks * np.sum((known - beta) ** 2))), tasks - 1)
