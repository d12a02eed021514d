"""Contrasts of more than two conditions, such as an interaction of two factors."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_analysis.comparisons.paired import mean_with_limits
from trialfleet_analysis.estimates import Counts, Estimand, Floats, Integers, Interval, counts, floats, share
from trialfleet_analysis.intervals import effective_sample_wilson


def linear_contrast(
    passes: Counts | ArrayLike,
    trials: Counts | ArrayLike,
    coefficients: ArrayLike,
    *,
    estimand: Estimand,
    level: float = 0.95,
) -> Interval:
    """Σ_c k_c p_c of the conditions' mean pass rates over tasks, for coefficients that add up to 0.

    `passes`, `trials`: shape (T, C), a row per task; `coefficients`: shape (C,). Conditions of coefficient 0
    play no part. "these_tasks": every condition's limits by `effective_sample_wilson`, joined by the
    square-and-add rule: low = estimate − √Σ (k_c p_c − the least of k_c times its limits)², high mirrored. With
    one task and (1, −1) that is Newcombe's interval; for an interaction of two factors it covers .95 to .96 at 7
    and 40 tasks of 5 and 25 reps, .93 in a single task of 5. "tasks_like_these": t limits over the tasks' own
    contrasts, T − 1 degrees of freedom. Source: Zou, Huang & Zhang 2009; Newcombe 1998. Both are held to the
    values that rates can give. `n`: trials used.

    Undefined (None, with the reason) where a condition that counts has no valid trial in a task;
    "tasks_like_these" also below two tasks, or where all tasks agree. Raises `ValueError` for coefficients that
    do not add up to 0, or are all 0, for wrong shapes and for counts that cannot be.

    >>> two_by_two = [[5, 4, 4, 1], [4, 3, 4, 1], [5, 5, 3, 2]]
    >>> linear_contrast(two_by_two, [[5] * 4] * 3, [1, -1, -1, 1], estimand="these_tasks").rounded(2)
    (-0.68, 0.11)
    """
    share(level, "level")
    if estimand not in get_args(Estimand):
        raise ValueError(f"estimand must be one of {', '.join(get_args(Estimand))}, got {estimand!r}")
    x, n = counts(passes, trials)
    if x.ndim != 2:
        raise ValueError(f"passes: a row per task and a column per condition are wanted, got shape {x.shape}")
    factors = _coefficients(coefficients, x.shape[1])
    used = factors != 0
    x, n, factors = x[:, used], n[:, used], factors[used]
    empty = int(np.sum(n == 0))
    reason = f"{empty} of {n.size} cells have no valid trial" if empty else None
    if not n.size:
        reason = "no tasks"
    estimate = low = high = None
    if reason is None:
        limits = _square_and_add if estimand == "these_tasks" else _over_tasks
        estimate, low, high, reason = limits(x, n, factors, level)
    least, most = float(factors[factors < 0].sum()), float(factors[factors > 0].sum())
    low, high = (None if limit is None else min(most, max(least, limit)) for limit in (low, high))
    return Interval(estimate, low, high, level, int(n.sum()), "linear_contrast", estimand, reason)


def _coefficients(values: ArrayLike, conditions: int) -> Floats:
    factors = floats(values)
    if factors.shape != (conditions,):
        raise ValueError(f"coefficients: one per condition is wanted, shape ({conditions},); got {factors.shape}")
    largest = float(np.max(np.abs(factors), initial=0.0))
    if not np.isfinite(largest) or largest == 0:
        raise ValueError("coefficients must be finite, and not all 0")
    if abs(float(factors.sum())) > 1e-9 * largest:
        raise ValueError(
            f"coefficients must add up to 0, got {float(factors.sum()):g}: the contrast would be a level"
        )
    return factors


def _square_and_add(
    x: Integers, n: Integers, factors: Floats, level: float
) -> tuple[float | None, float | None, float | None, str | None]:
    found = [effective_sample_wilson(x[:, column], n[:, column], level=level) for column in range(factors.size)]
    rates = np.array([[one.estimate, one.low, one.high] for one in found], dtype=np.float64).T
    scaled, ends = factors * rates[0], np.sort(factors * rates[1:], axis=0)
    estimate = float(scaled.sum())
    low, high = (float(np.sqrt(np.sum((scaled - end) ** 2))) for end in ends)
    return estimate, estimate - low, estimate + high, None


def _over_tasks(
    x: Integers, n: Integers, factors: Floats, level: float
) -> tuple[float | None, float | None, float | None, str | None]:
    return mean_with_limits(floats(x / n) @ factors, (1 - level) / 2)
