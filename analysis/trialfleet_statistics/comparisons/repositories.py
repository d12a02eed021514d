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
PLANNED_CORRELATION = 0.02  # of differences within a repository: what public benchmarks have
LEAST_DF = 4.0  # below it a claim about other repositories is not made
ONE_REPOSITORY = "one repository says nothing about others"
NO_TWO_TASKS = "no repository has two tasks: the variance within repositories is not known"
LEAST = 5e-324
SAME = 1e-12


@dataclass(frozen=True)
class TaskRepositories:
    """Which repository each task is of, and what is claimed of them. Empty: not known."""

    names: tuple[Hashable, ...] = ()
    claim: Claim = "these_repositories"

    @property
    def bear(self) -> bool:
        """Whether repositories bear on the test: they are a sample, or there are two or more, and one has two
        tasks. Else tasks are paired differences of one sample."""
        own = len(set(self.names))
        return own > 0 and (self.claim == "other_repositories" or 1 < own < len(self.names))

    @property
    def sizes(self) -> Floats:
        """How many tasks each has."""
        return floats([self.names.count(one) for one in dict.fromkeys(self.names)])

    def count_freedom(self, tasks: int) -> float:
        """Degrees of freedom of the test on so many tasks of these repositories, each with its share of them; at
        most those of as many repositories as tasks."""
        if self.bear and self.claim == "other_repositories":
            return min(satterthwaite_df(self.sizes), tasks - 1) if self.sizes.size > 1 else 0
        return tasks - (self.sizes.size if self.bear else 1)

    @property
    def correlation(self) -> float:
        """Of differences within a repository, as plans assume it. A claim about these repositories has their own
        variance within them."""
        return PLANNED_CORRELATION if self.bear and self.claim == "other_repositories" else 0.0

    def inflate_error(self, tasks: int, correlation: float | None = None) -> float:
        """How many times the standard error on so many tasks of these repositories is that of as many independent
        ones, with the `correlation` (None: that of plans).

        >>> round(TaskRepositories(tuple("aaaabbbbccccddddeeee"), "other_repositories").inflate_error(20), 3)
        1.03
        """
        assumed = self.correlation if correlation is None else correlation
        crowded = float(np.sum(self.sizes**2)) / max(1, len(self.names)) ** 2 * tasks - 1
        return math.sqrt(1 + assumed * max(0.0, crowded))

    def explain_refusal(self, tasks: int) -> str | None:
        """Why so many tasks of these repositories have no test of the claim, whatever the results."""
        free = self.count_freedom(tasks)
        if self.bear and self.claim == "other_repositories" and free < LEAST_DF:
            return name_few(min(self.sizes.size, tasks), free)
        return NO_TWO_TASKS if self.bear and free < 1 else None

    @property
    def refused(self) -> str | None:
        """Why the claim is not made of them, whatever the results."""
        return self.explain_refusal(len(self.names))


UNKNOWN = TaskRepositories()


def name_few(repositories: int, free: float) -> str:
    """Why so few carry no claim about others."""
    if repositories == 1:
        return ONE_REPOSITORY
    return (
        f"{repositories} repositories cannot carry a claim about others ({free:.1f} degrees of freedom, at least "
        f"{LEAST_DF:g} are needed)"
    )


def error_of_means(differences: Floats, of: TaskRepositories) -> tuple[Floats, float]:
    """Of many campaigns at once: the standard error of each mean over tasks, by the test of the claim, and its
    degrees of freedom. `differences`: shape (campaigns, T); NaN where a campaign has no test.

    >>> error_of_means(np.array([[0.2, 0.4, 0.1, 0.3]]), TaskRepositories(("a", "a", "b", "b")))[0].round(4)
    array([0.0707])
    """
    names = of.names if of.bear else (0,) * differences.shape[1]
    place, sizes = _places(names)
    others = of.bear and of.claim == "other_repositories"
    found = _cr2(differences, place, sizes) if others else _within(differences, place, sizes)
    if isinstance(found, str) or of.refused is not None:
        return np.full(len(differences), np.nan), 1
    return found


def _places(names: Sequence[Hashable]) -> tuple[Integers, Floats]:
    """Of each task, its repository's place among them, and how many tasks each has."""
    own = {name: at for at, name in enumerate(dict.fromkeys(names))}
    place = np.array([own[one] for one in names], dtype=np.int64)
    return place, np.bincount(place, minlength=len(own)).astype(np.float64)


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
    place, sizes = _places(repositories)
    mean = float(values.mean()) if values.size else None
    found = _within(values, place, sizes) if claim == "these_repositories" else _cr2(values, place, sizes)
    error, df = (math.nan, 1.0) if isinstance(found, str) else (float(found[0]), found[1])
    if mean is None or math.isnan(error):
        why = found if isinstance(found, str) else ALIKE[claim]
        interval = Interval(mean, None, None, level, values.size, claim, "tasks_like_these", why)
        return RepositoriesTest(None, None, claim, reason=why, repositories=sizes.size, interval=interval)
    half = float(special.stdtrit(df, 1 - tail)) * error
    low, high = max(-1.0, mean - half), min(1.0, mean + half)
    interval = Interval(mean, low, high, level, values.size, claim, "tasks_like_these")
    few = claim == "other_repositories" and df < LEAST_DF
    p_value = None if few else max(LEAST, 2 * float(special.stdtr(df, -abs(mean / error))))
    return RepositoriesTest(
        p_value,
        None if few else mean / error,
        claim,
        n_informative=values.size,
        reason=name_few(sizes.size, df) if few else None,
        df=df,
        error=error,
        repositories=sizes.size,
        interval=interval,
    )


ALIKE: dict[Claim, str] = {
    "these_repositories": "all differences within a repository are equal",
    "other_repositories": "all repositories have the same mean difference",
}


def _within(values: Floats, place: Integers, sizes: Floats) -> tuple[Floats, float] | str:
    """Standard errors of means over the last axis, NaN where `ALIKE`, and degrees of freedom; or why there are
    none."""
    tasks = place.size
    free = tasks - sizes.size
    if not tasks:
        return "no tasks"
    if free < 1:
        return NO_TWO_TASKS
    means = _total(values, place, sizes) / sizes
    squares = np.sum((values - means[..., place]) ** 2, axis=-1)
    known = squares > SAME * np.maximum(1.0, np.sum(values**2, axis=-1))
    return floats(np.where(known, np.sqrt(squares / free / tasks), np.nan)), free


def _cr2(values: Floats, place: Integers, sizes: Floats) -> tuple[Floats, float] | str:
    """As `_within`; the closed form of an intercept alone: cluster totals of residuals, each over 1 − n_g / n."""
    tasks = float(place.size)
    if sizes.size < 2:
        return ONE_REPOSITORY if tasks else "no tasks"
    totals = _total(values - values.mean(axis=-1, keepdims=True), place, sizes)
    variance = np.sum(totals**2 / (1 - sizes / tasks), axis=-1) / tasks**2
    return floats(np.where(variance > SAME, np.sqrt(variance), np.nan)), satterthwaite_df(sizes)


def _total(values: Floats, place: Integers, sizes: Floats) -> Floats:
    """Over the tasks of each repository, shape (…, R)."""
    return floats(values @ np.eye(sizes.size)[place])


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
