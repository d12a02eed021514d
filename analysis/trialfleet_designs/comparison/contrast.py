"""Contrasts in both estimands: which are made, their tests and intervals, and which are corrected together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from trialfleet_designs.comparison.block_outcomes import (
    ABSENT,
    FAILED,
    PASSED,
    outcomes_by_block,
    stages_of_pair,
)
from trialfleet_designs.comparison.columns import CellCounts, Columns, FourCounts, Scheme, rates
from trialfleet_designs.comparison.compared import ComparedTasks
from trialfleet_designs.comparison.composition import Arm, Composition, compose
from trialfleet_designs.comparison.correction import (
    NAMES,
    AdjustedPValue,
    Corrected,
    Family,
    PValueSlot,
    corrected,
)
from trialfleet_designs.comparison.plain import plain_interval, plain_test
from trialfleet_designs.comparison.tasks_like_these import OnTasksLikeThese, TasksClaim, on_tasks_like_these
from trialfleet_statistics.comparisons import (
    StratifiedTest,
    conditional_odds_ratio,
    heterogeneity,
    midp_size,
    stratified_exact,
)
from trialfleet_statistics.estimates import (
    TIES,
    Bools,
    Estimand,
    Floats,
    Interval,
    Test,
    normal_quantile,
    rejects,
)
from trialfleet_statistics.intervals import stratified_miettinen_nurminen

Role = Literal["primary", "secondary", "unplanned", "ceiling", "asked"]


@dataclass(frozen=True)
class BlockCompanion:
    """The same test with strata task × block, each task weighing the same: valid under any drift. `pairs`:
    complete ones, one trial per arm; `broken`: pairs dropped because one of the two is missing."""

    test: StratifiedTest
    pairs: int
    only_treatment: int
    only_control: int
    broken: int


@dataclass(frozen=True)
class OnTheseTasks:
    """The contrast on the tasks that were run. `conflict`: the mean difference has the opposite sign of the test's
    direction. `agrees`: whether interval and test decide alike; the p decides. `odds_ratio`: of passing,
    conditional on each task's total; a limit that is unbounded is None. `over_width`: the
    interval's width over that of normal limits at the tasks' own rates. `largest_size`: of a single task, how
    often at most its test rejects where nothing is there; None with more."""

    test: StratifiedTest
    conflict: bool
    adjusted: AdjustedPValue | None
    difference: Interval
    agrees: bool | None
    odds_ratio: Interval
    strata: int
    informative: int
    over_width: float | None
    largest_size: float | None
    by_block: BlockCompanion


@dataclass(frozen=True)
class HeterogeneityFinding:
    """Whether the effect differs between tasks. `sigma_int`: SD of the true effect between tasks, rate scale;
    `prediction`: where a new task's true effect lies; `homogeneity`: Breslow and Day's test of equal odds ratios;
    `qualitative`: Gail and Simon's test of effects in both directions."""

    sigma_int: float | None
    prediction: Interval
    homogeneity: Test
    qualitative: Test
    reason: str | None


@dataclass(frozen=True)
class WithThinTasks:
    """The difference over all tasks with valid trials on both sides, those that losses made thin among them."""

    these_tasks: Interval
    tasks_like_these: Interval


@dataclass(frozen=True)
class Contrast:
    """Treatment − control over the `compared` tasks, in rates. `role`: primary; secondary (its family is
    corrected); unplanned (no primary was declared); asked (on the command line, after the fact)."""

    treatment: str
    control: str
    role: Role
    compared: ComparedTasks
    treatment_rate: float | None
    control_rate: float | None
    composition: Composition
    these_tasks: OnTheseTasks
    tasks_like_these: OnTasksLikeThese
    heterogeneity: HeterogeneityFinding
    with_thin: WithThinTasks | None = None

    @property
    def name(self) -> str:
        return f"{self.treatment} − {self.control}"

    @property
    def tasks(self) -> int:
        return len(self.compared.tasks)


@dataclass(frozen=True)
class Sides:
    """Whom to compare, and what the comparison counts as."""

    treatment: str
    control: str
    role: Role


def contrasted(sides: Sides, scheme: Scheme, columns: Columns, counts: CellCounts) -> Contrast:
    """Treatment − control over the tasks that they are compared on. P-values are not yet corrected."""
    a, b = scheme.pair(sides)
    compared = pair_tasks(scheme, columns, counts, a, b)
    tasks = compared.mask_among(scheme.tasks)
    four = counts.arms(a, b, tasks)
    rate_a, rate_b = rates(four[0], four[1]), rates(four[2], four[3])
    claim = TasksClaim.of(scheme, tasks, primary=sides.role == "primary")
    return Contrast(
        treatment=sides.treatment,
        control=sides.control,
        role=sides.role,
        compared=compared,
        treatment_rate=_mean(rate_a),
        control_rate=_mean(rate_b),
        composition=_composition(scheme, sides),
        these_tasks=on_these_tasks(four, companion(columns, a, b, tasks), alpha=scheme.alpha),
        tasks_like_these=on_tasks_like_these(rate_a, rate_b, list(compared.tasks), claim, scheme.alpha),
        heterogeneity=between_tasks(four),
        with_thin=_with_thin(compared, scheme, counts, (a, b), primary=sides.role == "primary"),
    )


