"""When a campaign is looked at, and how much of its alpha each look may spend."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from trialfleet_statistics.estimates import Floats, floats, one_of, share

Spending = Literal["power_2", "obrien_fleming", "pocock"]
FEWEST_TASKS = 7  # below, looks at tasks like these reject too often: .063 instead of .05 with 4 tasks


def spent(spending: Spending, time: float, alpha: float) -> float:
    """The two-sided alpha that looks up to `time`, the share of the planned blocks, may have spent.

    "power_2": alpha t² (Kim & DeMets 1987); "obrien_fleming": 4 (1 − Φ(Φ⁻¹(1 − alpha/4) / √t)) (Lan & DeMets
    1983); "pocock": alpha ln(1 + (e − 1) t), for comparison only. Raises `ValueError` for a time outside (0, 1].

    >>> round(spent("power_2", 0.6, 0.05), 6), round(spent("obrien_fleming", 0.6, 0.05), 10)
    (0.018, 0.0076161266)
    """
    one_of(Spending, spending, "spending")
    share(alpha, "alpha")
    if not 0 < time <= 1:
        raise ValueError(f"time: expected a share of the planned blocks above 0, got {time}")
    if time == 1:
        return alpha
    if spending == "power_2":
        return alpha * time * time
    if spending == "pocock":
        return alpha * math.log(1 + (math.e - 1) * time)
    return 4 * float(special.ndtr(special.ndtri(alpha / 4) / math.sqrt(time)))


@dataclass(frozen=True)
class SequentialDesign:
    """`looks`: the complete blocks at which is looked, ascending; the last is the number of planned blocks.

    `midp`: half of an outcome's own probability counts towards its p, as in `stratified_exact`; without it the
    probability of a false rejection never exceeds alpha. `revised`: the number of the look from which on these
    blocks are planned, and how many were planned before; None: they always were. Levels never fall. Raises
    `ValueError` for looks that do not ascend from 1.

    >>> design = SequentialDesign.of(25)
    >>> design.looks, design.levels().round(4).tolist()
    ((5, 10, 15, 20, 25), [0.002, 0.008, 0.018, 0.032, 0.05])
    """

    looks: tuple[int, ...]
    spending: Spending = "power_2"
    alpha: float = 0.05
    midp: bool = True
    revised: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        share(self.alpha, "alpha")
        one_of(Spending, self.spending, "spending")
        if not self.looks or self.looks[0] < 1 or any(np.diff(self.looks) < 1):
            raise ValueError(f"looks: expected ascending numbers of blocks, 1 or more, got {list(self.looks)}")

    @classmethod
    def of(
        cls, blocks: int, looks: int = 5, *, spending: Spending = "power_2", alpha: float = 0.05
    ) -> SequentialDesign:
        """`looks` equally spaced ones over the planned blocks: at most one at each block."""
        if blocks < 1 or looks < 1:
            raise ValueError(f"expected at least one block and one look, got {blocks} and {looks}")
        several = min(looks, blocks)
        at = tuple(math.floor(number * blocks / several + 0.5) for number in range(1, several + 1))
        return cls(at, spending, alpha)

    @property
    def blocks(self) -> int:
        """The planned blocks: the last look."""
        return self.looks[-1]

    def times(self) -> Floats:
        """Each look's share of the planned blocks, shape (looks,)."""
        return floats(np.array(self.looks) / self.blocks)

    def levels(self, alpha: float | None = None) -> Floats:
        """The two-sided alpha that may have been spent at each look, shape (looks,); `alpha`: another total."""
        total, times = self.alpha if alpha is None else alpha, self.times()
        if self.revised is not None:
            first, planned = self.revised
            times[: first - 1] = np.array(self.looks[: first - 1]) / planned
        return floats(np.maximum.accumulate([spent(self.spending, float(time), total) for time in times]))

    def stage(self, number: int) -> int:
        """How many blocks look `number`, from 1, adds to the one before."""
        return self.looks[number - 1] - (self.looks[number - 2] if number > 1 else 0)
