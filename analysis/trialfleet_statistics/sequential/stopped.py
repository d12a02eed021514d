"""Estimates of a campaign that looks may have stopped: its raw difference is too far from 0 on average."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy import optimize

from trialfleet_statistics.estimates import Floats, Interval, Tally, floats, strata
from trialfleet_statistics.intervals.differences import constrained_variance
from trialfleet_statistics.sequential.design import SequentialDesign
from trialfleet_statistics.sequential.exact import SequentialLook
from trialfleet_statistics.sequential.normal import tail_between
from trialfleet_statistics.sequential.recursion import START, StagewiseTails, Unstopped
from trialfleet_statistics.sequential.stages import SequentialStage, common_divisor

_LARGEST = 40.0  # of a log odds ratio
_FARTHEST = 12.0  # in standard errors
_EDGE = 1e-6  # from a difference of 1, at which nothing varies
_NOTHING = "no task could tell the conditions apart"


def stagewise_difference(
    looks: Sequence[SequentialLook],
    passes_a: Tally,
    trials_a: Tally,
    passes_b: Tally,
    trials_b: Tally,
    *,
    level: float = 0.95,
) -> Interval:
    """The median-unbiased mean over tasks of the differences of rates, a − b, with stage-wise limits.

    `looks`: all that were taken, the campaign having stopped at the last; counts of shape (T,), all up to it. The
    limits and the median are the differences D at which an outcome further towards a has the probabilities
    (1 − level) / 2, (1 + level) / 2 and ½: in the normal limit, with Miettinen and Nurminen's variance at D,
    between the exact test's own thresholds, half a step of its sums inside of the first that rejects. The estimate
    lies between the limits; with a single look it is the raw difference. Undefined where no task carries
    information.
    """
    x_a, n_a, x_b, n_b = (floats(counted) for counted in strata(passes_a, trials_a, passes_b, trials_b))
    measured = (n_a > 0) & (n_b > 0)
    four = x_a[measured], n_a[measured], x_b[measured], n_b[measured]
    n, method = int((n_a + n_b)[measured].sum()), "stagewise_difference"
    if looks[-1].variance <= 0:
        return Interval(None, None, None, level, n, method, "these_tasks", _NOTHING)
    tails, tail = ShiftedTails(looks, four), (1 - level) / 2
    low, estimate, high = (tails.difference_at(chance) for chance in (tail, 0.5, 1 - tail))
    return Interval(estimate, low, high, level, n, method, "these_tasks")


class ShiftedTails:
    """The stage-wise tail towards a of what was seen, by the true mean difference."""

    def __init__(self, looks: Sequence[SequentialLook], four: tuple[Floats, Floats, Floats, Floats]) -> None:
        """`looks`: all that were taken; `four`: counts of shape (T,), each task with trials in both arms."""
        x_a, n_a, x_b, n_b = self._four = four
        self._seen = float((x_a / n_a - x_b / n_b).mean())
        self._times = floats([look.blocks / looks[-1].blocks for look in looks])
        self._lower = floats([_difference_of(look, look.lower, look.step / 2) for look in looks[:-1]])
        self._upper = floats([_difference_of(look, look.upper, -look.step / 2) for look in looks[:-1]])

    def at(self, difference: float) -> float:
        """P(an outcome further towards a), the true mean difference being this one."""
        x_a, n_a, x_b, n_b = self._four
        variance = constrained_variance(x_a, n_a, x_b, n_b, np.full_like(n_a, difference)).sum() / n_a.size**2
        error = math.sqrt(max(float(variance), np.finfo(float).tiny))

        def standard(of: Floats | float, time: Floats | float) -> Floats:
            return floats(np.clip((of - difference) / error * np.sqrt(time), -_FARTHEST, _FARTHEST))

        earlier = self._times[:-1]
        lower, upper = standard(self._lower, earlier), standard(self._upper, earlier)
        return tail_between(lower, upper, self._times, float(standard(self._seen, 1.0)))

    def difference_at(self, chance: float) -> float:
        """The difference at which the tail has this chance; 1 or −1 where all differences have more or less."""
        least, most = -1 + _EDGE, 1 - _EDGE
        if self.at(least) >= chance:
            return -1.0
        if self.at(most) <= chance:
            return 1.0
        return float(optimize.brentq(lambda difference: self.at(difference) - chance, least, most, xtol=1e-9))


def _difference_of(look: SequentialLook, threshold: float | None, inwards: float) -> float:
    """The mean difference of rates at a sum that rejects, moved `inwards`; infinite where none does."""
    if threshold is None or not look.task_blocks:
        return -math.copysign(math.inf, inwards)
    return 2 * (threshold + inwards - look.mean) / look.task_blocks


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
