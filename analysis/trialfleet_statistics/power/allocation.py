"""Reps against tasks: what one budget buys in every way to spend it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from scipy import special

from trialfleet_statistics.comparisons.repositories import UNKNOWN, TaskRepositories
from trialfleet_statistics.estimates import share

ONE_TASK = "one task says nothing of the spread between tasks"
TOO_LARGE = "more than 100 points"


@dataclass(frozen=True)
class Allocation:
    """`tasks` × `reps` in both arms, and what they cost. For *tasks like these*: `se` of the difference of two
    mean rates, and `mde`, the least difference that the declared power detects; None with the `reason`. The same
    for *these tasks*, where the spread of effects between tasks is no error."""

    tasks: int
    reps: int
    cost: float
    se: float
    mde: float | None
    se_these_tasks: float
    mde_these_tasks: float | None
    reason: str | None = None


def reps_versus_tasks(
    budget: float,
    *,
    cost_task: float,
    cost_rep: float,
    mean: float,
    icc: float,
    sigma_int: float,
    alpha: float = 0.05,
    power: float = 0.8,
) -> tuple[Allocation, ...]:
    """Every way to spend `budget` that leaves no room for another task or rep, most reps per task first.

    A design costs tasks × (cost_task + reps × cost_rep); `cost_rep` pays one rep in both arms. `mean`: of the pass
    rates; `icc`: how far tasks differ, as in `variance_components`; `sigma_int`: SD of the true effect between
    tasks, on the rate scale (0.15: 15 points), as `heterogeneity` gives it.

    Var(D) = (sigma_int² + v / R) / T with v = 2 mean (1 − mean) (1 − icc), equal reps in all cells. *Tasks like
    these*: MDE = (t_{T−1, 1−α/2} + t_{T−1, power}) SE; *these tasks*: without sigma_int and with normal quantiles.
    At one total of trials, more tasks are never worse for the first and the same for the second. Where tasks cost,
    the SE for tasks like these is least near `best_reps`. The normal approximation is for choosing between
    designs; `stratified_power` for the one that is chosen.

    Raises `ValueError` for a budget that pays no task with one rep, and for numbers out of range.

    >>> [(d.tasks, d.reps, round(d.se, 3)) for d in reps_versus_tasks(
    ...     700, cost_task=75, cost_rep=5, mean=0.5, icc=0.4, sigma_int=0.15)][:3]
    [(1, 125, 0.158), (2, 55, 0.118), (3, 31, 0.104)]
    """
    _check(budget, cost_task, cost_rep, mean, icc, sigma_int)
    v = within_variance(mean, mean, icc)
    share(alpha, "alpha")
    share(power, "power")
    return tuple(
        _design(tasks, reps, cost_task, cost_rep, v, sigma_int, alpha, power)
        for tasks, reps in reversed(list(_fullest(budget, cost_task, cost_rep)))
    )


def best_reps(*, cost_task: float, cost_rep: float, mean: float, icc: float, sigma_int: float) -> float | None:
    """The reps per cell that give *tasks like these* the least SE at any budget: √(cost_task v / (cost_rep
    sigma_int²)), not rounded; below 1 take 1. None without sigma_int: then only the trials count, and one task
    with all reps is cheapest.

    >>> round(best_reps(cost_task=75, cost_rep=5, mean=0.5, icc=0.4, sigma_int=0.15) or 0, 1)
    14.1
    """
    if sigma_int == 0:
        return None
    return math.sqrt(cost_task * within_variance(mean, mean, icc) / cost_rep) / sigma_int


def balance_reps(*, mean: float, icc: float, sigma_int: float) -> float | None:
    """R*, the reps per cell at which the noise within tasks, v / R, equals the variance of the true effect between
    tasks, sigma_int². Beyond it more reps add little for *tasks like these*; it is no threshold, since at one
    total more tasks are better at every number of reps. None without sigma_int: the noise is all there is.

    >>> round(balance_reps(mean=0.5, icc=0.4, sigma_int=0.15) or 0, 1)
    13.3
    """
    return None if sigma_int == 0 else within_variance(mean, mean, icc) / sigma_int**2


def same_trials(tasks: int, reps: int) -> tuple[tuple[int, int], ...]:
    """(tasks, reps) of as many trials or slightly fewer, fewest tasks first: the design itself, and those with a
    quarter, half, twice and four times its tasks, as far as tasks and reps stay whole and above 0.

    >>> same_trials(8, 25)
    ((2, 100), (4, 50), (8, 25), (16, 12), (32, 6))
    """
    wanted = [tasks // 4, tasks // 2, tasks, 2 * tasks, 4 * tasks]
    return tuple((several, tasks * reps // several) for several in wanted if 1 <= several <= tasks * reps)


def frontier(
    tasks: int,
    reps: int,
    *,
    mean: float,
    icc: float,
    sigma_int: float,
    repositories: TaskRepositories = UNKNOWN,
    alpha: float = 0.05,
    power: float = 0.8,
) -> tuple[Allocation, ...]:
    """What the designs of `same_trials` detect, as in `reps_versus_tasks`; the cost is reps in both arms.
    `repositories`: the design's; the others have their tasks from the same ones."""
    _check(tasks * reps, 0, 1, mean, icc, sigma_int)
    v = within_variance(mean, mean, icc)
    designs = same_trials(tasks, reps)
    return tuple(_design(t, r, 0, 1, v, sigma_int, alpha, power, repositories) for t, r in designs)


