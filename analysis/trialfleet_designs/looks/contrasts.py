"""Contrasts of a campaign that declared looks, with p-values, and limits, that allow for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import special

from trialfleet_designs.comparison.block_outcomes import FAILED, PASSED, outcomes_by_block
from trialfleet_designs.comparison.columns import Columns, FourCounts, Scheme, rates
from trialfleet_designs.comparison.contrast import BlockCompanion, Contrast, agree, side
from trialfleet_designs.comparison.plain import plain_interval
from trialfleet_designs.looks.finding import LooksFinding, decided_counts
from trialfleet_designs.monitoring import design_of, word_first_look
from trialfleet_ledger.designs.looks import revised_reps
from trialfleet_statistics.comparisons import StratifiedTest, conditional_odds_ratio
from trialfleet_statistics.comparisons.convolution import informative
from trialfleet_statistics.estimates import Integers, Interval, floats, rejects
from trialfleet_statistics.intervals import stratified_miettinen_nurminen
from trialfleet_statistics.sequential import (
    SequentialDesign,
    SequentialStage,
    normal_bounds,
    sequential_p,
    stage,
)

SEQUENTIAL_P = "sequential p"


def allowing_for_looks(found: Contrast, looks: LooksFinding, scheme: Scheme, columns: Columns) -> Contrast:
    """The contrast on these tasks with a p that allows for the looks. The declared contrast is that of the last
    look, whatever came after it, and gets its limits too; any other is tested by the same recursion on its own
    margins, at the looks that were taken."""
    assert scheme.declared is not None
    design = design_of(scheme.declared, scheme.planned_reps, revised_reps(scheme.decisions))
    counted = _Looked(scheme, columns, scheme.pair(found), (0, *(one.blocks for one in looks.taken)))
    by_block = found.these_tasks.by_block
    if looks.taken:
        by_block = _companion(by_block, sequential_p(design, counted.by_block()))
    found = replace(found, these_tasks=replace(found.these_tasks, by_block=by_block))
    if found.role == "primary":
        return _primary(found, looks, _declared(found, looks, design, scheme))
    if not looks.taken:
        return found
    test = replace(found.these_tasks.test, p_value=sequential_p(design, counted.by_task()), method=SEQUENTIAL_P)
    return replace(found, these_tasks=replace(found.these_tasks, test=test, agrees=None))


def _companion(companion: BlockCompanion, p_value: float) -> BlockCompanion:
    return replace(companion, test=replace(companion.test, p_value=p_value, method=SEQUENTIAL_P))


@dataclass(frozen=True)
class _AtTheLook:
    """The declared contrast's numbers as of the last look, over `tasks`, of which some are `informative`."""

    tasks: tuple[str, ...]
    informative: int
    treatment_rate: float | None
    control_rate: float | None
    difference: Interval
    odds_ratio: Interval


def _declared(found: Contrast, looks: LooksFinding, design: SequentialDesign, scheme: Scheme) -> _AtTheLook:
    """The raw difference, with stage-wise limits where the campaign crossed or reached its end; otherwise, after a
    stop for futility too, with repeated ones."""
    on_these = found.these_tasks
    tasks, four = decided_counts([one.stage for one in scheme.decisions])
    if not tasks:
        return _AtTheLook(
            found.compared.tasks,
            on_these.informative,
            found.treatment_rate,
            found.control_rate,
            on_these.difference,
            on_these.odds_ratio,
        )
    level = 1 - scheme.alpha
    if not looks.stagewise:
        rejected = looks.p_value is not None and rejects(looks.p_value, scheme.alpha)
        difference, odds = interim_limits(design, len(looks.taken), four, rejected=rejected)
    else:
        difference, odds = _at(four, level)
    if looks.difference is not None and looks.difference.low is not None:
        over = replace(difference, low=looks.difference.low, high=looks.difference.high, method="stage-wise")
        difference = over if difference.estimate is None else _including(over, difference.estimate)
    return _AtTheLook(
        tasks,
        int(np.sum(informative(*four))),
        float(rates(four[0], four[1]).mean()),
        float(rates(four[2], four[3]).mean()),
        difference,
        looks.odds_ratio or odds,
    )