def pair_tasks(scheme: Scheme, columns: Columns, counts: CellCounts, a: int, b: int) -> ComparedTasks:
    """What the comparison of two conditions, by position, is made of. Without a fixed end, the tasks that are bet
    on."""
    found = counts.compare_conditions(scheme, a, b)
    if scheme.declared is None or scheme.declared.anytime is None:
        return found
    staying = stages_of_pair(scheme, columns, a, b).tasks
    named = [task for task, stays in zip(scheme.tasks, staying, strict=True) if stays]
    return found.restrict_to(named)


def _with_thin(
    compared: ComparedTasks, scheme: Scheme, counts: CellCounts, pair: tuple[int, int], *, primary: bool
) -> WithThinTasks | None:
    if not compared.thin:
        return None
    every = replace(compared, tasks=(*compared.tasks, *compared.thin)).mask_among(scheme.tasks)
    x_a, n_a, x_b, n_b = counts.arms(*pair, every)
    claim, kept = TasksClaim.of(scheme, every, primary=primary), np.ones(n_a.size, dtype=np.bool_)
    like = claim.judge(rates(x_a, n_a), rates(x_b, n_b), kept, scheme.alpha).interval
    assert like is not None, "the test always has its interval, if only an undefined one"
    return WithThinTasks(stratified_miettinen_nurminen(x_a, n_a, x_b, n_b, level=1 - scheme.alpha), like)


def _composition(scheme: Scheme, sides: Sides) -> Composition:
    treatment, control = (
        Arm(scheme.composed[name], scheme.agents[name]) for name in (sides.treatment, sides.control)
    )
    return compose(treatment, control, scheme.composed.values())


def on_these_tasks(four: FourCounts, by_block: BlockCompanion, *, alpha: float) -> OnTheseTasks:
    """The stratified exact mid-p test with the stratified Miettinen-Nurminen interval, each task weighing the
    same."""
    test = stratified_exact(*four)
    difference = stratified_miettinen_nurminen(*four, level=1 - alpha)
    return OnTheseTasks(
        test=test,
        conflict=test.direction * side(difference.estimate) < 0,
        adjusted=None,
        difference=difference,
        agrees=agree(test, difference, alpha),
        odds_ratio=plain_interval(conditional_odds_ratio(*four, level=1 - alpha)),
        strata=int(four[0].size),
        informative=test.n_informative or 0,
        over_width=over_width(four, difference),
        largest_size=midp_size(int(four[1][0]), int(four[3][0]), alpha=alpha) if four[0].size == 1 else None,
        by_block=by_block,
    )


def companion(columns: Columns, a: int, b: int, tasks: Bools) -> BlockCompanion:
    """Strata task × block, one trial per arm, over the complete pairs, in which every task weighs the same:
    McNemar's mid-p test where all tasks have as many."""
    of_a, of_b = outcomes_by_block(columns, a, tasks), outcomes_by_block(columns, b, tasks)
    complete = (of_a >= FAILED) & (of_b >= FAILED)
    task = np.nonzero(complete)[0]
    passed_a, passed_b = ((side[complete] == PASSED).astype(np.int64) for side in (of_a, of_b))
    ones = np.ones_like(task)
    test = stratified_exact(passed_a, ones, passed_b, ones, weights=1 / complete.sum(axis=1)[task])
    broken = int(np.sum(((of_a > ABSENT) | (of_b > ABSENT)) & ~complete))
    return BlockCompanion(
        test,
        int(complete.sum()),
        int(np.sum(passed_a > passed_b)),
        int(np.sum(passed_b > passed_a)),
        broken,
    )


def between_tasks(four: FourCounts) -> HeterogeneityFinding:
    """Whether the effect differs between tasks."""
    found = heterogeneity(*four)
    return HeterogeneityFinding(
        found.sigma_int, found.prediction, plain_test(found.test), found.qualitative, found.reason
    )


def over_width(four: FourCounts, interval: Interval) -> float | None:
    """The interval's width over that of normal limits at the tasks' own rates, variances p (1 − p) / (n − 1). None
    where a cell has fewer than two trials or no task varies."""
    x_a, n_a, x_b, n_b = four
    if interval.low is None or interval.high is None or min(n_a.min(), n_b.min()) < 2:
        return None
    p_a, p_b = rates(x_a, n_a), rates(x_b, n_b)
    variance = float(np.sum(p_a * (1 - p_a) / (n_a - 1) + p_b * (1 - p_b) / (n_b - 1))) / n_a.size**2
    if variance == 0:
        return None
    return (interval.high - interval.low) / (2 * normal_quantile(interval.level) * math.sqrt(variance))


