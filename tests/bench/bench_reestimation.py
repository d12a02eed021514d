"""Reps that are re-estimated at a look: false rejections, power, and the reps that come of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from tests.bench.bench_looks import SETTINGS, Setting
from tests.bench.figure import Figure
from trialfleet_ledger.designs.looks import Reestimation, StopRule
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.power import shifted
from trialfleet_statistics.sequential import SequentialDesign, reestimated_reps, stage
from trialfleet_statistics.sequential.exact import Walk
from trialfleet_statistics.sequential.stages import UNIT

NULL, EFFECT = 4_000, 1_000
CAP = 2.4  # of the planned reps


@dataclass(frozen=True)
class Ended:
    crossed: int
    reps: int


def measure() -> list[Figure]:
    """The goals allow for three Monte Carlo standard errors of the worst of ten settings."""
    nothing = [_rejected(_campaigns(one, 0.0, NULL)) for one in SETTINGS]
    effects = [_campaigns(one, one.effect, EFFECT) for one in SETTINGS]
    found = [_rejected(some) for some in effects]
    reps = [
        fmean(one.reps for one in some) / setting.reps for setting, some in zip(SETTINGS, effects, strict=True)
    ]
    error = 3 * math.sqrt(0.05 * 0.95 / NULL)
    note = f"ten settings, re-estimated at the second of five looks, futility ignored, {NULL:,} campaigns each"
    power = f"{EFFECT:,} campaigns each at the effect of 80% power of one test at the end of the plan"
    return [
        Figure("size with re-estimated reps: most", max(nothing), "", 0.055 + error, note),
        Figure("size with re-estimated reps: mean", fmean(nothing), "", 0.055, note, 0.040),
        Figure("size with re-estimated reps: least", min(nothing), "", note=note, floor=0.040 - error),
        Figure("power with re-estimated reps: least", min(found), "", note=power, floor=0.70),
        Figure("power with re-estimated reps: most", max(found), "", note=power),
        Figure("re-estimated reps, of the planned ones: least", min(reps), "", note=power),
        Figure("re-estimated reps, of the planned ones: most", max(reps), "", note=power),
    ]


def _rejected(campaigns: list[Ended]) -> float:
    return fmean(one.crossed != 0 for one in campaigns)


def _campaigns(one: Setting, effect: float, campaigns: int) -> list[Ended]:
    rng, treated = np.random.default_rng(29), shifted(one.rates, effect)
    at = StopRule().blocks(one.reps)
    rule = StopRule(reestimate=Reestimation(after=at[1], cap=round(CAP * one.reps)))
    return [_campaign(rng, treated, one, rule) for _ in range(campaigns)]


def _campaign(rng: np.random.Generator, treated: Floats, one: Setting, rule: StopRule) -> Ended:
    assert rule.reestimate is not None
    after, cap = rule.reestimate.after, rule.reestimate.cap
    blocks = [rule.blocks(one.reps)[0]]
    blocks.append(after - blocks[0])
    passes = [(rng.binomial(length, treated), rng.binomial(length, one.rates)) for length in blocks]
    both = sum(a + b for a, b in passes)
    reps = reestimated_reps(
        both, np.full(one.tasks, 2 * after), effect=one.effect, alpha=0.05, after=after, cap=cap
    )
    design = SequentialDesign(rule.blocks(one.reps, reps), revised=(2, one.reps))
    walk = Walk(design, UNIT)
    for number in range(1, len(design.looks) + 1):
        length = design.stage(number)
        a, b = (
            passes[number - 1] if number <= 2 else (rng.binomial(length, treated), rng.binomial(length, one.rates))
        )
        n = np.full(one.tasks, length)
        look = walk.look(stage(a, n, b, n, blocks=length))
        if look.crossed:
            return Ended(look.crossed, reps)
    return Ended(0, reps)
