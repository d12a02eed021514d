"""What comes after the first edit, regressed on when it came."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from trialfleet_analysis.continuous.samples import DUST, known_estimand
from trialfleet_analysis.estimates import Estimand, Floats, Integers, Interval, share
from trialfleet_analysis.timing.rows import as_long, numbered

NO_VARIATION = "first edits do not vary within any task"


class Spread(NamedTuple):
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
    chance, with whatever variance. *Tasks like these*: jackknife over tasks (CV3; MacKinnon, Nielsen & Webb
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
    x = as_long(x, "first_edit", x.size)
    y, (of_task, _) = as_long(after, "after", x.size), numbered(task, "task", x.size)
    of_condition, conditions = numbered(np.zeros(x.size) if condition is None else condition, "condition", x.size)
    kept = np.bincount(of_task)[of_task] > 1 if x.size else np.zeros(0, np.bool_)
    named = Interval(None, None, None, share(level, "level"), int(kept.sum()), "task_effects_slope", estimand)
    within = _within(x[kept], y[kept], of_task[kept], of_condition[kept], conditions)
    products = _products(within)
    beta = _slope(products.own.sum(axis=0), products.with_y.sum(axis=0))
    if beta is None:
        return replace(named, reason=NO_VARIATION)
    spread = _of_trials(within, beta) if estimand == "these_tasks" else _of_tasks(products, beta)
    if spread.reason:
        return replace(named, estimate=beta, reason=spread.reason)
    half = float(special.stdtrit(spread.df, (1 + level) / 2)) * spread.se
    return replace(named, estimate=beta, low=beta - half, high=beta + half)


def _within(x: Floats, y: Floats, task: Integers, condition: Integers, conditions: int) -> Within:
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


def _of_trials(within: Within, beta: float) -> Spread:
    """HC3: squared residuals over (1 − leverage)², leverage of task means, other columns and the first edit."""
    basis = _basis(within.others)
    x = within.x - basis @ (basis.T @ within.x)
    y = within.y - basis @ (basis.T @ within.y)
    scale = float(x @ x)
    df = x.size - within.tasks - basis.shape[1] - 1
    if df < 1:
        return Spread(reason="as many parameters as trials")
    leverage = 1 / np.bincount(within.task)[within.task] + np.sum(basis**2, axis=1) + x**2 / scale
    residual, free = y - beta * x, 1 - leverage > 1e-9  # a trial alone in its cell is fitted whatever it is
    bent = np.divide(residual, 1 - leverage, out=np.zeros(x.size), where=free)
    return Spread(float(np.sqrt(np.sum((x * bent) ** 2))) / scale, df)


def _basis(columns: Floats) -> Floats:
    """Orthonormal columns that span the same."""
    if not columns.size:
        return np.zeros((columns.shape[0], 0))
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    kept = u[:, s > 1e-9 * max(float(s[0]), DUST)]
    return np.asarray(kept, dtype=np.float64)


def _of_tasks(of: Products, beta: float) -> Spread:
    tasks = of.own.shape[0]
    if tasks < 2:
        return Spread(reason="one task says nothing about other tasks")
    whole, with_y = of.own.sum(axis=0), of.with_y.sum(axis=0)
    without = [_slope(whole - own, with_y - mixed) for own, mixed in zip(of.own, of.with_y, strict=True)]
    known = np.array([slope for slope in without if slope is not None])
    if known.size < tasks:
        return Spread(reason="one task alone carries the slope")
    return Spread(float(np.sqrt((tasks - 1) / tasks * np.sum((known - beta) ** 2))), tasks - 1)
