"""The declared contrast of a campaign that declared looks: what each decided, and the p and the limits that
allow for them. The counts are those of the ledger's decisions, without what was withdrawn since (`recount`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trialfleet_designs.comparison.columns import FourCounts, Scheme, TrialsRun, TrialsTaken
from trialfleet_designs.comparison.plain import plain_interval
from trialfleet_designs.monitoring import design_of, stages_of
from trialfleet_ledger.designs.looks import (
    Decision,
    LookResult,
    StageCounts,
    StopRule,
    Verdict,
    dropped_tasks,
    revised_reps,
    stopped,
)
from trialfleet_statistics.estimates import Interval
from trialfleet_statistics.sequential import (
    least_stagewise_p,
    monitor,
    sequential_p,
    stagewise_difference,
    stagewise_odds_ratio,
)


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
    """`planned`: the blocks after which is looked; `levels`: the two-sided p at which each decides. `ended`: why
    the campaign is over, None while it goes on. `stagewise`: whether `p_value` is by stage-wise ordering, of a
    campaign that crossed or reached its end; else, or where data of a look were withdrawn since, it is the
    sequential p, which may stand at any declared look. `least_p`: the least stage-wise p that the totals of each
    task at each look allow, None where p is another. `difference`: where it is stage-wise, the median estimate
    with stage-wise limits; the odds ratio likewise; else None. `unbiased`: whether these medians are unbiased: it
    crossed, or no rule of futility was obeyed.
    `futility`: the directions that the rule looks for (None: no rule); `given_up`: why it ended the campaign, a
    clause (None: it did not). `trials` of `planned_trials`: all that ran for it, of every task and condition, up
    to the look that ended it. `dropped`: tasks that were left out as saturated, each with the blocks that it is
    part of; `drop_after`: the block after which they were to be, 0 where that was not declared. `revised_from`:
    the reps that were planned, once a look has re-estimated them: `planned` and `levels` are then of the revised
    plan; `reestimate_after`: the block of that look, 0 where none was declared."""

    planned: tuple[int, ...]
    levels: tuple[float, ...]
    spending: str
    taken: tuple[LookFinding, ...]
    ended: Verdict | None
    p_value: float | None
    least_p: float | None
    stagewise: bool
    unbiased: bool
    futility: Literal["both", "gain"] | None
    given_up: str | None
    difference: Interval | None
    odds_ratio: Interval | None
    trials: TrialsTaken
    planned_trials: int
    extended: bool
    revised_from: int | None
    reestimate_after: int
    drop_after: int
    dropped: Mapping[str, int]


def looks_finding(scheme: Scheme, ran: TrialsRun, *, withdrawn: bool = False) -> LooksFinding | None:
    """None where no looks are declared, or one after every block. `withdrawn`: data that a look counted no longer
    count, and are in none of the scheme's decisions: its looks were not those of this test."""
    declared, decisions = scheme.declared, scheme.decisions
    if declared is None or not isinstance(declared.stop, StopRule):
        return None
    design = design_of(declared, scheme.planned_reps, revised_reps(decisions))
    ended = stopped(decisions)
    if ended is None and len(decisions) == len(design.looks):
        ended = decisions[-1]
    stages = stages_of(design, decisions)
    seen = monitor(design, stages)
    rule = None if declared.stop.futility == "none" else declared.stop.futility
    verdict = None if ended is None else _result(ended).verdict
    stagewise = verdict not in (None, "futility") and not withdrawn
    level = 1 - scheme.alpha
    taken_up = ran.count_up_to(None if ended is None else ended.blocks)
    planned = ran.tasks * len(scheme.conditions) * design.blocks
    return LooksFinding(
        planned=design.looks,
        levels=tuple(design.levels().tolist()),
        spending=design.spending,
        taken=tuple(map(_finding, decisions)),
        ended=verdict,
        p_value=None if not seen else seen[-1].p_value if stagewise else sequential_p(design, stages),
        least_p=least_stagewise_p(design, stages) if stagewise else None,
        stagewise=stagewise,
        unbiased=stagewise and (verdict != "end" or rule is None or not all(one.obeyed for one in decisions)),
        futility=None if rule is None else rule.side,
        given_up=rule.reason if rule is not None and verdict == "futility" else None,
        difference=stagewise_difference(seen, *decided_counts([one.stage for one in decisions])[1], level=level)
        if stagewise
        else None,
        odds_ratio=plain_interval(stagewise_odds_ratio(design, stages, level=level)) if stagewise else None,
        trials=taken_up,
        planned_trials=planned,
        extended=scheme.reps > design.blocks and ended is not None,
        revised_from=None if revised_reps(decisions) is None else scheme.planned_reps,
        reestimate_after=declared.stop.reestimate.after if declared.stop.reestimate is not None else 0,
        drop_after=declared.stop.drop_saturated,
        dropped=dropped_tasks(decisions),
    )


def _result(decision: Decision) -> LookResult:
    assert isinstance(decision.result, LookResult), "this campaign's looks are group-sequential"
    return decision.result


def _finding(decision: Decision) -> LookFinding:
    result = _result(decision)
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


def decided_counts(
    stages: Sequence[Sequence[StageCounts]], among: Collection[str] | None = None
) -> tuple[tuple[str, ...], FourCounts]:
    """The tasks that have valid trials on both sides of the declared contrast up to the last look, as the looks
    counted them, with their counts: shape (tasks,) each. `among`: no other tasks."""
    every = [one for stage in stages for one in stage if among is None or one.task in among]
    summed = {
        task: _summed([one for one in every if one.task == task]) for task in sorted({o.task for o in every})
    }
    used = {task: counts for task, counts in summed.items() if counts[1] and counts[3]}
    four = np.array(list(used.values()), dtype=np.int64).reshape(-1, 4)
    return tuple(used), (four[:, 0], four[:, 1], four[:, 2], four[:, 3])


def _summed(counts: Sequence[StageCounts]) -> tuple[int, int, int, int]:
    return (
        sum(one.treatment_passed for one in counts),
        sum(one.treatment_valid for one in counts),
        sum(one.control_passed for one in counts),
        sum(one.control_valid for one in counts),
    )
