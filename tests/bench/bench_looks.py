"""Declared looks over ten designs: false rejections, power, and the trials that they take. What rules of futility
find and save, of either sign, over three."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache
from statistics import fmean

import numpy as np

from tests.bench.figure import Figure
from tests.support.task_rates import control_rates
from trialfleet_analysis.power_cli.asking import LOOKS_SIMULATIONS
from trialfleet_designs.power.stops import Stopping, looks_plan
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import StopRule
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.power import KnownTasks, shifted
from trialfleet_statistics.sequential import (
    Futility,
    SequentialDesign,
    SequentialPower,
    SequentialStage,
    monitor,
    sequential_power,
    stage,
)

NULL, EFFECT = 20_000, 2_000
RULE = Futility(predictive=0.05)
FOR_A_GAIN = Futility(predictive=0.05, side="gain")
OFFERED = Futility(predictive=0.1)
DIFFERENCES = (-0.2, -0.15, -0.1, -0.05, 0.05, 0.1, 0.15, 0.2)
SIZES = ((7, 25), (12, 25), (20, 10), (50, 5), (20, 50))
EFFECTS = {  # points, of 80 % power of one test at the end
    (7, 25): (10.9, 14.6),
    (12, 25): (8.4, 11.3),
    (20, 10): (10.2, 13.7),
    (50, 5): (9.2, 12.3),
    (20, 50): (4.6, 6.2),
}


@dataclass(frozen=True)
class Setting:
    tasks: int
    reps: int
    alike: bool
    effect: float

    @property
    def rates(self) -> Floats:
        """Quantiles of Beta(.6, .6), whose ICC is 1 / 2.2; or all .5."""
        return np.full(self.tasks, 0.5) if self.alike else control_rates(self.tasks, 0.5, 1 / 2.2)


SETTINGS = [
    Setting(tasks, reps, alike, EFFECTS[tasks, reps][alike] / 100)
    for tasks, reps in SIZES
    for alike in (False, True)
]


GIVEN_UP = [Setting(tasks, reps, alike=False, effect=0.1) for tasks, reps in ((7, 10), (8, 25), (12, 25))]


def measure() -> list[Figure]:
    return [
        *_sizes(),
        *_savings(RULE, "both directions", 1.09, (0.82, 0.82, 0.03)),  # 5 reps stay 5
        *_savings(FOR_A_GAIN, "a gain alone", 1.13, (0.80, 0.58, 0.02)),
        *_futility(RULE, 0.76, 0.97),
        *_futility(OFFERED, 0.67, 0.93),
        *_harm(),
        *_saturated(),
        _time(),
        _planning(),
    ]


def _sizes() -> list[Figure]:
    """The Monte Carlo standard error of one is .0015."""
    ignored = [_power(one, SequentialDesign.of(one.reps), 0.0, None, NULL).power for one in SETTINGS]
    obeyed = [_power(one, SequentialDesign.of(one.reps), 0.0, RULE, NULL).power for one in SETTINGS]
    note = f"ten settings, {NULL:,} campaigns each"
    return [
        Figure("size, futility ignored: most", max(ignored), "", 0.055, note),
        Figure("size, futility ignored: least", min(ignored), "", note=note, floor=0.040),
        Figure("size, futility obeyed: most", max(obeyed), "", 0.055, note),
    ]


def _savings(rule: Futility, looked_for: str, inflation: float, goals: tuple[float, float, float]) -> list[Figure]:
    """Reps × inflation, which pays for looks and rule, against one test at the end of the plan without."""
    taken: list[float] = []
    nothing: list[float] = []
    lost: list[float] = []
    for one in SETTINGS:
        longer = SequentialDesign.of(round(inflation * one.reps))
        at = _power(one, longer, one.effect, rule, EFFECT)
        taken.append(at.share * longer.blocks / one.reps)
        nothing.append(_power(one, longer, 0.0, rule, EFFECT).share * longer.blocks / one.reps)
        once = SequentialDesign((one.reps,))
        lost.append(_power(one, once, one.effect, None, EFFECT).power - at.power)
    note = f"futility for {looked_for}, reps × {inflation}, mean of ten settings, {EFFECT:,} campaigns each"
    names = (
        "trials at the planned effect, of the fixed design's",
        "trials where nothing is there, of the fixed design's",
        "power lost to the fixed design",
    )
    figures = zip(names, (taken, nothing, lost), goals, strict=True)
    return [Figure(f"{name}: {looked_for}", fmean(each), "", goal, note) for name, each, goal in figures]


def _futility(rule: Futility, most: float, least: float) -> list[Figure]:
    """Trials where nothing is there, and the least part of the power that the rule leaves, at the same reps, with
    two Monte Carlo standard errors. The same campaigns with and without the rule: only those that it stops
    differ."""
    shares = [_power(one, SequentialDesign.of(one.reps), 0.0, rule, EFFECT).share for one in GIVEN_UP]
    kept = [_power_left(one, effect, rule) for one in GIVEN_UP for effect in DIFFERENCES]
    name = f"power < {rule.predictive} of both directions"
    note = f"7 × 10, 8 × 25 and 12 × 25, {EFFECT:,} campaigns each"
    return [
        Figure(f"{name}: trials where nothing is there, most", max(shares), "", most, note),
        Figure(
            f"{name}: part of the power that is left, least, + 2 standard errors",
            min(kept),
            "",
            note=note,
            floor=least,
        ),
    ]


def _power_left(one: Setting, effect: float, rule: Futility) -> float:
    design = SequentialDesign.of(one.reps)
    without = _power(one, design, effect, None, EFFECT).power
    left = _power(one, design, effect, rule, EFFECT).power / without
    return left + 2 * math.sqrt(max(0.0, 1 - left) / (without * EFFECT))


def _harm() -> list[Figure]:
    """At a true difference of −20 points: how often a harm is found, and how often the campaign is given up."""
    both = [_power(one, SequentialDesign.of(one.reps), -0.2, RULE, EFFECT) for one in GIVEN_UP]
    note = f"7 × 10, 8 × 25 and 12 × 25, {EFFECT:,} campaigns each"
    return [
        Figure("harm of 20 points found, least", min(float(one.harmed.sum()) for one in both), "", None, note),
        Figure("harm of 20 points given up, most", max(float(one.futile.sum()) for one in both), "", 0.10, note),
    ]


def _saturated() -> list[Figure]:
    """Saturated tasks left out after block 5 too, at the same reps."""
    found: list[Figure] = []
    for tasks, effect in ((12, 0.084), (20, 0.066)):
        one, design = Setting(tasks, 25, alike=False, effect=effect), SequentialDesign.of(25)
        dropped = _power(one, design, effect, RULE, EFFECT, drop=5)
        lost = _power(one, SequentialDesign((25,)), effect, None, EFFECT).power - dropped.power
        name = f"{tasks} × 25, saturated tasks left out: trials, of the fixed design's"
        found.append(Figure(name, dropped.share, "", 0.62, f"power lost: {lost:.3f}"))
    return found


@cache
def _treated(one: Setting, effect: float) -> tuple[float, ...]:
    return tuple(shifted(one.rates, effect).tolist())


def _power(
    one: Setting, design: SequentialDesign, effect: float, rule: Futility | None, campaigns: int, drop: int = 0
) -> SequentialPower:
    treated = np.array(_treated(one, effect))
    return sequential_power(
        treated, one.rates, design, futility=rule, drop_saturated=drop, simulations=campaigns, seed=11
    )


def _time() -> Figure:
    """The best of three; a tenth of the trials is lost, so that passes weigh unequally."""
    rng = np.random.default_rng(3)
    stages: list[SequentialStage] = []
    for _ in range(5):
        n = rng.binomial(10, 0.9, (2, 50))
        x = rng.binomial(n, 0.5)
        stages.append(stage(x[0], n[0], x[1], n[1], blocks=10))
    taken: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        monitor(SequentialDesign.of(50), stages)
        taken.append(time.perf_counter() - began)
    return Figure("the last look of 50 tasks × 50 reps", min(taken), "s", 1.0)


def _planning() -> Figure:
    """What `trialfleet power` simulates for a campaign with looks."""
    began, core = time.perf_counter(), time.process_time()
    primary = Primary(treatment="a", control="b", effect=0.1, stop=StopRule())
    looks_plan(Stopping(primary, KnownTasks(control_rates(12, 0.5, 0.4)), 25, 0.1, None, LOOKS_SIMULATIONS, 1))
    wall, note = time.perf_counter() - began, f"{time.process_time() - core:.1f} core s"
    return Figure("planning simulation of 12 tasks × 25 reps, five looks", wall, "s", 10, note)
