"""One contrast in both estimands: tests, intervals, and what they rest on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trialfleet_analysis.comparisons import (
    PairedT,
    conditional_odds_ratio,
    heterogeneity,
    mcnemar,
    paired_t_on_tasks,
    stratified_exact,
)
from trialfleet_analysis.estimates import Floats, Integers, Interval, Test, rejects
from trialfleet_analysis.intervals import stratified_miettinen_nurminen
from trialfleet_analysis.plan_of_analysis.columns import Columns, Counts, FourCounts, Scheme, places, rates
from trialfleet_analysis.plan_of_analysis.composition import compose
from trialfleet_analysis.report.document.contrasts import (
    BlockCompanion,
    Contrast,
    Heterogeneity,
    LeaveOneOut,
    OnTasksLikeThese,
    OnTheseTasks,
    Role,
)
from trialfleet_analysis.tables.arrays import Bools

ABSENT, LOST, FAILED, PASSED = range(4)


@dataclass(frozen=True)
class Sides:
    """Whom to compare, and what the comparison counts as."""

    treatment: str
    control: str
    role: Role


def contrasted(sides: Sides, scheme: Scheme, columns: Columns, counts: Counts) -> Contrast:
    """Treatment − control over the tasks that have valid trials in both. P-values are not yet corrected."""
    place = places(scheme.conditions)
    a, b = place[sides.treatment], place[sides.control]
    tasks = counts.shared(a, b)
    four = counts.arms(a, b)
    rate_a, rate_b = rates(four[0], four[1]), rates(four[2], four[3])
    return Contrast(
        treatment=sides.treatment,
        control=sides.control,
        role=sides.role,
        tasks=int(tasks.sum()),
        treatment_rate=_mean(rate_a),
        control_rate=_mean(rate_b),
        composition=compose(scheme.composed[sides.treatment], scheme.composed[sides.control], scheme.composed),
        these_tasks=on_these_tasks(four, companion(columns, a, b, tasks), alpha=scheme.alpha),
        tasks_like_these=on_tasks_like_these(
            rate_a, rate_b, [name for name, kept in zip(scheme.tasks, tasks, strict=True) if kept], scheme.alpha
        ),
        heterogeneity=between_tasks(four),
    )


def on_these_tasks(four: FourCounts, by_block: BlockCompanion, *, alpha: float) -> OnTheseTasks:
    """The stratified exact mid-p test with the stratified Miettinen-Nurminen interval, each task weighing the
    same."""
    test = stratified_exact(*four)
    difference = stratified_miettinen_nurminen(*four, level=1 - alpha)
    return OnTheseTasks(
        test=test,
        adjusted=None,
        difference=difference,
        agrees=agree(test, difference, alpha),
        odds_ratio=plain_interval(conditional_odds_ratio(*four, level=1 - alpha)),
        strata=int(four[0].size),
        informative=test.n_informative or 0,
        by_block=by_block,
    )


def on_tasks_like_these(a: Floats, b: Floats, tasks: list[str], alpha: float) -> OnTasksLikeThese:
    """The paired t-test on the tasks' differences, and how much hangs on a single task."""
    found = paired_t_on_tasks(a, b, level=1 - alpha)
    assert found.interval is not None, "a paired t-test always has its interval, if only an undefined one"
    ahead = (a - b) * np.sign(np.sum(a - b))
    return OnTasksLikeThese(
        test=plain_test(found),
        adjusted=None,
        difference=found.interval,
        leave_one_out=leave_one_out(a, b, found),
        largest_task=tasks[int(np.argmax(ahead))] if found.largest_share is not None else None,
        largest_share=found.largest_share,
        caveat=found.caveat,
    )


def leave_one_out(a: Floats, b: Floats, every: PairedT) -> LeaveOneOut | None:
    """The ranges of the mean difference and of its p; None with fewer than two tasks."""
    if every.leave_one_out is None:
        return None
    kept = [np.arange(a.size) != left for left in range(a.size)]
    ps = [p for some in kept if (p := paired_t_on_tasks(a[some], b[some]).p_value) is not None]
    return LeaveOneOut(*every.leave_one_out, min(ps, default=None), max(ps, default=None))


def companion(columns: Columns, a: int, b: int, tasks: Bools) -> BlockCompanion:
    """Strata task × block, one trial per arm: McNemar's mid-p test over the complete pairs."""
    of_a, of_b = _by_block(columns, a, tasks), _by_block(columns, b, tasks)
    complete = (of_a >= FAILED) & (of_b >= FAILED)
    only_a = int(np.sum(complete & (of_a > of_b)))
    only_b = int(np.sum(complete & (of_b > of_a)))
    broken = int(np.sum(((of_a > ABSENT) | (of_b > ABSENT)) & ~complete))
    return BlockCompanion(mcnemar(only_a, only_b), int(complete.sum()), only_a, only_b, broken)


def between_tasks(four: FourCounts) -> Heterogeneity:
    """Whether the effect differs between tasks."""
    found = heterogeneity(*four)
    return Heterogeneity(
        found.sigma_int, found.prediction, plain_test(found.test), found.qualitative, found.reason
    )


def agree(test: Test, interval: Interval, alpha: float) -> bool | None:
    """Whether the interval leaves 0 out exactly when the test rejects; None when either is undefined."""
    if test.p_value is None or interval.low is None or interval.high is None:
        return None
    return rejects(test.p_value, alpha) == (interval.low > 0 or interval.high < 0)


def plain_test(test: Test) -> Test:
    """Without what a subclass adds, for the document."""
    return Test(**{name: getattr(test, name) for name in Test.__dataclass_fields__})


def plain_interval(interval: Interval) -> Interval:
    """An infinite number is None, with the reason: JSON has no infinity."""
    numbers = (interval.estimate, interval.low, interval.high)
    estimate, low, high = (None if value is not None and np.isinf(value) else value for value in numbers)
    if (estimate, low, high) == numbers:
        return interval
    return replace(interval, estimate=estimate, low=low, high=high, reason=interval.reason or "unbounded")


def _by_block(columns: Columns, condition: int, tasks: Bools) -> Integers:
    """What became of each task × block under a condition, shape (tasks, blocks)."""
    found = np.full((tasks.size, int(columns.block.max(initial=-1)) + 1), ABSENT)
    mine = (columns.condition == condition) & tasks[columns.task]
    became = np.where(columns.valid, np.where(columns.passed, PASSED, FAILED), LOST)
    found[columns.task[mine], columns.block[mine]] = became[mine]
    return found


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None