def side(difference: float | None) -> int:
    """Of 0: 1, −1, or 0 within rounding and where there is no difference."""
    return 0 if difference is None or abs(difference) <= TIES else int(np.sign(difference))


def agree(test: Test, interval: Interval, alpha: float) -> bool | None:
    """Whether the interval leaves 0 out exactly when the test rejects; None when either is undefined."""
    if test.p_value is None or interval.low is None or interval.high is None:
        return None
    return rejects(test.p_value, alpha) == (interval.low > 0 or interval.high < 0)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def sides(scheme: Scheme, requested: Sequence[tuple[str, str]] = ()) -> tuple[Sides, ...]:
    """The declared primary first and every other condition against its control; all pairs, the later condition of
    the plan as treatment, where none was declared; every condition against the lowest dose of a declared trend. A
    condition that tells what only the fix knows is a ceiling, and none of the others; one that the halving has
    left out is in no contrast. `requested`: (treatment, control) from outside the plan, last."""
    declared = scheme.declared
    if scheme.reference is not None:
        lowest = scheme.reference
        found = [Sides(name, lowest, "secondary") for name in _attainable(scheme) if name != lowest]
        found += [Sides(name, lowest, "ceiling") for name in _ceilings(scheme)]
    elif declared is None:
        found = [Sides(later, first, "unplanned") for first, later in combinations(_attainable(scheme), 2)]
        found += [Sides(ceiling, name, "ceiling") for ceiling in _ceilings(scheme) for name in _attainable(scheme)]
    else:
        out = (declared.treatment, declared.control, *scheme.left_out)
        others = [name for name in scheme.conditions if name not in out]
        found = [Sides(declared.treatment, declared.control, "primary")]
        found += [Sides(name, declared.control, "secondary") for name in others if name in _attainable(scheme)]
        found += [Sides(name, declared.control, "ceiling") for name in others if name in _ceilings(scheme)]
    known = {(one.treatment, one.control) for one in found}
    return (*found, *(Sides(a, b, "asked") for a, b in dict.fromkeys(requested) if (a, b) not in known))


def _ceilings(scheme: Scheme) -> tuple[str, ...]:
    return tuple(name for name in scheme.conditions if scheme.composed[name].ceiling)


def _attainable(scheme: Scheme) -> tuple[str, ...]:
    return tuple(name for name in scheme.conditions if not scheme.composed[name].ceiling)


def all_contrasts(
    scheme: Scheme,
    columns: Columns,
    counts: CellCounts,
    wanted: Sequence[Sides],
    *,
    adapted: Callable[[Contrast], Contrast] = lambda one: one,
) -> Corrected[Contrast]:
    """Every contrast, `adapted` before Holm's correction in its family.

    The declared primary in its declared estimand stands alone, uncorrected. All other tests of a rate belong to
    one family per estimand, the primary contrast's own test in the other estimand among them, and those with a
    ceiling to another: they cost the questions nothing. No test is shown outside of a family. Tests without a
    p-value take no part.
    """
    found = [adapted(contrasted(one, scheme, columns, counts)) for one in wanted]
    others = "contrasts other than the primary" if scheme.declared else "all pairwise contrasts"
    if scheme.reference is not None:
        others = "contrasts with the lowest dose"
    families: list[Family] = []
    for estimand, slot in SLOTS.items():
        alone = scheme.declared is not None and scheme.declared.reach == estimand
        kept = [one for one in found if alone and one.role == "primary"]
        ceilings = [one for one in found if one.role == "ceiling"]
        rest = [one for one in found if one not in kept and one not in ceilings]
        found = kept
        for family, members in ((others, rest), ("ceilings", ceilings)):
            done = corrected(
                members, f"{family}, {NAMES[estimand]}", slot, _name, method="holm", alpha=scheme.alpha
            )
            found, families = [*found, *done.found], [*families, *done.families]
    return Corrected(tuple(found), tuple(families))


def _name(contrast: Contrast) -> str:
    return contrast.name


SLOTS: dict[Estimand, PValueSlot[Contrast]] = {
    "these_tasks": PValueSlot(
        lambda one: one.these_tasks.test,
        lambda one, p: replace(one, these_tasks=replace(one.these_tasks, adjusted=p)),
    ),
    "tasks_like_these": PValueSlot(
        lambda one: one.tasks_like_these.test,
        lambda one, p: replace(one, tasks_like_these=replace(one.tasks_like_these, adjusted=p)),
    ),
}
