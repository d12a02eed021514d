"""The declared contrast of a campaign that declared looks: what each decided, and the p and the limits that
allow for them. The counts are those of the ledger's decisions: what came to light later changes none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import special

from trialfleet_analysis.analysis_plan.columns import Columns, FourCounts, Scheme, counted
from trialfleet_analysis.analysis_plan.contrast import Contrast, agree, plain_interval, side
from trialfleet_analysis.monitoring import design_of, stage_of
from trialfleet_analysis.statistics.comparisons import StratifiedTest
from trialfleet_analysis.statistics.estimates import Integers, Interval
from trialfleet_analysis.statistics.intervals import stratified_miettinen_nurminen
from trialfleet_analysis.statistics.sequential import (
    SequentialDesign,
    SequentialLook,
    SequentialStage,
    monitor,
    normal_bounds,
    sequential_p,
    stage,
    stagewise_difference,
    stagewise_odds_ratio,
)
from trialfleet_ledger.looks import Decision, StageCounts, Verdict, stopped

NO_LOOK = "no declared look has been taken yet: the first is after block {block} of {blocks}"


@dataclass(frozen=True)
class LookFinding:
    """One look that was taken. `total`: the treatment's weighted passes; `lower`, `upper`: totals that would have
    rejected; `chance`: the power that the futility rule compared; `obeyed`: False where the operator went on."""

    number: int
    blocks: int
    total: float
    mean: float
    lower: float | None
    upper: float | None
    level: float
    p_value: float
    chance: float | None
    verdict: Verdict
    obeyed: bool


@dataclass(frozen=True)
class LooksFinding:
    """`planned`: the blocks after which is looked. `ended`: why the campaign is over, None while it goes on.
    `stagewise`: whether `p_value` is by stage-wise ordering, of a campaign that crossed or reached its end; else
    it is the sequential p, which may stand at any declared look. `difference`: median-unbiased, with stage-wise
    limits; the odds ratio likewise. `trials` of `planned_trials`, over all conditions; `cost_usd`, and what the
    plan would have cost at the same price per trial: None where no cost is known."""

    planned: tuple[int, ...]
    spending: str
    taken: tuple[LookFinding, ...]
    ended: Verdict | None
    p_value: float | None
    stagewise: bool
    difference: Interval | None
    odds_ratio: Interval | None
    trials: int
    planned_trials: int
    cost_usd: float | None
    planned_cost_usd: float | None
    extended: bool


def looks_finding(scheme: Scheme, columns: Columns) -> LooksFinding | None:
    """None where no looks are declared."""
    declared, decisions = scheme.declared, scheme.decisions
    if declared is None or declared.stop is None:
        return None
    design = design_of(declared, scheme.planned_reps)
    ended = stopped(decisions)
    if ended is None and len(decisions) == len(design.looks):
        ended = decisions[-1]
    stages = [stage_of(design, number, one.stage) for number, one in enumerate(decisions, start=1)]
    seen = monitor(design, stages)[-1] if stages else None
    stagewise = ended is not None and ended.result.verdict != "futility"
    trials, planned = int(columns.task.size), len(scheme.tasks) * len(scheme.conditions) * scheme.planned_reps
    cost = _cost(columns)
    return LooksFinding(
        planned=design.looks,
        spending=design.spending,
        taken=tuple(map(_finding, decisions)),
        ended=None if ended is None else ended.result.verdict,
        p_value=None if seen is None else seen.p_value if stagewise else sequential_p(design, stages),
        stagewise=stagewise,
        difference=None if seen is None else _difference(design, seen, decisions, level=1 - scheme.alpha),
        odds_ratio=None if seen is None else _odds(design, stages, level=1 - scheme.alpha),
        trials=trials,
        planned_trials=planned,
        cost_usd=cost,
        planned_cost_usd=None if cost is None or not trials else cost * planned / trials,
        extended=scheme.reps > scheme.planned_reps and ended is not None,
    )


def _finding(decision: Decision) -> LookFinding:
    result = decision.result
    return LookFinding(
        number=decision.number,
        blocks=decision.blocks,
        total=result.total,
        mean=result.mean,
        lower=result.lower,
        upper=result.upper,
        level=2 * result.level,
        p_value=result.p_value,
        chance=result.chance,
        verdict=result.verdict,
        obeyed=decision.obeyed,
    )


def _cost(columns: Columns) -> float | None:
    costs = columns.measures.get("cost_usd")
    return None if costs is None or not np.isfinite(costs).all() else float(costs.sum())


def _odds(design: SequentialDesign, stages: Sequence[SequentialStage], *, level: float) -> Interval:
    return plain_interval(stagewise_odds_ratio(design, stages, level=level))


def _difference(
    design: SequentialDesign, seen: SequentialLook, decisions: Sequence[Decision], *, level: float
) -> Interval:
    tasks = list(dict.fromkeys(one.task for decision in decisions for one in decision.stage))
    counted = [_summed([one for d in decisions for one in d.stage if one.task == task]) for task in tasks]
    x_a, n_a, x_b, n_b = zip(*counted, strict=True)
    return stagewise_difference(design, seen, x_a, n_a, x_b, n_b, level=level)


def _summed(counts: Sequence[StageCounts]) -> tuple[int, int, int, int]:
    return (
        sum(one.treatment_passed for one in counts),
        sum(one.treatment_valid for one in counts),
        sum(one.control_passed for one in counts),
        sum(one.control_valid for one in counts),
    )


def allowing_for_looks(found: Contrast, looks: LooksFinding, scheme: Scheme, columns: Columns) -> Contrast:
    """The contrast on these tasks with a p that allows for the looks. The declared contrast gets its limits too; a
    secondary one is tested by the same recursion on its own margins, at the looks that were taken."""
    if found.role == "primary":
        return _primary(found, looks, _limits(found, looks, scheme, columns))
    if found.role != "secondary" or not looks.taken:
        return found
    assert scheme.declared is not None
    design = design_of(scheme.declared, scheme.planned_reps)
    a, b = scheme.pair(found)
    at = [0, *(one.blocks for one in looks.taken)]
    stages = [
        stage(*_between(scheme, columns, a, b, first, last), blocks=last - first) for first, last in pairwise(at)
    ]
    test = replace(found.these_tasks.test, p_value=sequential_p(design, stages), method="sequential p")
    return replace(found, these_tasks=replace(found.these_tasks, test=test, agrees=None))


def _limits(found: Contrast, looks: LooksFinding, scheme: Scheme, columns: Columns) -> Interval:
    """The raw difference, with stage-wise limits once the campaign is over. While it goes on they are those of a
    repeated confidence interval: score limits at the level of the last look's normal bound, which all looks'
    intervals cover at once (Jennison & Turnbull 2000, chapter 9)."""
    difference, over = found.these_tasks.difference, looks.difference
    if difference.estimate is None or not looks.taken:
        return difference
    if looks.ended is not None:
        if over is None or over.low is None:
            return difference
        return replace(difference, low=over.low, high=over.high, method="stage-wise")
    assert scheme.declared is not None
    bound = float(normal_bounds(design_of(scheme.declared, scheme.planned_reps))[len(looks.taken) - 1])
    four = counted(columns, scheme).arms(*scheme.pair(found))
    repeated = stratified_miettinen_nurminen(*four, level=float(2 * special.ndtr(bound) - 1))
    return replace(difference, low=repeated.low, high=repeated.high, method="repeated")


def _primary(found: Contrast, looks: LooksFinding, difference: Interval) -> Contrast:
    on_these = found.these_tasks
    method = "exact group-sequential, mid-p, stage-wise" if looks.stagewise else "sequential p"
    reason = None
    if looks.p_value is None:
        reason = NO_LOOK.format(block=looks.planned[0], blocks=looks.planned[-1])
    last = looks.taken[-1] if looks.taken else None
    direction = 0 if last is None else side(last.total - last.mean)
    test = StratifiedTest(
        looks.p_value,
        None if last is None else last.total,
        method,
        n_informative=on_these.test.n_informative,
        attainable_p=on_these.test.attainable_p,
        reason=reason,
        direction=direction,
    )
    return replace(
        found,
        these_tasks=replace(
            on_these,
            test=test,
            difference=difference,
            odds_ratio=looks.odds_ratio or on_these.odds_ratio,
            conflict=direction * side(difference.estimate) < 0,
            agrees=agree(test, difference, 1 - difference.level),
        ),
    )


def _between(scheme: Scheme, columns: Columns, a: int, b: int, first: int, last: int) -> FourCounts:
    """Counts of two conditions in the blocks first … last − 1, shape (tasks,)."""
    here = columns.valid & (columns.block >= first) & (columns.block < last)

    def per_task(condition: int, *, passed: bool) -> Integers:
        which = here & (columns.condition == condition) & (columns.passed if passed else True)
        return np.bincount(columns.task[which], minlength=len(scheme.tasks))

    return (
        per_task(a, passed=True),
        per_task(a, passed=False),
        per_task(b, passed=True),
        per_task(b, passed=False),
    )
