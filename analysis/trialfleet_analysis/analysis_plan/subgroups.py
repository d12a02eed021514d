"""The pre-declared factors of the tasks, each with the test of whether the effect differs between its levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from trialfleet_designs.comparison.columns import CellCounts, FourCounts, Scheme, rates
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.comparison.correction import AdjustedPValue, Corrected, PValueSlot, in_both_estimands
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.comparisons.conditional import exact_p
from trialfleet_statistics.comparisons.convolution import Strata, centre, chances, informative_strata
from trialfleet_statistics.estimates import Bools, Estimand, Floats, Interval, Test
from trialfleet_statistics.intervals import stratified_miettinen_nurminen

EXACT, WELCH = "exact interaction, mid-p", "Welch's t on task differences"


def interaction(four: FourCounts, levels: Sequence[Bools]) -> Test:
    """Equal odds ratios in all levels? Exact, given every task's totals and the passes of both arms together.

    `levels`: which tasks belong to each, shape (T,) each. Given the treatment's passes in all, S = S₁ + S₂,
    those in one level have P(S₁ = s) ∝ P₁(s) P₂(S − s), whatever the common odds ratio is; mid-p, central. With
    more than two levels each is set against the others and the smallest p times their number is taken
    (Bonferroni). Source: Zelen 1971, for strata that fall into two groups.

    Undefined (None, with the reason) when a level has no informative task.
    """
    if len(levels) == 2:
        return _against_the_rest(four, levels[0])
    return _least([_against_the_rest(four, level) for level in levels], EXACT)


def interaction_like_these(differences: Floats, levels: Sequence[Bools]) -> Test:
    """Equal mean differences in the populations of tasks that the levels stand for? Welch's t, two-sided.

    With more than two levels as in `interaction`. Undefined below two tasks in a level, or without any spread.
    """
    if len(levels) == 2:
        return _welch(differences, levels[0])
    return _least([_welch(differences, level) for level in levels], WELCH)


def _against_the_rest(four: FourCounts, level: Bools) -> Test:
    inside, outside = (informative_strata(*(c[kept] for c in four)) for kept in (level, ~level))
    if not inside.size or not outside.size:
        return Test(None, None, EXACT, reason="a level has no informative task")
    total = inside.observed + outside.observed
    first = max(inside.low, total - outside.high)
    split = _split(inside, outside, total, first, _log_odds(four))
    least = min(_p(split, 0), _p(split, split.size - 1))
    return Test(
        _p(split, inside.observed - first),
        float(inside.observed),
        EXACT,
        attainable_p=least,
        n_informative=inside.size + outside.size,
    )


def _split(inside: Strata, outside: Strata, total: int, first: int, log_odds: float) -> Floats:
    """How `total` passes divide between the groups, from `first` passes inside on. Any odds ratio gives the same;
    the one where the total is likely keeps the terms from underflowing."""
    last = min(inside.high, total - outside.low)
    passes = np.arange(first, last + 1)
    both = (
        chances(inside, log_odds)[passes - inside.low] * chances(outside, log_odds)[total - passes - outside.low]
    )
    return np.asarray(both / both.sum(), dtype=np.float64)


def _log_odds(four: FourCounts) -> float:
    every = informative_strata(*four)
    if every.high - every.low < 2:
        return 0.0
    return centre(every, min(max(every.observed, every.low + 0.5), every.high - 0.5))


def _p(split: Floats, at: int) -> float:
    return min(1.0, exact_p(split, at, midp=True, convention="central", alternative="two-sided"))


def _welch(differences: Floats, level: Bools) -> Test:
    one, other = differences[level], differences[~level]
    if min(one.size, other.size) < 2:
        return Test(None, None, WELCH, reason="a level has fewer than two tasks")
    if np.ptp(one) == 0 and np.ptp(other) == 0:
        return Test(None, None, WELCH, reason="task differences do not vary within the levels")
    parts = np.array([np.var(group, ddof=1) / group.size for group in (one, other)])
    t = float(one.mean() - other.mean()) / float(np.sqrt(parts.sum()))
    df = float(parts.sum() ** 2 / np.sum(parts**2 / (np.array([one.size, other.size]) - 1)))
    return Test(float(2 * special.stdtr(df, -abs(t))), t, WELCH, n_informative=differences.size)


def _least(tests: Sequence[Test], method: str) -> Test:
    """The smallest p, corrected for having looked at each level."""
    undefined = next((test for test in tests if test.p_value is None), None)
    if undefined is not None:
        return undefined
    ps = [test.p_value for test in tests if test.p_value is not None]
    least = tests[int(np.argmin(ps))]
    return Test(
        min(1.0, min(ps) * len(ps)),
        least.statistic,
        f"{method}, each level against the others",
        n_informative=least.n_informative,
    )


@dataclass(frozen=True)
class Subgroup:
    """One level of a factor of the tasks, and the primary contrast's difference among its tasks, on these tasks.
    Without a p-value: the interaction tests whether levels differ."""

    level: str
    tasks: tuple[str, ...]
    difference: Interval


@dataclass(frozen=True)
class Subgroups:
    """A pre-declared factor. `interaction`: whether the odds ratio differs between levels, on these tasks (exact,
    given all totals); `interaction_like_these`: Welch's t between the levels' task differences. `reason`: why
    there is nothing to compare."""

    factor: str
    levels: tuple[Subgroup, ...]
    interaction: Test | None
    adjusted: AdjustedPValue | None
    interaction_like_these: Test | None
    adjusted_like_these: AdjustedPValue | None
    reason: str | None


def by_factor(contrast: Contrast, scheme: Scheme, counts: CellCounts) -> Corrected[Subgroups]:
    """Each factor that the plan froze, with Holm's correction over the factors' interaction tests."""
    a, b = scheme.pair(contrast)
    shared = counts.tasks_of(scheme, contrast)
    names = [name for name, kept in zip(scheme.tasks, shared, strict=True) if kept]
    four = counts.arms(a, b, shared)
    found = [
        _of_factor(
            factor,
            [level for level, kept in zip(levels, shared, strict=True) if kept],
            names,
            four,
            1 - scheme.alpha,
        )
        for factor, levels in scheme.factors.items()
    ]
    return in_both_estimands(
        found, "interactions", SLOTS, lambda one: one.factor, method="holm", alpha=scheme.alpha
    )


def _of_factor(
    factor: str, of_task: list[str | None], names: list[str], four: FourCounts, level: float
) -> Subgroups:
    known = list(dict.fromkeys(value for value in of_task if value is not None))
    members = [np.array([value == one for value in of_task], dtype=np.bool_) for one in known]
    levels = tuple(_subgroup(one, which, names, four, level) for one, which in zip(known, members, strict=True))
    reason = _nothing_to_compare(of_task, known)
    if reason is not None:
        return Subgroups(factor, levels, None, None, None, None, reason)
    differences = rates(four[0], four[1]) - rates(four[2], four[3])
    return Subgroups(
        factor, levels, interaction(four, members), None, interaction_like_these(differences, members), None, None
    )


def _nothing_to_compare(of_task: list[str | None], known: list[str]) -> str | None:
    missing = of_task.count(None)
    if not of_task:
        return "no task with valid trials in both conditions"
    if missing:
        return f"not in the plan for {missing} of {plural(len(of_task), 'task')}"
    return f"all tasks are {known[0]}" if len(known) == 1 else None


def _subgroup(name: str, which: Bools, names: list[str], four: FourCounts, level: float) -> Subgroup:
    tasks = tuple(task for task, kept in zip(names, which, strict=True) if kept)
    return Subgroup(name, tasks, stratified_miettinen_nurminen(*(c[which] for c in four), level=level))


SLOTS: dict[Estimand, PValueSlot[Subgroups]] = {
    "these_tasks": PValueSlot(lambda one: one.interaction, lambda one, p: replace(one, adjusted=p)),
    "tasks_like_these": PValueSlot(
        lambda one: one.interaction_like_these, lambda one, p: replace(one, adjusted_like_these=p)
    ),
}
