"""Two conditions compared for tasks like these: the unit is the task."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from trialfleet_analysis.comparisons.answers import LEAST, sided
from trialfleet_analysis.estimates import Alternative, Floats, Interval, Test, floats, share

SAME_DIFFERENCE = "every task has the same difference, so its spread over tasks is unknown"
ONE_TASK = "a spread over tasks needs at least two"
SAME = 1e-12  # rates lie in [0, 1]: differences of differences below this are rounding
_FEW = 20


@dataclass(frozen=True)
class PairedT(Test):
    """`interval`: the mean difference a − b over tasks, with limits at the level asked for.

    `leave_one_out`: least and largest mean difference when one task is left out. `largest_share`: the part of the
    summed difference that the task with the largest one contributes; above 1 where the others sum to the opposite,
    None where the sum is 0. `caveat`: what the test assumes and these tasks are too few to show.
    """

    df: int | None = None
    interval: Interval | None = None
    leave_one_out: tuple[float, float] | None = None
    largest_share: float | None = None
    caveat: str | None = None


def paired_t_on_tasks(
    rates_a: ArrayLike,
    rates_b: ArrayLike,
    *,
    null: float = 0.0,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
) -> PairedT:
    """Paired t test over tasks: do a's and b's pass rates differ by `null` on average, for *tasks like these*?

    `rates_a`, `rates_b`: shape (T,), one pass rate per task. With d the differences a − b, t = (mean d − null) /
    (s / √T), T − 1 degrees of freedom; the limits are mean d ± t s / √T, held to [−1, 1]. Source: Student 1908;
    for evaluations Miller 2024. More tasks narrow it; more reps stop helping. For non-inferiority use `null` =
    −margin and "greater". `n_informative`: T.

    Undefined (None, with the reason) below two tasks, or where all differences are equal: a spread of 0 is not
    known to be 0. Pitfall: strong effects in rare tasks make it reject too often (size .18 at 7 to 10 tasks, .11
    at 20): look at `leave_one_out` and `largest_share`. Raises `ValueError` for what is no rate, or unequal
    shapes.

    >>> found = paired_t_on_tasks([0.8, 0.6, 1.0, 0.4], [0.4, 0.4, 0.6, 0.4])
    >>> round(found.p_value, 4), found.df, found.interval.rounded(3), round(found.largest_share, 2)
    (0.0796, 3, (-0.055, 0.555), 0.4)
    """
    sided(alternative)
    tail = (1 - share(level, "level")) / 2
    if not -1 <= null <= 1:
        raise ValueError(f"null must be a difference of rates in [-1, 1], got {null}")
    differences = _rates(rates_a, "rates_a", rates_b) - _rates(rates_b, "rates_b", rates_a)
    tasks = differences.size
    caveat = "assumes no rare strong task effects" if tasks < _FEW else None
    estimate, low, high, reason = mean_with_limits(differences, tail)
    low, high = (None if limit is None else min(1.0, max(-1.0, limit)) for limit in (low, high))
    interval = Interval(estimate, low, high, level, tasks, "paired_t_on_tasks", "tasks_like_these", reason)
    p_value = statistic = None
    if reason is None:
        statistic = (float(differences.mean()) - null) / (float(differences.std(ddof=1)) / math.sqrt(tasks))
        p_value = max(LEAST, _p_value(statistic, tasks - 1, alternative))
    return PairedT(
        p_value,
        statistic,
        "paired_t_on_tasks",
        alternative,
        n_informative=tasks,
        reason=reason,
        df=tasks - 1 if tasks > 1 else None,
        interval=interval,
        leave_one_out=_leave_one_out(differences),
        largest_share=_largest_share(differences),
        caveat=caveat,
    )


def mean_with_limits(values: Floats, tail: float) -> tuple[float | None, float | None, float | None, str | None]:
    """Mean over tasks, its t limits with `tail` on each side, and the reason why there are none."""
    tasks = values.size
    if not tasks:
        return None, None, None, "no tasks"
    mean = float(values.mean())
    if tasks < 2:
        return mean, None, None, ONE_TASK
    if float(np.ptp(values)) <= SAME * max(1.0, float(np.abs(values).max())):
        return mean, None, None, SAME_DIFFERENCE
    half = float(special.stdtrit(tasks - 1, 1 - tail)) * float(values.std(ddof=1)) / math.sqrt(tasks)
    return mean, mean - half, mean + half, None


def _rates(values: ArrayLike, name: str, other: ArrayLike) -> Floats:
    rates = np.atleast_1d(floats(values))
    if rates.ndim != 1 or rates.shape != np.atleast_1d(np.asarray(other)).shape:
        raise ValueError(f"{name}: one rate per task and arm is wanted, both of shape (T,)")
    if not np.all((rates >= 0) & (rates <= 1)):
        raise ValueError(f"{name}: rates lie in [0, 1]; a task without a rate must be left out by name")
    return rates


def _p_value(t: float, df: int, alternative: Alternative) -> float:
    if alternative == "two-sided":
        return 2 * float(special.stdtr(df, -abs(t)))
    return float(special.stdtr(df, -t if alternative == "greater" else t))


def _leave_one_out(differences: Floats) -> tuple[float, float] | None:
    if differences.size < 2:
        return None
    means = (differences.sum() - differences) / (differences.size - 1)
    return float(means.min()), float(means.max())


def _largest_share(differences: Floats) -> float | None:
    total = float(differences.sum())
    if abs(total) <= SAME * max(1, differences.size):
        return None
    return float((differences / total).max())