def within_variance(mean_a: float, mean_b: float, icc: float) -> float:
    """Variance of one trial's difference inside tasks: Σ over arms of mean (1 − mean) (1 − icc)."""
    return (mean_a * (1 - mean_a) + mean_b * (1 - mean_b)) * (1 - icc)


def least_effect(se: float, *, df: float | None, alpha: float, power: float) -> float | None:
    """(q_{1−α/2} + q_{power}) SE, with quantiles of t with `df`, or normal ones; None without a degree of freedom
    or beyond 1."""
    if df is not None and df < 1:
        return None
    upper, lower = 1 - alpha / 2, power
    if df is None:
        effect = (float(special.ndtri(upper)) + float(special.ndtri(lower))) * se
    else:
        effect = (float(special.stdtrit(df, upper)) + float(special.stdtrit(df, lower))) * se
    return effect if effect <= 1 else None


def _fullest(budget: float, cost_task: float, cost_rep: float) -> Iterator[tuple[int, int]]:
    """(tasks, reps) from the fewest reps to the most, each with as many tasks, then reps, as the budget pays."""
    reps = 1
    while (tasks := _floor(budget / (cost_task + reps * cost_rep))) >= 1:
        most = max(reps, _floor((budget / tasks - cost_task) / cost_rep))
        yield tasks, most
        reps = most + 1


def _design(
    tasks: int,
    reps: int,
    cost_task: float,
    cost_rep: float,
    v: float,
    sigma: float,
    alpha: float,
    power: float,
    of: TaskRepositories = UNKNOWN,
) -> Allocation:
    se, fixed = math.sqrt((sigma**2 + v / reps) / tasks), math.sqrt(v / reps / tasks)
    se, refused = se * (of.inflate_error(tasks) if sigma else 1.0), of.explain_refusal(tasks)
    mde = None if refused else least_effect(se, df=of.count_freedom(tasks), alpha=alpha, power=power)
    return Allocation(
        tasks=tasks,
        reps=reps,
        cost=tasks * (cost_task + reps * cost_rep),
        se=se,
        mde=mde,
        se_these_tasks=fixed,
        mde_these_tasks=least_effect(fixed, df=None, alpha=alpha, power=power),
        reason=None if mde is not None else refused or (ONE_TASK if tasks == 1 else TOO_LARGE),
    )


def _floor(value: float) -> int:
    """Whole things that fit: 0.3 / 0.1 is three."""
    return math.floor(value * (1 + 1e-12) + 1e-12)


def _check(budget: float, cost_task: float, cost_rep: float, mean: float, icc: float, sigma_int: float) -> None:
    for value, name in ((budget, "budget"), (cost_rep, "cost_rep")):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be above 0, got {value}")
    for value, name in ((cost_task, "cost_task"), (sigma_int, "sigma_int")):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be 0 or more, got {value}")
    if budget < cost_task + cost_rep:
        raise ValueError(f"budget: {budget:g} pays no task with one rep ({cost_task + cost_rep:g})")
    share(mean, "mean")
    if not 0 <= icc < 1:
        raise ValueError(f"icc must lie in [0, 1), got {icc}")
