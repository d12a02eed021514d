"""Whether going on can still show a gain, or a harm: conditional and predictive power at a look."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from trialfleet_statistics.estimates import Floats, floats
from trialfleet_statistics.sequential.design import SequentialDesign
from trialfleet_statistics.sequential.exact import SequentialLook
from trialfleet_statistics.sequential.normal import normal_bounds


@dataclass(frozen=True)
class Futility:
    """When to give up. `predictive`: below this predictive power (no declared effect needed). `conditional`: below
    this power at the declared `effect`, a difference of rates. Exactly one is given. `side`: "both": those
    of both directions must be below; "gain": that of a alone (of b, where the declared effect is negative).
    Not binding: the bounds for rejection are computed as if it did not exist: ignoring it costs no validity."""

    predictive: float | None = None
    conditional: float | None = None
    effect: float | None = None
    side: Literal["both", "gain"] = "both"

    def __post_init__(self) -> None:
        given = [value for value in (self.predictive, self.conditional) if value is not None]
        if len(given) != 1 or not 0 < given[0] < 1:
            raise ValueError("futility: give predictive or conditional, a probability between 0 and 1")
        if self.conditional is not None and not self.effect:
            raise ValueError("futility: conditional power needs the declared effect")

    @property
    def least(self) -> float:
        """The power below which a campaign is given up."""
        return self.predictive or self.conditional or 0.0


def conditional_power(
    look: SequentialLook, *, tasks: int, effect: float, blocks: int, bound: float
) -> float | None:
    """P(the end rejects in the effect's direction | the sums so far, the mean difference being `effect`).

    `blocks`: planned; `bound`: the last normal bound. None where the margins carry no information yet.
    Source: Lachin 2005, with the drift of the mean difference of rates.
    """
    if look.variance <= 0 or look.blocks >= blocks:
        return None
    sums = floats(look.sum - look.mean), floats(look.variance)
    return float(_conditional(*sums, tasks=tasks, effect=effect, taken=look.blocks, blocks=blocks, bound=bound))


def _conditional(
    lead: Floats, variance: Floats, *, tasks: int, effect: float, taken: int, blocks: int, bound: float
) -> Floats:
    side = math.copysign(1.0, effect)
    end = variance * blocks / taken
    ahead = side * lead + (blocks - taken) * tasks * abs(effect) / 2
    return floats(special.ndtr((ahead - bound * np.sqrt(end)) / np.sqrt(end - variance)))


def predictive_power(look: SequentialLook, *, blocks: int, bound: float, side: int = 1) -> float | None:
    """P(the end rejects in favour of `side` | the sums so far), the effect having a flat prior.

    None where the margins carry no information yet. Source: Spiegelhalter, Freedman & Blackburn 1986.
    """
    if look.variance <= 0 or look.blocks >= blocks:
        return None
    sums = floats(look.sum - look.mean), floats(look.variance)
    return float(_predictive(*sums, time=look.blocks / blocks, bound=bound, side=side))


def _predictive(lead: Floats, variance: Floats, *, time: float, bound: float, side: int) -> Floats:
    z = side * lead / np.sqrt(variance)
    return floats(special.ndtr((z / math.sqrt(time) - bound) * math.sqrt(time / (1 - time))))


def futile(design: SequentialDesign, rule: Futility | None, look: SequentialLook, *, tasks: int) -> bool:
    """Whether the rule says to stop: what it looks for has too small a chance. Never at the last look, which
    decides anyway, nor where nothing is known yet."""
    sums = np.array([look.sum - look.mean]), np.array([look.variance])
    return bool(futile_leads(design, rule, look.number, *sums, tasks=tasks)[0])


def futile_leads(
    design: SequentialDesign,
    rule: Futility | None,
    number: int,
    lead: Floats,
    variance: Floats,
    *,
    tasks: int,
) -> NDArray[np.bool_]:
    """`futile` of many campaigns at look `number`; their sums less their means, and variances, one shape."""
    if rule is None or number >= len(design.looks):
        return np.zeros(lead.shape, dtype=bool)
    known = variance > 0
    chances = _chances(design, rule, design.looks[number - 1], lead, np.where(known, variance, 1.0), tasks=tasks)
    return np.asarray(known & (chances < rule.least))


def futility_power(design: SequentialDesign, rule: Futility, look: SequentialLook, *, tasks: int) -> float | None:
    """The power that the rule compares: of two directions the larger. None where nothing is known yet."""
    if look.variance <= 0 or look.blocks >= design.blocks:
        return None
    sums = floats(look.sum - look.mean), floats(look.variance)
    return float(_chances(design, rule, look.blocks, *sums, tasks=tasks))


def _chances(
    design: SequentialDesign, rule: Futility, taken: int, lead: Floats, variance: Floats, *, tasks: int
) -> Floats:
    blocks, bound, effect = design.blocks, float(normal_bounds(design)[-1]), rule.effect

    def chances(sign: int) -> Floats:
        if rule.conditional is not None and effect is not None:
            shift = sign * effect
            return _conditional(lead, variance, tasks=tasks, effect=shift, taken=taken, blocks=blocks, bound=bound)
        side = -sign if effect is not None and effect < 0 else sign
        return _predictive(lead, variance, time=taken / blocks, bound=bound, side=side)

    return chances(1) if rule.side == "gain" else floats(np.maximum(chances(1), chances(-1)))
