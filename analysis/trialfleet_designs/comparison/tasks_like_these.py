"""What these tasks say of others: tasks like these, of the repositories that they come from, or of other ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from trialfleet_designs.comparison.columns import FourCounts, Scheme, rates
from trialfleet_designs.comparison.correction import AdjustedPValue
from trialfleet_designs.comparison.plain import plain_test
from trialfleet_designs.comparison.within_margin import paired_equivalence
from trialfleet_statistics.comparisons import (
    EquivalenceTest,
    PairedT,
    RepositoriesTest,
    mean_over_repositories,
    paired_t_on_tasks,
)
from trialfleet_statistics.comparisons.repositories import TaskRepositories
from trialfleet_statistics.estimates import Bools, Floats, Interval, Test


@dataclass(frozen=True)
class LeaveOneOut:
    """The range of the mean difference, and of its p, as each task is left out in turn."""

    low: float
    high: float
    least_p: float | None
    largest_p: float | None


@dataclass(frozen=True)
class OnTasksLikeThese:
    """The contrast for the population that the tasks stand for. `largest_share`: of the summed task differences,
    what one task, `largest_task`, makes; above 1 where the others sum to the opposite. `moved`: tasks whose two
    rates differ. `caveat`: what so few tasks cannot show. `repositories`: how many the claim is about, or made
    from; 0: they do not bear on it. `df`: degrees of freedom. `treatment_rate`, `control_rate`: of the trials that
    this is made of, which between looks are more than the last look counted."""

    test: Test
    adjusted: AdjustedPValue | None
    difference: Interval
    leave_one_out: LeaveOneOut | None
    largest_task: str | None
    largest_share: float | None
    moved: int
    caveat: str | None
    repositories: int = 0
    df: float | None = None
    treatment_rate: float | None = None
    control_rate: float | None = None


@dataclass(frozen=True)
class TasksClaim:
    """Which tasks a claim beyond these is about. `repositories`: of each task, empty where not known. Of several,
    repositories are strata; for `others` they are a sample."""

    repositories: tuple[str, ...]
    others: bool = False

    @property
    def several(self) -> bool:
        """Whether repositories bear on the test: there are two or more, one of them with two tasks."""
        return self.others or self.named.bear

    @property
    def named(self) -> TaskRepositories:
        """With what is claimed of them."""
        return TaskRepositories(self.repositories, "other_repositories" if self.others else "these_repositories")

    @classmethod
    def of(cls, scheme: Scheme, kept: Bools, *, primary: bool) -> TasksClaim:
        """Of the tasks that are `kept`, of all of `scheme`."""
        names = tuple(name for name, stays in zip(scheme.repositories, kept, strict=False) if stays)
        others = scheme.declared is not None and scheme.declared.estimand == "other_repositories"
        return cls(names, others=others and primary)

    def judge_within(self, four: FourCounts, margin: float, alpha: float) -> EquivalenceTest:
        """Two one-sided tests of the tasks' differences within the margin."""
        a, b = rates(four[0], four[1]), rates(four[2], four[3])
        if not self.named.bear:
            return paired_equivalence(four, margin, alpha)
        found = self.judge(a, b, np.ones(a.size, dtype=np.bool_), 2 * alpha)
        interval = found.interval
        assert interval is not None, "the test always has its interval, if only an undefined one"
        mean, error = interval.estimate, found.error if isinstance(found, RepositoriesTest) else None
        if mean is None or error is None or found.df is None or found.p_value is None:
            return replace(EquivalenceTest(None, None, found.method, reason=found.reason), interval=interval)
        p_lower, p_upper = (float(stats.t.sf(sign * mean / error + margin / error, found.df)) for sign in (1, -1))
        test = EquivalenceTest(max(p_lower, p_upper), None, found.method)
        return replace(test, p_lower=p_lower, p_upper=p_upper, interval=interval)

    def judge(self, a: Floats, b: Floats, kept: Bools, alpha: float) -> RepositoriesTest | PairedT:
        """The test of the tasks' differences, of those that are `kept`."""
        if not self.named.bear:
            return paired_t_on_tasks(a[kept], b[kept], level=1 - alpha)
        names = [name for name, stays in zip(self.repositories, kept, strict=True) if stays]
        return mean_over_repositories(a[kept] - b[kept], names, claim=self.named.claim, level=1 - alpha)


def name_repositories(each: Sequence[str | None]) -> tuple[str, ...]:
    """Of each task; nothing where one is not known.

    >>> name_repositories(["a", "b"]), name_repositories(["a", None])
    (('a', 'b'), ())
    """
    known = [name for name in each if name is not None]
    return tuple(known) if len(known) == len(each) else ()


def on_tasks_like_these(
    a: Floats, b: Floats, tasks: list[str], claim: TasksClaim, alpha: float
) -> OnTasksLikeThese:
    """The test of the tasks' differences, and how much a single task contributes."""
    every, paired = claim.judge(a, b, np.ones(a.size, dtype=np.bool_), alpha), paired_t_on_tasks(a, b)
    assert every.interval is not None, "the test always has its interval, if only an undefined one"
    ahead = (a - b) * np.sign(np.sum(a - b))
    return OnTasksLikeThese(
        test=plain_test(every),
        adjusted=None,
        difference=every.interval,
        leave_one_out=leave_one_out(a, b, claim, paired),
        largest_task=tasks[int(np.argmax(ahead))] if paired.largest_share is not None else None,
        largest_share=paired.largest_share,
        moved=int(np.count_nonzero(a != b)),
        caveat=paired.caveat,
        repositories=len(set(claim.repositories)) if claim.several else 0,
        df=every.df,
        treatment_rate=float(a.mean()) if a.size else None,
        control_rate=float(b.mean()) if b.size else None,
    )


def leave_one_out(a: Floats, b: Floats, claim: TasksClaim, every: PairedT) -> LeaveOneOut | None:
    """The ranges of the mean difference and of its p; None with fewer than two tasks."""
    if every.leave_one_out is None:
        return None
    kept = [np.arange(a.size) != left for left in range(a.size)]
    ps = [p for some in kept if (p := claim.judge(a, b, some, 0.05).p_value) is not None]
    return LeaveOneOut(*every.leave_one_out, min(ps, default=None), max(ps, default=None))
