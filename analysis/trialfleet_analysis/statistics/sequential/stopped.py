"""Estimates of a campaign that looks may have stopped: its raw difference is too far from 0 on average."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy import optimize

from trialfleet_analysis.statistics.estimates import Floats, Interval, Tally, floats, strata
from trialfleet_analysis.statistics.intervals.differences import constrained_variance
from trialfleet_analysis.statistics.sequential.design import SequentialDesign
from trialfleet_analysis.statistics.sequential.exact import SequentialLook
from trialfleet_analysis.statistics.sequential.normal import drift_estimate
from trialfleet_analysis.statistics.sequential.recursion import START, StagewiseTails, Unstopped
from trialfleet_analysis.statistics.sequential.stages import SequentialStage, common_divisor

_LARGEST = 40.0  # of a log odds ratio
_NOTHING = "no task could tell the conditions apart"
_PERFECT = "all trials of one condition passed and none of the other: the variance at that difference is 0"


def stagewise_difference(
    design: SequentialDesign,
    look: SequentialLook,
    passes_a: Tally,
    trials_a: Tally,
    passes_b: Tally,
    trials_b: Tally,
    *,
    level: float = 0.95,
) -> Interval:
    """The median-unbiased mean over tasks of the differences of rates, a − b, with stage-wise limits.

    `look`: the one at which the campaign stopped; counts of shape (T,), all up to it. The outcome is as likely
    to lie above as below where the estimate is the truth; limits cover at `level` in the normal limit with the
    constrained variance of Miettinen and Nurminen. With a single look the estimate is the raw difference. It
    halves the bias that stopping gives the raw difference, about. Undefined where no task carries information;
    the limits also where the difference is 1 or −1.
    """
    x_a, n_a, x_b, n_b = (floats(counted) for counted in strata(passes_a, trials_a, passes_b, trials_b))
    method = "stagewise_difference"
    measured = (n_a > 0) & (n_b > 0)
    x_a, n_a, x_b, n_b = x_a[measured], n_a[measured], x_b[measured], n_b[measured]
    n = int((n_a + n_b).sum())
    if look.variance <= 0:
        return Interval(None, None, None, level, n, method, "these_tasks", _NOTHING)
    d = float((x_a / n_a - x_b / n_b).mean())
    wide = math.sqrt(float(constrained_variance(x_a, n_a, x_b, n_b, np.full_like(n_a, d)).sum())) / n_a.size
    narrow = 2 * math.sqrt(look.variance) / look.task_blocks
    root = math.sqrt(look.blocks / design.blocks)
    median = drift_estimate(design, look.number, (look.sum - look.mean) / math.sqrt(look.variance), level=level)
    estimate = max(-1.0, min(1.0, median.median * narrow * root))
    if wide == 0:
        return Interval(estimate, None, None, level, n, method, "these_tasks", _PERFECT)
    limits = drift_estimate(design, look.number, d / wide, level=level)
    low, high = limits.low * wide * root, limits.high * wide * root
    return Interval(estimate, max(-1.0, low), min(1.0, high), level, n, method, "these_tasks")


def stagewise_odds_ratio(
    design: SequentialDesign, stages: Sequence[SequentialStage], *, level: float = 0.95
) -> Interval:
    """The common odds ratio, median unbiased, with limits that agree with the sequential test's decision.

    `stages`: up to the look at which the campaign stopped. The distribution is tilted by the odds ratio while the
    looks' regions stay those of equal rates; limits and median are the ratios at which the stage-wise tails are
    (1 − level) / 2, and equal. A limit may be 0 or infinite. Undefined where no task carries information.
    """
    trials = sum(one.trials for one in stages)
    if not any(one.factors for one in stages):
        return Interval(None, None, None, level, trials, "stagewise_odds_ratio", "these_tasks", _NOTHING)
    tails = _TiltedTails(design, stages)
    tail = (1 - level) / 2
    low = _solved(lambda odds: tails.at(odds)[0] - tail)
    high = _solved(lambda odds: tail - tails.at(odds)[1])
    middle = _solved(lambda odds: tails.at(odds)[0] - tails.at(odds)[1])
    return Interval(middle, low, high, level, trials, "stagewise_odds_ratio", "these_tasks")


class _TiltedTails:
    """The stage-wise tails of what was seen, by the common odds ratio."""

    def __init__(self, design: SequentialDesign, stages: Sequence[SequentialStage]) -> None:
        self._design, self._stages = design, stages
        self._divisor = common_divisor(stages)
        self._regions = self._at_equal_rates()

    def at(self, log_odds: float) -> tuple[float, float]:
        """Towards a and towards b."""
        going, total = START, 0
        for number, added in enumerate(self._stages, start=1):
            total += added.sum // self._divisor
            tails = StagewiseTails.of(going.grown(_tilted(added, log_odds), self._divisor), self._design.midp)
            if number == len(self._stages):
                return tails.at(total)
            going = _outside(tails.unstopped, *self._regions[number - 1])
        raise ValueError("no stage")

    def _at_equal_rates(self) -> list[tuple[int, int]]:
        """The sums that stop at each look before the last: up to the first for b, from the second on for a."""
        found: list[tuple[int, int]] = []
        going = START
        for added, spent in zip(self._stages[:-1], self._design.levels() / 2, strict=False):
            tails = StagewiseTails.of(going.grown(added, self._divisor), self._design.midp)
            lower, upper = tails.rejected(float(spent))
            found.append((tails.unstopped.low + lower - 1, tails.unstopped.low + upper))
            going = tails.after(float(spent))
        return found


def _outside(unstopped: Unstopped, for_b: int, for_a: int) -> Unstopped:
    chances = unstopped.chances.copy()
    lower = min(max(for_b - unstopped.low + 1, 0), chances.size)
    upper = min(max(for_a - unstopped.low, 0), chances.size)
    down, up = float(chances[:lower].sum()), float(chances[upper:].sum())
    chances[:lower] = chances[upper:] = 0.0
    return Unstopped(chances, unstopped.low, unstopped.up + up, unstopped.down + down)


def _tilted(stage: SequentialStage, log_odds: float) -> SequentialStage:
    def tilt(factor: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            logs = np.log(factor) + np.arange(factor.size) * log_odds
        terms = np.exp(logs - logs.max())
        return floats(terms / terms.sum())

    factors = tuple((weight, tilt(factor)) for weight, factor in stage.factors)
    return replace(stage, factors=factors)


def _solved(rising: Callable[[float], float]) -> float:
    """The odds ratio at which a rising function of its logarithm is 0; 0 or infinite beyond the largest."""
    for one, two in pairwise((-_LARGEST, -10.0, -3.0, 0.0, 3.0, 10.0, _LARGEST)):
        below, above = rising(one), rising(two)
        if below >= 0:
            return 0.0
        if above >= 0:
            return math.exp(optimize.brentq(rising, one, two, xtol=1e-12))
    return math.inf
