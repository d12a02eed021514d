"""The power that is planned for a declared metric beside that of simulated campaigns, small ones, whose labels are
permuted within task and stage, all campaigns at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trialfleet_designs.metric.looks import design_of_metric
from trialfleet_designs.metric.planning import plan_metric
from trialfleet_designs.power.effort import Effort
from trialfleet_designs.protocol import PowerQuestion
from trialfleet_ledger.designs.looks import StopRule
from trialfleet_ledger.designs.metric import MetricPrimary
from trialfleet_statistics.estimates import Floats, Integers, floats
from trialfleet_statistics.power import KnownTasks
from trialfleet_statistics.sequential import SequentialDesign

CV, NEAR = 0.6, 0.02  # NEAR: of a t bound, beside permutations of few values


def planned(tasks: int, reps: int, ratio: float, stop: StopRule | None) -> tuple[float, SequentialDesign]:
    declared = MetricPrimary(metric="cost_usd", treatment="x", control="y", effect=ratio, stop=stop)
    effort = Effort(0.8, 0.05, 100, 1)
    question = PowerQuestion("c", KnownTasks(np.full(tasks, 0.5)), "alike", (reps,), None, effort, CV)
    [row] = plan_metric(declared, question).rows
    [power] = [one.power for one in row.scenarios if one.ratio == ratio]
    return power, design_of_metric(declared, reps)


def simulated(tasks: int, design: SequentialDesign, ratio: float, campaigns: int, paths: int) -> float:
    """The share of campaigns of log-normal metrics that finds the treatment to take less."""
    observed, permuted = permute_logs(tasks, design, ratio, (campaigns, paths))
    going, found = np.ones(permuted.shape[1:], dtype=np.bool_), np.zeros(campaigns, dtype=np.int64)
    crossed: dict[int, Integers] = {1: found * 0, -1: found * 0}
    for seen, at_look, level in zip(observed, permuted, design.levels() / 2, strict=True):
        most, left = int(level * (paths + 1) * (1 + 1e-7)), going.copy()
        for side, before in crossed.items():
            values = np.where(going, side * at_look, -np.inf)
            as_far = (values >= side * seen[:, None] - 1e-6).sum(axis=1)
            found = np.where((found == 0) & (before + as_far + 1 <= most), side, found)
            place = np.maximum(most - 1 - before, 0)[:, None]
            highest = -np.sort(-values, axis=1)
            beyond = values > np.take_along_axis(highest, place, axis=1)
            left &= ~beyond
            crossed[side] = before + beyond.sum(axis=1)
        going = left
    return float(np.mean(found < 0))


def permute_logs(
    tasks: int, design: SequentialDesign, ratio: float, shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Sums over tasks of the differences of mean logs: as observed, shape (looks, campaigns), and permuted, shape
    (looks, campaigns, paths)."""
    rng, looks, sd = np.random.default_rng(1), len(design.looks), math.sqrt(math.log1p(CV**2))
    observed, permuted = np.zeros((looks, shape[0])), np.zeros((looks, *shape))
    for _ in range(tasks):
        for number in range(looks):
            blocks = design.stage(number + 1)
            arm = np.repeat([1.0, -1.0], blocks)
            values = sd * rng.normal(size=(shape[0], arm.size)) + math.log(ratio) * (arm > 0)
            labels = rng.permuted(np.broadcast_to(arm, (shape[1], arm.size)), axis=1)
            observed[number:] += values @ arm
            permuted[number:] += values @ labels.T
    return floats(observed), floats(permuted)


@pytest.mark.parametrize(
    ("tasks", "reps", "ratio"),
    [
        *((4, 2, 0.5), (4, 3, 0.6), (4, 5, 0.7), (6, 1, 0.5), (6, 2, 0.6)),
        *((8, 2, 0.6), (8, 3, 0.7), (12, 1, 0.6), (12, 2, 0.7), (12, 5, 0.8)),
    ],
)
def test_power_of_a_fixed_end_is_that_of_the_permutation_test(tasks: int, reps: int, ratio: float) -> None:
    power, design = planned(tasks, reps, ratio, None)
    found = simulated(tasks, design, ratio, 1_500, 999)
    assert power == pytest.approx(found, abs=NEAR + 2 * math.sqrt(found * (1 - found) / 1_500))


@pytest.mark.parametrize(
    ("tasks", "reps", "looks", "ratio"),
    [(4, 4, (2, 4), 0.6), (6, 3, (1, 2, 3), 0.7), (8, 5, (2, 5), 0.7), (5, 3, (1, 3), 0.6), (12, 2, (1, 2), 0.7)],
)
def test_power_at_looks_is_that_of_the_permutation_test(
    tasks: int, reps: int, looks: tuple[int, ...], ratio: float
) -> None:
    power, design = planned(tasks, reps, ratio, StopRule(looks=looks, futility="none"))
    found = simulated(tasks, design, ratio, 600, 1_999)
    assert power == pytest.approx(found, abs=NEAR + 2 * math.sqrt(found * (1 - found) / 600))