def interim_limits(
    design: SequentialDesign, look: int, four: FourCounts, *, rejected: bool = False
) -> tuple[Interval, Interval]:
    """Of the difference and the odds ratio, at a look, from 1, that is no crossing: at the level of its normal
    bound, so that the intervals of all looks cover at once (Jennison & Turnbull 2000, chapter 9). They hold 0, and
    1, unless the exact test, which decides there, has `rejected`."""
    level, bound = 1 - design.alpha, float(normal_bounds(design)[look - 1])
    difference, odds = _at(four, float(2 * special.ndtr(bound) - 1))
    difference, odds = replace(difference, level=level, method="repeated"), replace(odds, level=level)
    return (difference, odds) if rejected else (_including(difference, 0.0), _including(odds, 1.0))


def _including(interval: Interval, value: float) -> Interval:
    """Extended to hold the value, where it has limits."""
    low = None if interval.low is None else min(interval.low, value)
    return replace(interval, low=low, high=None if interval.high is None else max(interval.high, value))


def _at(four: FourCounts, level: float) -> tuple[Interval, Interval]:
    return (
        stratified_miettinen_nurminen(*four, level=level),
        plain_interval(conditional_odds_ratio(*four, level=level)),
    )


def _primary(found: Contrast, looks: LooksFinding, at: _AtTheLook) -> Contrast:
    on_these = found.these_tasks
    reason = None
    if looks.p_value is None:
        reason = word_first_look(looks.planned)
    last = looks.taken[-1] if looks.taken else None
    direction = 0 if last is None else side(last.total - last.mean)
    test = StratifiedTest(
        looks.p_value,
        None if last is None else last.total,
        "exact group-sequential, mid-p, stage-wise" if looks.stagewise else SEQUENTIAL_P,
        n_informative=at.informative,
        attainable_p=looks.least_p,
        reason=reason,
        direction=direction,
    )
    return replace(
        found,
        compared=replace(found.compared, tasks=at.tasks, thin=()),
        treatment_rate=at.treatment_rate,
        control_rate=at.control_rate,
        these_tasks=replace(
            on_these,
            test=test,
            difference=at.difference,
            odds_ratio=at.odds_ratio,
            strata=len(at.tasks),
            informative=at.informative,
            conflict=direction * side(at.difference.estimate) < 0,
            agrees=agree(test, at.difference, 1 - at.difference.level),
        ),
    )


@dataclass(frozen=True, eq=False)
class _Looked:
    """Two conditions between looks; `at`: 0, and the blocks after which was looked."""

    scheme: Scheme
    columns: Columns
    pair: tuple[int, int]
    at: Sequence[int]

    def by_task(self) -> list[SequentialStage]:
        """Strata are task × stage."""
        return [stage(*self._between(first, last), blocks=last - first) for first, last in pairwise(self.at)]

    def by_block(self) -> list[SequentialStage]:
        """Strata are task × block, one trial per arm, over the complete pairs; in each stage every task weighs the
        same."""
        tasks = np.ones(len(self.scheme.tasks), dtype=bool)
        of_a, of_b = (outcomes_by_block(self.columns, condition, tasks) for condition in self.pair)
        return [_paired(of_a[:, first:last], of_b[:, first:last]) for first, last in pairwise(self.at)]

    def _between(self, first: int, last: int) -> FourCounts:
        """Passes and valid trials in the blocks first … last − 1, shape (tasks,)."""
        columns, (a, b) = self.columns, self.pair
        here = columns.valid & (columns.block >= first) & (columns.block < last)

        def per_task(condition: int, *, passed: bool) -> Integers:
            which = here & (columns.condition == condition) & (columns.passed if passed else True)
            return np.bincount(columns.task[which], minlength=len(self.scheme.tasks))

        return (
            per_task(a, passed=True),
            per_task(a, passed=False),
            per_task(b, passed=True),
            per_task(b, passed=False),
        )


def _paired(of_a: Integers, of_b: Integers) -> SequentialStage:
    """Outcomes of shape (tasks, blocks)."""
    complete = (of_a >= FAILED) & (of_b >= FAILED)
    task = np.nonzero(complete)[0]
    passed_a, passed_b = ((of[complete] == PASSED).astype(np.int64) for of in (of_a, of_b))
    ones = np.ones_like(task)
    weights = floats(of_a.shape[1] / np.maximum(complete.sum(axis=1), 1)[task])
    return stage(passed_a, ones, passed_b, ones, blocks=1, scale=weights)
