"""Effects on turns, time, tokens and money, how these spread under each condition, and what a pass costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trialfleet_designs.comparison.columns import Columns, Scheme
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.comparison.correction import AdjustedPValue, Corrected, PValueSlot, in_both_estimands
from trialfleet_designs.comparison.plain import plain_test
from trialfleet_ledger.metric_table import METRICS
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.continuous import (
    BootstrapInterval,
    PermutationTest,
    SignedRankInterval,
    cost_per_pass,
    hierarchical_bootstrap,
    hodges_lehmann,
    signed_rank,
    stratified_permutation,
)
from trialfleet_statistics.estimates import Bools, Estimand, Floats, Integers, Test


@dataclass(frozen=True)
class MeasureContrast:
    """One metric under treatment and control. Tasks with a value in one arm only are left out.

    `mean_difference`: of the tasks' means, on these tasks, bootstrapped over reps; `permutation`: labels shuffled
    inside each task. `shift`: Hodges and Lehmann's estimate over the tasks' differences of medians, for tasks like
    these; `signed_rank`: its test. `trials`: with the metric; `cut_off`: those of them that hit a budget, whose
    values are lower bounds. `median`: over tasks of the tasks' medians.
    """

    measure: str
    treatment: str
    control: str
    tasks: int
    trials_treatment: int
    trials_control: int
    median_treatment: float | None
    median_control: float | None
    cut_off_treatment: int
    cut_off_control: int
    mean_difference: BootstrapInterval
    permutation: PermutationTest
    permutation_adjusted: AdjustedPValue | None
    shift: SignedRankInterval
    signed_rank: Test
    signed_rank_adjusted: AdjustedPValue | None


COMPARED = tuple(metric.name for metric in METRICS if metric.compared)
MOST, LEAST = 9_999, 999
BUDGET = 100_000_000  # values × resamples: what a report may spend on all of them together
NO_BUDGET = "left out: so many trials that resampling is spent on the first contrast alone"


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


def measured(contrasts: Sequence[Contrast], scheme: Scheme, columns: Columns) -> Corrected[MeasureContrast]:
    """Every metric that was measured, for every contrast; Benjamini and Hochberg's correction over metric ×
    contrast, one family per estimand."""
    samples = [
        (one, key, of)
        for one in contrasts
        for within in (columns.of_tasks(one.compared.mask_among(scheme.tasks)),)
        for key in COMPARED
        if (of := sample(within, key, *scheme.pair(one))).values.size
    ]
    first = contrasts[0].name if contrasts else ""
    spent = shared_out([(one.name == first, of.values.size) for one, _, of in samples], uses=2)  # test, interval
    found = [
        _measure(one, key, of, scheme, resamples) for (one, key, of), resamples in zip(samples, spent, strict=True)
    ]
    return in_both_estimands(found, "metrics", SLOTS, _name, method="benjamini_hochberg", alpha=scheme.alpha)


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


def _name(one: MeasureContrast) -> str:
    return f"{one.measure}, {one.treatment} − {one.control}"


SLOTS: dict[Estimand, PValueSlot[MeasureContrast]] = {
    "these_tasks": PValueSlot(lambda one: one.permutation, lambda one, p: replace(one, permutation_adjusted=p)),
    "tasks_like_these": PValueSlot(
        lambda one: one.signed_rank, lambda one, p: replace(one, signed_rank_adjusted=p)
    ),
}


@dataclass(frozen=True)
class Distribution:
    """A metric's spread under one condition, over trials: count per bin between `edges` (one more than counts)."""

    measure: str
    condition: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    quartiles: tuple[float, float, float] | None


BINS = 24
LARGEST_WHOLE = 2.0**50


def distributions(scheme: Scheme, columns: Columns) -> tuple[Distribution, ...]:
    """Of every metric that is plotted and was measured: counts per bin, the same bins under every condition."""
    return tuple(
        one for metric in METRICS if metric.plot != "none" for one in _of_metric(metric.name, scheme, columns)
    )


def _of_metric(key: str, scheme: Scheme, columns: Columns) -> Iterator[Distribution]:
    values = columns.measures.get(key, np.empty(0))
    known = np.isfinite(values) & columns.valid if values.size else np.empty(0, np.bool_)
    if not known.any():
        return
    edges = _edges(values[known])
    for place, name in enumerate(scheme.conditions):
        mine = values[known & (columns.condition == place)]
        counts = np.histogram(mine, edges)[0]
        middle = tuple(np.quantile(mine, (0.25, 0.5, 0.75)).tolist()) if mine.size else None
        yield Distribution(key, name, tuple(edges.tolist()), tuple(counts.tolist()), middle)


