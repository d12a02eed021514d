"""What context changed in turns, time, tokens and money: resampled within tasks, and ranked over tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trialfleet_analysis.continuous import (
    BootstrapInterval,
    PermutationTest,
    hierarchical_bootstrap,
    hodges_lehmann,
    signed_rank,
    stratified_permutation,
)
from trialfleet_analysis.estimates import Floats, Integers
from trialfleet_analysis.plan_of_analysis.columns import Columns, Scheme, places
from trialfleet_analysis.plan_of_analysis.contrast import plain_test
from trialfleet_analysis.plan_of_analysis.correction import Place, by_benjamini_hochberg
from trialfleet_analysis.report.document.contrasts import Adjusted, Contrast, Family
from trialfleet_analysis.report.document.measures import MeasureContrast
from trialfleet_analysis.tables.arrays import Bools

COMPARED = (
    "turns",
    "wall_s",
    "agent_s",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost_usd",
    "first_edit_turn",
    "first_edit_s",
)
MOST, LEAST = 9_999, 999
BUDGET = 100_000_000  # values × resamples: what a report may spend on all of them together
NO_BUDGET = "left out: so many trials that resampling is spent on the first contrast alone"


@dataclass(frozen=True)
class Measured:
    measures: tuple[MeasureContrast, ...]
    families: tuple[Family, ...]


@dataclass(frozen=True, eq=False)
class Sample:
    """One metric's values under two conditions, of tasks that have it in both. `arm`: 1 is the treatment."""

    values: Floats
    arm: Integers
    task: Integers
    cut_off: Bools

    @property
    def tasks(self) -> Integers:
        return np.unique(self.task)


def measured(contrasts: Sequence[Contrast], scheme: Scheme, columns: Columns) -> Measured:
    """Every metric that was measured, for every contrast; Benjamini and Hochberg's correction over metric ×
    contrast, one family per estimand."""
    place = places(scheme.conditions)
    samples = [
        (one, key, of)
        for one in contrasts
        for key in COMPARED
        if (of := sample(columns, key, place[one.treatment], place[one.control])).values.size
    ]
    first = contrasts[0].name if contrasts else ""
    spent = shared_out([(one.name == first, of.values.size) for one, _, of in samples], uses=2)  # test, interval
    found = [
        _measure(one, key, of, scheme, resamples) for (one, key, of), resamples in zip(samples, spent, strict=True)
    ]
    return _corrected(found, scheme.alpha)


def sample(columns: Columns, key: str, a: int, b: int) -> Sample:
    values = columns.measures.get(key)
    if values is None:
        return Sample(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))
    of_a, of_b = columns.condition == a, columns.condition == b
    known = columns.valid & np.isfinite(values)
    both = np.intersect1d(columns.task[known & of_a], columns.task[known & of_b])
    kept = known & (of_a | of_b) & np.isin(columns.task, both)
    return Sample(values[kept], of_a[kept].astype(np.int64), columns.task[kept], columns.cut_off[kept])


def task_values(of: Sample, arm: int, centre: Callable[[Floats], np.floating]) -> Floats:
    """One centre per task, in the tasks' order."""
    mine = of.arm == arm
    values, task = of.values[mine], of.task[mine]
    order = np.argsort(task, kind="stable")
    starts = np.searchsorted(task[order], of.tasks)
    return np.array([float(centre(part)) for part in np.split(values[order], starts[1:])])


def shared_out(sizes: Sequence[tuple[bool, int]], *, uses: int) -> list[int | None]:
    """How many resamples each sample gets, of `uses` resamplings each: (whether it is the first contrast's,
    values).

    All get the same number, as far as the budget goes; where that would leave them fewer than `LEAST`, the first
    contrast alone is resampled, and the others get None.
    """
    everything = _afforded(uses * sum(size for _, size in sizes))
    if everything >= LEAST:
        return [everything] * len(sizes)
    alone = max(LEAST, _afforded(uses * sum(size for first, size in sizes if first)))
    return [alone if first else None for first, _ in sizes]


def _afforded(values: int) -> int:
    return min(MOST, BUDGET // max(1, values))


def _measure(one: Contrast, key: str, of: Sample, scheme: Scheme, resamples: int | None) -> MeasureContrast:
    a, b = task_values(of, 1, np.median), task_values(of, 0, np.median)
    return MeasureContrast(
        measure=key,
        treatment=one.treatment,
        control=one.control,
        tasks=int(of.tasks.size),
        trials_treatment=int(np.sum(of.arm == 1)),
        trials_control=int(np.sum(of.arm == 0)),
        median_treatment=float(np.median(a)),
        median_control=float(np.median(b)),
        cut_off_treatment=int(np.sum(of.cut_off & (of.arm == 1))),
        cut_off_control=int(np.sum(of.cut_off & (of.arm == 0))),
        mean_difference=_bootstrapped(one, key, of, scheme, resamples),
        permutation=_permuted(one, key, of, scheme, resamples),
        permutation_adjusted=None,
        shift=hodges_lehmann(a - b, level=1 - scheme.alpha),
        signed_rank=plain_test(signed_rank(a - b)),
        signed_rank_adjusted=None,
    )


def _permuted(one: Contrast, key: str, of: Sample, scheme: Scheme, resamples: int | None) -> PermutationTest:
    if resamples is None:
        return PermutationTest(None, None, "stratified_permutation_rank", reason=NO_BUDGET)
    seed = scheme.seed_of("permutation", key, one.treatment, one.control)
    return stratified_permutation(of.values, of.arm, of.task, resamples=resamples, seed=seed)


def _bootstrapped(one: Contrast, key: str, of: Sample, scheme: Scheme, resamples: int | None) -> BootstrapInterval:
    level = 1 - scheme.alpha
    if resamples is None:
        difference = float(np.mean(task_values(of, 1, np.mean) - task_values(of, 0, np.mean)))
        named = BootstrapInterval(
            difference, None, None, level, of.values.size, "hierarchical_bootstrap_mean", "these_tasks"
        )
        return replace(named, reason=NO_BUDGET)
    enough = max(resamples, math.ceil(2 / scheme.alpha))
    seed = scheme.seed_of("bootstrap", key, one.treatment, one.control)
    return hierarchical_bootstrap(
        of.values, of.arm, of.task, estimand="these_tasks", resamples=enough, seed=seed, level=level
    )


def _corrected(found: list[MeasureContrast], alpha: float) -> Measured:
    done, on_these = by_benjamini_hochberg(found, "metrics, these tasks", ON_THESE, alpha=alpha)
    done, like_these = by_benjamini_hochberg(done, "metrics, tasks like these", LIKE_THESE, alpha=alpha)
    return Measured(tuple(done), tuple(family for family in (on_these, like_these) if family))


def _name(one: MeasureContrast) -> str:
    return f"{one.measure}, {one.treatment} − {one.control}"


def _on_these(one: MeasureContrast, adjusted: Adjusted) -> MeasureContrast:
    return replace(one, permutation_adjusted=adjusted)


def _like_these(one: MeasureContrast, adjusted: Adjusted) -> MeasureContrast:
    return replace(one, signed_rank_adjusted=adjusted)


ON_THESE: Place[MeasureContrast] = Place(lambda one: one.permutation, _on_these, _name)
LIKE_THESE: Place[MeasureContrast] = Place(lambda one: one.signed_rank, _like_these, _name)
