"""Whether going on can still show a gain: conditional and predictive power at a look."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from trialfleet_analysis.statistics.sequential.design import SequentialDesign
from trialfleet_analysis.statistics.sequential.exact import SequentialLook
from trialfleet_analysis.statistics.sequential.normal import normal_bounds


@dataclass(frozen=True)
class Futility:
    """When to give up. `predictive`: below this predictive power (no declared effect needed). `conditional`: below
    this power at the declared `effect`, a difference of rates. Exactly one is given. Not binding: the bounds for
    rejection are computed as if it did not exist, so that ignoring it costs no validity."""

    predictive: float | None = None
    conditional: float | None = None
    effect: float | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.predictive, self.conditional) if value is not None]
        if len(given) != 1 or not 0 < given[0] < 1:
            raise ValueError("futility: give predictive or conditional, a probability between 0 and 1")
        if self.conditional is not None and not self.effect:
            raise ValueError("futility: conditional power needs the declared effect")


def conditional_power(
    look: SequentialLook, *, tasks: int, effect: float, blocks: int, bound: float
) -> float | None:
    """P(the end rejects in the effect's direction | the sums so far, the mean difference being `effect`).

    `blocks`: planned; `bound`: the last normal bound. None where the margins carry no information yet.
    Source: Lachin 2005, with the drift of the mean difference of rates.
    """
    if look.variance <= 0 or look.blocks >= blocks:
        return None
    side = math.copysign(1.0, effect)
    end = look.variance * blocks / look.blocks
    ahead = side * (look.sum - look.mean) + (blocks - look.blocks) * tasks * abs(effect) / 2
    return float(special.ndtr((ahead - bound * math.sqrt(end)) / math.sqrt(end - look.variance)))


def predictive_power(look: SequentialLook, *, blocks: int, bound: float, side: int = 1) -> float | None:
    """P(the end rejects in favour of `side` | the sums so far), the effect having a flat prior.

    None where the margins carry no information yet. Source: Spiegelhalter, Freedman & Blackburn 1986.
    """
    if look.variance <= 0 or look.blocks >= blocks:
        return None
    time = look.blocks / blocks
    z = side * (look.sum - look.mean) / math.sqrt(look.variance)
    return float(special.ndtr((z / math.sqrt(time) - bound) * math.sqrt(time / (1 - time))))


def futile(design: SequentialDesign, rule: Futility | None, look: SequentialLook, *, tasks: int) -> bool:
    """Whether the rule says to stop: the gain of a (of b, where the declared effect is negative) has too small a
    chance. Never at the last look, which decides anyway, nor where nothing is known yet."""
    if rule is None or look.number >= len(design.looks):
        return False
    chance = chance_of_gain(design, rule, look, tasks=tasks)
    least = rule.predictive if rule.conditional is None else rule.conditional
    return chance is not None and least is not None and chance < least


def chance_of_gain(design: SequentialDesign, rule: Futility, look: SequentialLook, *, tasks: int) -> float | None:
    """The power that the rule compares."""
    bound = float(normal_bounds(design)[-1])
    if rule.conditional is not None and rule.effect is not None:
        return conditional_power(look, tasks=tasks, effect=rule.effect, blocks=design.blocks, bound=bound)
    side = -1 if rule.effect is not None and rule.effect < 0 else 1
    return predictive_power(look, blocks=design.blocks, bound=bound, side=side)