def _edges(values: Floats) -> Floats:
    """From the least to the largest value; whole numbers get bins that hold equally many of them: else some bins
    would look fuller than others. Beyond `LARGEST_WHOLE`, halves are no numbers any more."""
    low, high = float(values.min()), float(values.max())
    if high < LARGEST_WHOLE and np.all(values == np.round(values)):
        width = math.ceil((high - low + 1) / BINS)
        return np.arange(low - 0.5, high + width, width)
    least = max(1.0 if high == low else 0.0, BINS * float(np.spacing(high)))
    return np.linspace(low, max(high, low + least), BINS + 1)


@dataclass(frozen=True)
class CostPerPass:
    """Money per pass, per condition: sum of costs of its valid `trials` / passes; None without a pass.
    `with_losses` adds what lost runs of the agent cost: None where `unknown` of them left no cost. They cost no
    more than the plan's cap each: `with_losses_at_most`, None without a cap."""

    condition: str
    trials: int
    passes: int
    cost: float | None
    lost_cost: float | None
    unknown: int
    without_losses: float | None
    with_losses: float | None
    reason: str | None
    with_losses_at_most: float | None = None


@dataclass(frozen=True)
class CostRatio:
    """Treatment's cost per pass over control's."""

    treatment: str
    control: str
    these_tasks: BootstrapInterval
    tasks_like_these: BootstrapInterval


NO_COST = "no trial's cost was measured"


def costs(scheme: Scheme, columns: Columns, lost_attempts: Sequence[int]) -> tuple[CostPerPass, ...]:
    """One per condition. `lost_attempts`: of each condition, the agent's runs that were lost: what they cost is
    in no record, so that cost per pass with losses is known where there were none, and elsewhere lies between
    that without them and that with the plan's cap for each."""
    return tuple(
        _cost(name, place, columns, lost_attempts[place], scheme.cap_usd)
        for place, name in enumerate(scheme.conditions)
    )


def _cost(name: str, place: int, columns: Columns, lost: int, cap: float | None) -> CostPerPass:
    mine = (columns.condition == place) & columns.valid
    cost = columns.measures.get("cost_usd", np.full(columns.task.shape, np.nan))[mine]
    passes, unknown = int(columns.passed[mine].sum()), int(np.sum(~np.isfinite(cost)))
    total = float(cost.sum()) if cost.size and not unknown else None
    ratio = total / passes if total is not None and passes else None
    reason = None
    if total is None:
        reason = (
            f"the cost of {unknown} of {plural(cost.size, 'trial')} was not measured" if cost.size else NO_COST
        )
    elif not passes:
        reason = "no trial passed"
    most = 0.0 if not lost else lost * cap if cap is not None else None
    return CostPerPass(
        condition=name,
        trials=cost.size,
        passes=passes,
        cost=total,
        lost_cost=None if lost else 0.0,
        unknown=lost,
        without_losses=ratio,
        with_losses=None if lost else ratio,
        with_losses_at_most=(total + most) / passes
        if ratio is not None and total is not None and most is not None
        else None,
        reason=reason,
    )


def cost_ratios(contrasts: Sequence[Contrast], scheme: Scheme, columns: Columns) -> tuple[CostRatio, ...]:
    """Treatment's cost per pass over control's, of contrasts whose trials all have a cost."""
    if "cost_usd" not in columns.measures or not np.isfinite(columns.measures["cost_usd"]).any():
        return ()
    within = [columns.of_tasks(one.compared.mask_among(scheme.tasks)) for one in contrasts]
    sizes = [int(np.isin(of.condition, scheme.pair(one)).sum()) for one, of in zip(contrasts, within, strict=True)]
    spent = shared_out([(n == 0, size) for n, size in enumerate(sizes)], uses=2)
    return tuple(
        CostRatio(
            one.treatment,
            one.control,
            _ratio(one, "these_tasks", scheme, of, resamples),
            _ratio(one, "tasks_like_these", scheme, of, resamples),
        )
        for one, of, resamples in zip(contrasts, within, spent, strict=True)
    )


def _ratio(
    one: Contrast, estimand: Estimand, scheme: Scheme, columns: Columns, resamples: int | None
) -> BootstrapInterval:
    a, b = scheme.pair(one)
    mine = columns.valid & ((columns.condition == a) | (columns.condition == b))
    cost = columns.measures["cost_usd"][mine]
    unknown = int(np.sum(~np.isfinite(cost)))
    if unknown or resamples is None:
        reason = (
            f"the cost of {unknown} of {plural(cost.size, 'trial')} was not measured" if unknown else NO_BUDGET
        )
        return BootstrapInterval(
            None, None, None, 1 - scheme.alpha, cost.size, "cost_per_pass", estimand, reason=reason
        )
    return cost_per_pass(
        cost,
        columns.passed[mine],
        columns.condition[mine] == a,
        columns.task[mine],
        estimand=estimand,
        resamples=max(resamples, math.ceil(2 / scheme.alpha)),
        seed=scheme.seed_of("cost per pass", one.treatment, one.control, estimand),
        level=1 - scheme.alpha,
    )
