"""A declared metric: its planned power beside that of simulated campaigns. Cheaper and not worse at
looks: its size where one part holds and the other does not, and its power beside the plan's.

`$TRIALFLEET_BENCH_CAMPAIGNS` chooses another number of them than 1,000.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from unittest import mock

import numpy as np

from tests.bench.figure import Figure
from trialfleet_designs.joint.planning import plan_joint
from trialfleet_designs.metric import effort
from trialfleet_designs.metric.planning import plan_metric
from trialfleet_designs.power.effort import Effort
from trialfleet_designs.protocol import PowerQuestion, SeenAtLook
from trialfleet_designs.registry import find_design
from trialfleet_ledger.designs.looks import Decision, StageCounts, StopRule
from trialfleet_ledger.designs.metric import MetricPrimary, MetricScale
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_statistics.estimates import Floats, floats
from trialfleet_statistics.power import KnownTasks
from trialfleet_statistics.sequential import MeanStage, permute_means

CAMPAIGNS = int(os.environ.get("TRIALFLEET_BENCH_CAMPAIGNS", "1000"))
PATHS = 1_000
SIDES = {"treatment": "x", "control": "y"}
NEAR = 0.03  # of a normal limit, beside permutations of a few values
RATE = 0.5
FIXED: tuple[tuple[MetricScale, int, int, float], ...] = (
    ("ratio", 8, 10, 0.6),
    ("ratio", 4, 20, 1.0),
    ("ratio", 12, 5, 0.6),
    ("difference", 8, 10, 0.6),
    ("difference", 12, 25, 1.0),
)
LOOKED = ((8, 10, 0.6, 5), (4, 20, 1.0, 4), (12, 25, 1.0, 5))  # tasks, reps, variation, looks
JOINT = (8, 24, 0.6, 3)
BORDERS = ((-0.1, 0.5), (0.2, 1.0), (-0.1, 1.0))  # differences of rates and ratios: no yes is right
YES = ((0.0, 0.8), (0.0, 0.7), (-0.05, 0.7))


def measure() -> list[Figure]:
    with mock.patch.object(effort, "AT_LOOKS", PATHS):
        return [*_fixed(), *_looked(), *_joint()]


def _fixed() -> Iterator[Figure]:
    for seed, (scale, tasks, reps, cv) in enumerate(FIXED):
        declared, rng = MetricPrimary(metric="cost_usd", scale=scale, **SIDES), np.random.default_rng(seed)
        found = sum(_shown_at_the_end(rng, scale, tasks, reps, cv) for _ in range(CAMPAIGNS)) / CAMPAIGNS
        planned = plan_metric(declared, _question(tasks, reps, cv)).rows[0].scenarios
        power = next(one.power for one in planned if one.ratio == 0.8)
        yield _beside(f"{scale} .8, {tasks} × {reps}, variation {cv:g}", found, power)


def _shown_at_the_end(rng: np.random.Generator, scale: MetricScale, tasks: int, reps: int, cv: float) -> bool:
    """Whether one campaign with a fixed end shows it. Of tasks whose means are alike: the variation is theirs."""
    values = [one for _ in range(tasks) for one in (_costs(rng, reps, 0.8, cv), _costs(rng, reps, 1.0, cv))]
    arm, task = np.tile(np.repeat([1, 0], reps), tasks), np.repeat(np.arange(tasks), 2 * reps)
    every = np.concatenate(values)
    stage = MeanStage(np.log(every) if scale == "ratio" else every, arm, task)
    names = [f"t{n}" for n in range(tasks)]
    seed, studentised = int(rng.integers(1 << 40)), scale == "difference"
    return (
        permute_means([stage], names, [0.05], paths=PATHS, seed=seed, studentised=studentised).look(1).crossed < 0
    )


def _looked() -> Iterator[Figure]:
    for seed, (tasks, reps, cv, looks) in enumerate(LOOKED):
        declared = MetricPrimary(metric="cost_usd", stop=StopRule(looks=looks), **SIDES)
        rng = np.random.default_rng([1, seed])
        ended = [_run(rng, declared, tasks, reps, cv, (0.0, 0.8)) for _ in range(CAMPAIGNS)]
        planned = plan_metric(declared, _question(tasks, reps, cv)).rows[0].scenarios
        of = next(one for one in planned if one.ratio == 0.8)
        name = f"ratio .8, {tasks} × {reps}, variation {cv:g}, {looks} looks"
        yield _beside(name, _share(ended, "benefit"), of.power)
        taken = sum(one.blocks for one in ended) / reps / CAMPAIGNS
        yield _beside(f"  {name}: of the trials", taken, of.share)
        null = [_run(rng, declared, tasks, reps, cv, (0.0, 1.0)) for _ in range(CAMPAIGNS)]
        yield _size(f"  {name}: size", 1 - _share(null, "futility") - _share(null, "end"))


def _joint() -> Iterator[Figure]:
    tasks, reps, cv, looks = JOINT
    declared = QuestionPrimary(
        question="cheaper_and_not_worse", margin=0.1, stop=StopRule(looks=looks), metric="cost_usd", **SIDES
    )
    rng = np.random.default_rng(3)
    for truth in BORDERS:
        ended = [_run(rng, declared, tasks, reps, cv, truth) for _ in range(CAMPAIGNS)]
        name = f"cheaper and not worse, {tasks} × {reps}, {looks} looks, truth {_name(truth)}: size"
        yield _size(name, _share(ended, "shown"))
    planned = plan_joint(declared, _question(tasks, reps, cv)).scenarios
    for truth in YES:
        ended = [_run(rng, declared, tasks, reps, cv, truth) for _ in range(CAMPAIGNS)]
        power = next(one.power for one in planned if (one.difference, one.ratio) == truth)
        yield _beside(f"  both shown, truth {_name(truth)}", _share(ended, "shown"), power)


def _name(truth: tuple[float, float]) -> str:
    return f"{100 * truth[0]:+g} points, × {truth[1]:g}"


def _run(
    rng: np.random.Generator,
    declared: MetricPrimary | QuestionPrimary,
    tasks: int,
    reps: int,
    cv: float,
    truth: tuple[float, float],
) -> Decision:
    """The last decision of one campaign, taken as a controller takes it."""
    assert declared.stop is not None
    taken: list[Decision] = []
    first, seed = 0, int(rng.integers(1 << 40))
    for block in declared.stop.blocks(reps):
        stage = tuple(_counted(rng, f"t{n}", block - first, cv, truth) for n in range(tasks))
        seen = SeenAtLook(reps, taken, stage, (), ("x", "y"), seed)
        result = find_design(declared).decide(declared, seen)
        number, first = len(taken) + 1, block
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
        if taken[-1].stops:
            break
    return taken[-1]


def _counted(rng: np.random.Generator, task: str, reps: int, cv: float, truth: tuple[float, float]) -> StageCounts:
    difference, ratio = truth
    return StageCounts(
        task=task,
        treatment_passed=int(rng.binomial(reps, RATE + difference)),
        treatment_valid=reps,
        control_passed=int(rng.binomial(reps, RATE)),
        control_valid=reps,
        treatment_values=tuple(_costs(rng, reps, ratio, cv).tolist()),
        control_values=tuple(_costs(rng, reps, 1.0, cv).tolist()),
    )


def _costs(rng: np.random.Generator, reps: int, ratio: float, cv: float) -> Floats:
    """Log-normal."""
    return floats(ratio * np.exp(math.sqrt(math.log1p(cv**2)) * rng.normal(size=reps)))


def _question(tasks: int, reps: int, cv: float) -> PowerQuestion:
    wanted = Effort(0.8, 0.05, 4_000, 1)
    return PowerQuestion("bench", KnownTasks(np.full(tasks, RATE)), "alike", (reps,), None, wanted, cv)


def _share(ended: list[Decision], verdict: str) -> float:
    return sum(one.result.verdict == verdict for one in ended) / len(ended)


def _beside(name: str, simulated: float, planned: float) -> Figure:
    error = 2 * math.sqrt(simulated * (1 - simulated) / CAMPAIGNS)
    note = f"plan {planned:.3f}, simulated {simulated:.3f} (N = {CAMPAIGNS:,})"
    return Figure(f"{name}: plan less simulation", abs(planned - simulated), "", NEAR + error, note)


def _size(name: str, rejected: float) -> Figure:
    return Figure(name, rejected, "", 0.05 + 2 * math.sqrt(0.05 * 0.95 / CAMPAIGNS), f"N = {CAMPAIGNS:,}")
