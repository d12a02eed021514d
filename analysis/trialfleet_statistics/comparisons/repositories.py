"""The mean of task differences where tasks come from several repositories: of these repositories, or of others."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from trialfleet_statistics.estimates import Floats, Integers, Interval, Test, floats, share

Claim: TypeAlias = Literal["these_repositories", "other_repositories"]
LEAST_DF = 4.0  # below it a claim about other repositories is not made
LEAST = 5e-324
SAME = 1e-12


@dataclass(frozen=True)
class RepositoriesTest(Test):
    """`df`: degrees of freedom; `error`: standard error of the mean; `repositories`: how many the tasks come from.
    `interval`: known also where the test is not made, for want of degrees of freedom."""

    df: float | None = None
    error: float | None = None
    repositories: int = 0
    interval: Interval | None = None


def mean_over_repositories(
    differences: Floats | Sequence[float], repositories: Sequence[Hashable], *, claim: Claim, level: float = 0.95
) -> RepositoriesTest:
    """Is the mean over tasks of `differences`, shape (T,), other than 0? Each task weighs the same.

    "these_repositories": repositories are strata. The variance is the one within them, pooled, with T − R degrees
    of freedom (one-way analysis of variance): for tasks like these *of these repositories*. "other_repositories":
    repositories are a sample. The variance is cluster-robust, CR2, with Satterthwaite's degrees of freedom under
    independence; below 4 of these there is no test, only an interval. Source: Bell & McCaffrey 2002; Pustejovsky &
    Tipton 2018. CR2 costs power: declare it only where the claim needs it.

    Undefined (None, with the reason) below two repositories for others, without a repository of two tasks for
    these, and where all differences are equal. Raises `ValueError` for unequal lengths.

    >>> found = mean_over_repositories([0.2, 0.4, 0.1, 0.3], ["a", "a", "b", "b"], claim="these_repositories")
    >>> found.df, round(found.p_value, 3)
    (2, 0.072)
    """
    tail, values = (1 - share(level, "level")) / 2, floats(differences)
    if values.shape != (len(repositories),):
        raise ValueError(f"repositories: expected one per difference, {values.size}; got {len(repositories)}")
    names = list(dict.fromkeys(repositories))
    place = np.array([names.index(one) for one in repositories], dtype=np.int64)
    sizes = np.bincount(place, minlength=len(names)).astype(np.float64)
    mean = float(values.mean()) if values.size else None
    found = _within(values, place, sizes) if claim == "these_repositories" else _cr2(values, place, sizes)
    if isinstance(found, str) or mean is None:
        why = found if isinstance(found, str) else "no tasks"
        interval = Interval(mean, None, None, level, values.size, claim, "tasks_like_these", why)
        return RepositoriesTest(None, None, claim, reason=why, repositories=len(names), interval=interval)
    error, df = found
    half = float(special.stdtrit(df, 1 - tail)) * error
    low, high = max(-1.0, mean - half), min(1.0, mean + half)
    interval = Interval(mean, low, high, level, values.size, claim, "tasks_like_these")
    few = claim == "other_repositories" and df < LEAST_DF
    reason = (
        f"{len(names)} repositories cannot carry a claim about others ({df:.1f} degrees of freedom, at least "
        f"{LEAST_DF:g} are needed)"
        if few
        else None
    )
    p_value = None if few else max(LEAST, 2 * float(special.stdtr(df, -abs(mean / error))))
    return RepositoriesTest(
        p_value,
        None if few else mean / error,
        claim,
        n_informative=values.size,
        reason=reason,
        df=df,
        error=error,
        repositories=len(names),
        interval=interval,
    )


def _within(values: Floats, place: Integers, sizes: Floats) -> tuple[float, float] | str:
    """Standard error and degrees of freedom, or why there are none."""
    tasks, free = values.size, values.size - sizes.size
    if free < 1:
        return "no repository has two tasks: the variance within repositories is not known"
    means = np.bincount(place, values, minlength=sizes.size) / sizes
    squares = float(np.sum((values - means[place]) ** 2))
    if squares <= SAME * max(1.0, float(np.sum(values**2))):
        return "all differences within a repository are equal"
    return math.sqrt(squares / free / tasks), free


def _cr2(values: Floats, place: Integers, sizes: Floats) -> tuple[float, float] | str:
    """The closed form of an intercept alone: cluster totals of residuals, each over 1 − n_g / n."""
    tasks = float(values.size)
    if sizes.size < 2:
        return "one repository says nothing about others"
    totals = np.bincount(place, values - values.mean(), minlength=sizes.size)
    kept = 1 - sizes / tasks
    variance = float(np.sum(totals**2 / kept)) / tasks**2
    if variance <= SAME:
        return "all repositories have the same mean difference"
    return math.sqrt(variance), satterthwaite_df(sizes)


def satterthwaite_df(sizes: Floats | Sequence[int]) -> float:
    """Degrees of freedom of a mean's CR2 variance under independence. `sizes`: how many tasks each repository has.

    >>> round(satterthwaite_df([4, 4, 4]), 9), round(satterthwaite_df([1, 2, 9]), 2)
    (2.0, 1.28)
    """
    each = floats(sizes)
    tasks = float(each.sum())
    own = float(np.sum(each**2)) / tasks**4
    crossed = each**2 / (1 - each / tasks)
    apart = (float(crossed.sum()) ** 2 - float(np.sum(crossed**2))) / tasks**6
    return 1 / tasks**2 / (own + apart)
