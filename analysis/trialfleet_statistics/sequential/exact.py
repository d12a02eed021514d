"""The exact group-sequential test: the stratified exact test, looked at while a campaign grows.

Strata are task × stage (or task × block): stage k is what the blocks after look k − 1 up to look k added. Given
every stratum's margins, and equal rates in it, the passes of arm a are hypergeometric and the stages
independent, so that the distribution of the weighted sum over looks, among the campaigns that have not stopped,
is computed and not approximated. Sources: Armitage, McPherson & Rowe 1969 (recursion); Lin, Wei & DeMets 1991
(exact, binary); Tsiatis, Rosner & Mehta 1984 (ordering of outcomes by stage).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trialfleet_statistics.estimates import LEAST, TIES
from trialfleet_statistics.sequential.design import SequentialDesign
from trialfleet_statistics.sequential.recursion import NEGLIGIBLE, START, StagewiseTails
from trialfleet_statistics.sequential.stages import UNIT, SequentialStage, common_divisor


@dataclass(frozen=True)
class SequentialLook:
    """What look `number` of a design saw after `blocks` complete ones.

    `sum`: the weighted passes in arm a up to here, `mean` and `variance` given the margins and equal rates; in
    passes of a campaign without losses. `p_value`: two-sided, by stage-wise ordering; it is a p only where the
    campaign stopped here by crossing, or at the end. `p_up`, `p_down`: its sides. `level`: what each side may have
    spent up to here. `upper`: the least sum that rejects in favour of a, `lower` the largest for b; None: no
    outcome does. `spent_up`, `spent_down`: the probability of having rejected up to here. `crossed`: 1 for a, −1
    for b, 0 for neither. `informative`: strata up to here that carry information. `task_blocks`: of the stages, so
    that 2 (sum − mean) / task_blocks is the mean difference of rates, 0 in tasks that were left out as saturated.
    `step`: between one sum and the next that can be.
    """

    number: int
    blocks: int
    sum: float
    mean: float
    variance: float
    p_value: float
    p_up: float
    p_down: float
    level: float
    lower: float | None
    upper: float | None
    spent_down: float
    spent_up: float
    crossed: int
    informative: int
    task_blocks: int
    step: float = 1.0


def monitor(design: SequentialDesign, stages: Sequence[SequentialStage]) -> tuple[SequentialLook, ...]:
    """Every look at the stages that are complete, in order; it stops at the first that crosses.

    With a design of one look p is `stratified_exact`'s. Raises `ValueError` for more stages than looks.

    >>> from trialfleet_statistics.sequential import stage
    >>> one = stage([5, 3, 5], [5, 5, 5], [1, 2, 5], [5, 5, 5], blocks=5)
    >>> [look] = monitor(SequentialDesign((5,)), [one])
    >>> round(look.p_value, 4), look.lower, look.upper, look.crossed
    (0.0418, 8.0, 13.0, 1)
    """
    if len(stages) > len(design.looks):
        raise ValueError(f"{len(stages)} stages for {len(design.looks)} looks")
    walk = Walk(design, common_divisor(stages))
    found: list[SequentialLook] = []
    for added in stages:
        found.append(walk.look(added))
        if found[-1].crossed:
            break
    return tuple(found)


class Walk:
    """Looks taken one after the other; `divisor`: a common one of all weights, in which sums are counted."""

    def __init__(self, design: SequentialDesign, divisor: int) -> None:
        self._design = design
        self._levels = (design.levels() / 2).tolist()
        self._divisor = divisor
        self._going = START
        self._number = self._sum = self._informative = self._task_blocks = 0
        self._mean = self._variance = 0.0

    def look(self, added: SequentialStage) -> SequentialLook:
        """The next look, `added` being complete since the one before."""
        design, divisor = self._design, self._divisor
        self._number += 1
        self._sum += added.sum // divisor
        self._mean += added.mean
        self._variance += added.variance
        self._informative += added.informative
        self._task_blocks += added.task_blocks
        level: float = self._levels[self._number - 1]
        grown = self._going.grown(added, divisor, NEGLIGIBLE if divisor < UNIT else 0.0)
        tails = StagewiseTails.of(grown, design.midp)
        self._going = tails.after(level)
        up, down = tails.at(self._sum)
        lower, upper = tails.thresholds(level)
        most, passes = level * (1 + TIES), divisor / UNIT
        return SequentialLook(
            number=self._number,
            blocks=design.looks[self._number - 1],
            sum=self._sum * passes,
            mean=self._mean,
            variance=self._variance,
            p_value=max(LEAST, min(1.0, 2 * min(up, down))),
            p_up=up,
            p_down=down,
            level=level,
            lower=None if lower is None else lower * passes,
            upper=None if upper is None else upper * passes,
            spent_down=self._going.down,
            spent_up=self._going.up,
            crossed=1 if up <= most else -1 if down <= most else 0,
            informative=self._informative,
            task_blocks=self._task_blocks,
            step=passes,
        )


def sequential_p(design: SequentialDesign, stages: Sequence[SequentialStage]) -> float:
    """The largest total alpha at which the design has not rejected at the looks so far: a p that may stand at any
    declared look, whatever made the campaign stop there.

    Counts are discrete, so that a larger alpha may reject less often by an outcome. Where passes weigh alike all
    alphas are scanned in steps of .001 for the last that does not reject, which is then refined to 1e-9 towards
    the next; with unequal weights an outcome's probability is minute, and only .025 above the first is scanned.
    Source: Jennison & Turnbull 2000, section 8.

    >>> sequential_p(SequentialDesign((5,)), [])
    1.0
    """
    divisor = common_divisor(stages)

    rejected = Rejections(design, stages, divisor)
    highest = 999
    if divisor < UNIT:
        highest = min(999, math.ceil(1000 * _first(rejected, 0.0, 1 - 1e-9)) + 25)
    kept = next((step for step in range(highest, 0, -1) if not rejected(step / 1000)), 0)
    return 1.0 if kept == 999 else _first(rejected, kept / 1000, (kept + 1) / 1000)


def least_stagewise_p(design: SequentialDesign, stages: Sequence[SequentialStage]) -> float:
    """The least p by stage-wise ordering that any outcome with these margins has: of a campaign that took these
    looks, or crossed at an earlier one of them.

    >>> from trialfleet_statistics.sequential import stage
    >>> round(least_stagewise_p(SequentialDesign((2,)), [stage([2], [2], [0], [2], blocks=2)]), 3)
    0.167
    >>> least_stagewise_p(SequentialDesign((5,)), [])
    1.0
    """
    ends = [replace(one, sum=one.low) for one in stages], [replace(one, sum=one.high) for one in stages]
    return min((monitor(design, end)[-1].p_value for end in ends if end), default=1.0)


def _first(rejected: Callable[[float], bool], low: float, high: float) -> float:
    """Where rejection begins between two alphas, to 1e-9."""
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if rejected(middle) else (middle, high)
    return high


class Rejections:
    """Whether the design has rejected at the looks so far, by its total alpha. One alpha and the next mostly stop
    the same outcomes: what is left at a look is kept until they stop others before it."""

    def __init__(self, design: SequentialDesign, stages: Sequence[SequentialStage], divisor: int) -> None:
        self._design, self._stages, self._divisor = design, stages, divisor
        self._kept: list[tuple[tuple[tuple[int, int], ...], StagewiseTails, float]] = []

    def __call__(self, alpha: float) -> bool:
        going, stopped, total = START, tuple[tuple[int, int], ...](), 0
        for number, (added, spent) in enumerate(zip(self._stages, self._design.levels(alpha) / 2, strict=False)):
            total += added.sum // self._divisor
            if number == len(self._kept) or self._kept[number][0] != stopped:
                tails = StagewiseTails.of(going.grown(added, self._divisor, NEGLIGIBLE), self._design.midp)
                self._kept[number:] = [(stopped, tails, min(tails.at(total)))]
            _, tails, p_value = self._kept[number]
            if p_value <= spent * (1 + TIES):
                return True
            stopped = (*stopped, tails.rejected(float(spent)))
            going = tails.after(float(spent))
        return False
