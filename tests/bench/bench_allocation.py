"""Saturated tasks left out at a look: false rejections where trials are lost unequally, and the estimates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from tests.bench.figure import Figure
from tests.support.task_rates import control_rates
from trialfleet_statistics.estimates import Floats, Integers
from trialfleet_statistics.power import shifted
from trialfleet_statistics.sequential import (
    SequentialDesign,
    SequentialLook,
    stage,
    stagewise_difference,
)
from trialfleet_statistics.sequential.exact import Walk
from trialfleet_statistics.sequential.stages import UNIT

DESIGN = SequentialDesign.of(25)
DROP = 5
SIZES, ESTIMATES = 3_000, 400
KEPT = (0.9, 0.6)  # of the trials of each arm, the others are lost
EFFECT = 0.084  # of 80 % power of one test at the end, 12 × 25


@dataclass(frozen=True, eq=False)
class Ended:
    """A campaign's looks, and its counts of passes and valid trials up to the last, shape (4, tasks)."""

    looks: list[SequentialLook]
    counts: Integers


def measure() -> list[Figure]:
    return [*_sizes(), *_estimates()]


def _sizes() -> Iterator[Figure]:
    error = 3 * math.sqrt(0.05 * 0.95 / SIZES)
    for name, icc in (("Beta(.6,.6)", 1 / 2.2), ("Beta(.3,.3)", 1 / 1.6)):
        rates = control_rates(12, 0.5, icc)
        rejected = fmean(one.looks[-1].crossed != 0 for one in _campaigns(rates, rates, KEPT, SIZES))
        note = f"12 × 25, 10% of one arm and 40% of the other lost, {SIZES:,} campaigns"
        yield Figure(f"size, saturated tasks left out, {name}", rejected, "", 0.05 + error, note, 0.04 - error)


def _estimates() -> Iterator[Figure]:
    control = control_rates(12, 0.5, 1 / 2.2)
    note = f"12 × 25, true difference {EFFECT}, {ESTIMATES:,} campaigns"
    for name, treated, truth in (("effect", shifted(control, EFFECT), EFFECT), ("nothing", control, 0.0)):
        ended = list(_campaigns(treated, control, (1.0, 1.0), ESTIMATES))
        found = [stagewise_difference(one.looks, *one.counts) for one in ended]
        raw = fmean(float((x_a / n_a - x_b / n_b).mean()) for x_a, n_a, x_b, n_b in (one.counts for one in ended))
        median = fmean(one.estimate or 0.0 for one in found)
        covered = fmean((one.low or 0.0) <= truth <= (one.high or 0.0) for one in found)
        yield Figure(f"{name}: raw difference, mean", raw, "", note=note)
        yield Figure(f"{name}: median-unbiased difference, mean", median, "", note=note)
        yield Figure(f"{name}: stage-wise limits cover", covered, "", note=note, floor=0.93)


def _campaigns(treated: Floats, control: Floats, kept: tuple[float, float], campaigns: int) -> Iterator[Ended]:
    rng = np.random.default_rng(23)
    return (_campaign(rng, treated, control, kept) for _ in range(campaigns))


def _campaign(rng: np.random.Generator, treated: Floats, control: Floats, kept: tuple[float, float]) -> Ended:
    tasks = treated.size
    going, counts = np.ones(tasks, dtype=bool), np.zeros((4, tasks), dtype=np.int64)
    looks: list[SequentialLook] = []
    walk = Walk(DESIGN, UNIT if kept == (1.0, 1.0) else 1)
    for number, blocks in enumerate(DESIGN.looks, start=1):
        length, dropped = DESIGN.stage(number), int((~going).sum())
        n_a, n_b = (rng.binomial(length * going, share) for share in kept)
        added = np.array([rng.binomial(n_a, treated), n_a, rng.binomial(n_b, control), n_b])
        counts = counts + added
        looks.append(walk.look(stage(*added, blocks=length, dropped=dropped)))
        if looks[-1].crossed or blocks == DESIGN.blocks:
            return Ended(looks, counts)
        if blocks == DROP:
            passed, valid = counts[0] + counts[2], counts[1] + counts[3]
            going = (valid == 0) | ((passed > 0) & (passed < valid))
    raise ValueError("no look")
