"""Campaigns drawn at random up to their sentences: unequal losses, arms, doses, looks, bets. No store, no
process."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.unit.analysis.columns_fixture import laid_out, scheme
from tests.unit.analysis.report_fixture import made
from trialfleet_analysis.analysis_plan.analyse import analyse
from trialfleet_analysis.rates import Bounded, condition_results
from trialfleet_analysis.report.assemble import worded
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.tables.rows import TaskRow, Use
from trialfleet_designs.comparison.columns import Columns, Scheme, counted, per_cell, trials_run
from trialfleet_designs.protocol import SeenAtLook
from trialfleet_designs.registry import find_design
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import AnytimeRule, Decision, StageCounts, StopRule
from trialfleet_ledger.designs.metric import MetricPrimary
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_statistics.estimates import Floats

MARGINS = ("question", "looked question", "joint", "looked joint")
METRICS = ("metric", "looked metric", "joint", "looked joint")
KINDS = ("fixed", "fixed", "looks", "bets", "trend", *MARGINS, *METRICS[:2])
LOOKED = ("looks", "bets", *(kind for kind in KINDS if kind.startswith("looked")))
LOSS = (0.0, 0.0, 0.0, 0.1, 0.32, 0.68, 1.0)
ODD = (
    *("one_task", "all_pass", "all_fail", "first_wins", "first_loses", "ties", "arm_lost", "third_lost"),
    *("one_left", "fewer_reps", "same_cost", "free", "no_cost", "withdrawn", "extended", "open", "retried"),
)
NAMES = ("intent_layer", "none", "placebo", "flat_llm")


@dataclass(frozen=True)
class DrawnCampaign:
    """`columns`: in its blocks in use; `ran`: how many trials these are, over all tasks and conditions."""

    kind: str
    scheme: Scheme
    columns: Columns
    report: Report

    @property
    def ran(self) -> int:
        return int(self.columns.task.size)


@dataclass(frozen=True)
class DrawnTrials:
    """What every trial of a campaign would give, shape (tasks, conditions, reps), before looks end it. `passed`:
    NaN: lost. `odd`: of a shape that chance hardly draws; `turn`: varies with the seed within a kind."""

    kind: str
    odd: str | None
    turn: int
    fixed: Scheme
    passed: Floats
    costs: Floats


def draw_trials(seed: int, rng: np.random.Generator, *, largest: int = 5, kind: str | None = None) -> DrawnTrials:
    """As `draw_campaign` has them. `kind`: None: the seed's; "halving" is that of no seed."""
    draw = random.Random(seed)
    kind, turn = kind or KINDS[seed % len(KINDS)], seed // len(KINDS)
    odd = ODD[turn // 3 % len(ODD)] if turn % 3 == 2 else None
    tasks, reps = 1 if odd == "one_task" else draw.randint(2, largest), draw.randint(3, 2 * largest)
    names = NAMES[: draw.choice((2, 3)) if kind != "trend" else draw.choice((3, 4))]
    if kind == "halving":
        names = (*NAMES, "preamble_only")
    passed = _outcomes(rng, draw, tasks, len(names), reps)
    fixed = replace(_scheme(kind, tasks, names, reps, draw), planned_reps=reps, seed=seed)
    costs = _costs(rng, draw, passed) if kind in METRICS else np.where(np.isfinite(passed), 0.5, np.nan)
    passed = _bend(passed, odd, rng)
    costs = np.where(np.isfinite(passed), _reprice(costs, odd, rng), np.nan)
    return DrawnTrials(kind, odd, turn, _vary(fixed, turn), passed, costs)


def draw_campaign(seed: int, *, largest: int = 5) -> DrawnCampaign:
    """Of 2 to `largest` tasks and 3 to 2 × `largest` reps; every third one of a shape that chance hardly draws.
    Same seed, same campaign."""
    rng = np.random.default_rng(seed)
    drawn = draw_trials(seed, rng, largest=largest)
    kind, odd, turn, passed, costs = drawn.kind, drawn.odd, drawn.turn, drawn.passed, drawn.costs
    fixed, reps, names = drawn.fixed, drawn.fixed.planned_reps, drawn.fixed.conditions
    decisions = _decisions(fixed, passed, costs) if kind in LOOKED else ()
    if odd == "open":
        decisions = decisions[:1]
    fixed = _open(replace(fixed, decisions=decisions), odd)
    used = slice(0, decisions[-1].blocks if decisions else reps)
    forged = (passed == 1) & (rng.random(passed.shape) < 0.4) if odd == "withdrawn" else passed > 1
    passed = np.where(forged, 0.0, passed)
    measures = {"turns" if _counts_turns(fixed) else "cost_usd": costs[:, :, used]}
    if turn % 2:  # the first arm paid for what the others read
        measures["uncached_cost_usd"] = costs[:, :, used] * np.linspace(1, 2, len(names))[:, None]
    lost = rng.random(passed.shape) < (0.2 if odd == "retried" else 0)
    columns = laid_out(
        passed[:, :, used], measures=measures, forged=forged[:, :, used], first_missing=lost[:, :, used]
    )
    return DrawnCampaign(kind, fixed, columns, report_of(fixed, columns))


def _bend(passed: Floats, odd: str | None, rng: np.random.Generator) -> Floats:
    """The odd shape's outcomes; NaN: lost."""
    found, arms = passed.copy(), passed.shape[1]
    if odd in ("all_pass", "all_fail"):
        found[np.isfinite(passed)] = odd == "all_pass"
    elif odd in ("first_wins", "first_loses"):
        found[:, 0], found[:, 1:] = (1, 0) if odd == "first_wins" else (0, 1)
    elif odd == "ties":
        found[:] = passed[:, :1]
    elif odd == "arm_lost":
        found[:, rng.integers(2)] = np.nan
    elif odd == "third_lost" and arms > 2:
        found[:, rng.integers(2, arms)] = np.nan
    elif odd in ("one_left", "fewer_reps"):
        found[:, 0, 1 if odd == "one_left" else rng.integers(1, passed.shape[2]) :] = np.nan
    return found


def _reprice(costs: Floats, odd: str | None, rng: np.random.Generator) -> Floats:
    known = np.isfinite(costs)
    if odd == "same_cost":
        return np.where(known, 0.5, np.nan)
    if odd == "free":
        return np.where(known & (rng.random(costs.shape) < 0.5), 0.0, costs)
    return np.full_like(costs, np.nan) if odd == "no_cost" else costs


def _open(fixed: Scheme, odd: str | None) -> Scheme:
    """Given reps after results were seen, or with blocks still to come."""
    if odd == "extended" and not fixed.decisions:
        return replace(fixed, planned_reps=max(1, fixed.reps // 2))
    return replace(fixed, monitored=True) if odd == "open" else fixed


def _counts_turns(fixed: Scheme) -> bool:
    return isinstance(fixed.in_place, MetricPrimary) and fixed.in_place.metric == "turns"


def _vary(fixed: Scheme, turn: int) -> Scheme:
    """Every third metric as a difference of means, every fourth one of turns; contrasts with a fixed end also
    about other tasks, of tasks that come from one repository, from two, or from as many as there are tasks."""
    metric, contrast = fixed.in_place, fixed.declared
    if isinstance(metric, MetricPrimary):
        scale = "difference" if metric.stop is None and turn % 3 == 1 else "ratio"
        named = "turns" if turn % 4 == 3 else "cost_usd"
        fixed = replace(fixed, in_place=metric.model_copy(update={"scale": scale, "metric": named}))
    repositories = tuple(f"host/{n % (1, 2, len(fixed.tasks))[turn % 3]}" for n in range(len(fixed.tasks)))
    if contrast is None or contrast.schedule is not None:
        return replace(fixed, repositories=repositories)
    estimand = ("these_tasks", "tasks_like_these", "other_repositories")[turn // 3 % 3]
    return replace(fixed, repositories=repositories, declared=contrast.model_copy(update={"estimand": estimand}))


def _scheme(kind: str, tasks: int, names: Sequence[str], reps: int, draw: random.Random) -> Scheme:
    if kind == "trend":
        doses = tuple(sorted(draw.sample(range(9), len(names))))
        bare = scheme(tasks, names, reps=reps, declared=False)
        return replace(bare, in_place=TrendPrimary(trend=tuple(names), doses=doses))
    if kind in MARGINS:
        asked = QuestionPrimary(
            question="cheaper_and_not_worse" if "joint" in kind else draw.choice(("not_worse", "equivalent")),
            treatment=names[0],
            control=names[1],
            margin=draw.choice((0.1, 0.3, 0.6)),
            estimand="tasks_like_these" if kind == "question" and draw.random() < 0.3 else "these_tasks",
            stop=StopRule(looks=2) if kind in LOOKED else None,
        )
        return replace(scheme(tasks, names, reps=reps, declared=False), in_place=asked)
    if kind in METRICS:
        looks = StopRule(looks=2) if kind in LOOKED else None
        compared = MetricPrimary(metric="cost_usd", treatment=names[0], control=names[1], stop=looks)
        return replace(scheme(tasks, names, reps=reps, declared=False), in_place=compared)
    stop = {"looks": StopRule(looks=2), "bets": AnytimeRule(anytime="half")}.get(kind)
    primary = Primary(treatment=names[0], control=names[1], effect=0.3, stop=stop, halve=kind == "halving")
    return scheme(tasks, names, reps=reps, primary=primary)


def _outcomes(rng: np.random.Generator, draw: random.Random, tasks: int, arms: int, reps: int) -> Floats:
    """Shape (tasks, arms, reps); NaN: lost. Effects of either sign, on every task or one by one."""
    rates = rng.beta(0.8, 0.8, (tasks, 1)) + draw.choice((0.0, 0.5)) * rng.normal(size=(tasks, arms))
    rates = rates + draw.choice((0.0, 0.0, 0.4, -0.4)) * np.linspace(1, 0, arms)
    passed = (rng.random((tasks, arms, reps)) < np.clip(rates, 0, 1)[:, :, None]).astype(np.float64)
    loss = rng.choice(LOSS, (tasks, arms)) * draw.choice((0, 1, 1))
    passed[rng.random(passed.shape) < loss[:, :, None]] = np.nan
    return passed


def _costs(rng: np.random.Generator, draw: random.Random, passed: Floats) -> Floats:
    """Shape (tasks, arms, reps); NaN: lost, or not reported. Some tasks are dear; effects of either sign."""
    tasks, arms, _ = passed.shape
    dear = rng.normal(0, 1, (tasks, 1, 1)) + draw.choice((0.0, 0.0, 0.7, -0.7)) * np.linspace(1, 0, arms)[:, None]
    costs = np.exp(dear + draw.choice((0.05, 0.6)) * rng.normal(size=passed.shape))
    costs[rng.random(costs.shape) < draw.choice((0.0, 0.05))] = np.nan
    return np.where(np.isfinite(passed), costs, np.nan)


def _decisions(fixed: Scheme, passed: Floats, costs: Floats) -> tuple[Decision, ...]:
    declared, reps = fixed.declaration, passed.shape[2]
    assert declared is not None
    assert declared.schedule is not None
    taken: list[Decision] = []
    first = 0
    for block in declared.schedule.blocks_at(reps, reps, ()):
        stage = tuple(_counted(fixed.tasks[n], passed[n, :2, first:block]) for n in range(len(fixed.tasks)))
        if declared.design in ("metric", "joint"):
            stage = tuple(_valued(one, costs[n, :2, first:block]) for n, one in enumerate(stage))
        result = find_design(declared).decide(
            declared, SeenAtLook(reps, taken, stage, (), fixed.conditions, fixed.seed)
        )
        number = len(taken) + 1
        taken.append(
            Decision(
                number=number,
                at=1.0,
                epoch=1,
                blocks=block,
                stage=stage,
                outcomes="0" * 64,
                amendments=0,
                result=result,
            )
        )
        first = block
        if taken[-1].stops:
            break
    return tuple(taken)


def _counted(task: str, arms: Floats) -> StageCounts:
    treated, control = ((int(np.nansum(arm)), int(np.isfinite(arm).sum())) for arm in arms)
    return StageCounts(
        task=task,
        treatment_passed=treated[0],
        treatment_valid=treated[1],
        control_passed=control[0],
        control_valid=control[1],
    )


def _valued(one: StageCounts, costs: Floats) -> StageCounts:
    treated, control = (tuple(arm[arm > 0].tolist()) for arm in costs)
    return one.model_copy(update={"treatment_values": treated, "control_values": control})


_BLANK = made(1, 2)


def report_of(fixed: Scheme, columns: Columns) -> Report:
    """As `assemble` makes it of a campaign's tables, without what belongs to a store."""
    analysis = analyse(fixed, columns, ran=trials_run(columns, fixed))
    shown = columns.of_tasks(analysis.compared.mask_among(fixed.tasks))
    bounded = dict.fromkeys(fixed.conditions, Bounded(0, None, None))
    bare = replace(
        _BLANK,
        analysis=analysis,
        tasks=tuple(TaskRow(task, Use.PRIMARY, None, True, "failing_test") for task in fixed.tasks),
        compared=analysis.compared.tasks,
        left_out=(),
        conditions=condition_results(fixed, counted(shown, fixed), per_cell(shown, fixed, ~shown.valid), bounded),
        cells=(),
        quarantined=(),
        loss_rates=(),
    )
    return worded(bare)
