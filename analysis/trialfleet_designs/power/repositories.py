"""What a claim about other repositories would cost, of tasks that come from several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trialfleet_statistics.comparisons.repositories import (
    LEAST_DF,
    PLANNED_CORRELATION,
    TaskRepositories,
    satterthwaite_df,
)

CORRELATIONS = (
    PLANNED_CORRELATION,
    0.05,
)  # of differences within a repository: what is planned with, and a cautious one


@dataclass(frozen=True)
class RepositoriesPlan:
    """`df`: degrees of freedom of a claim about other repositories, which is not made below 4; `inflation`: for
    each of the planned correlations, how many times the standard error is that of as many independent tasks."""

    repositories: int
    tasks: int
    df: float
    inflation: tuple[tuple[float, float], ...]

    @property
    def carries(self) -> bool:
        """Whether the claim about others can be made."""
        return self.df >= LEAST_DF


def plan_repositories(names: Sequence[str]) -> RepositoriesPlan | None:
    """`names`: of each task's repository. None below two, and where each has one task."""
    sizes = [names.count(one) for one in dict.fromkeys(names)]
    of = TaskRepositories(tuple(names))
    if not of.bear:
        return None
    inflation = tuple((one, of.inflate_error(len(names), one)) for one in CORRELATIONS)
    return RepositoriesPlan(len(sizes), len(names), satterthwaite_df(sizes), inflation)
