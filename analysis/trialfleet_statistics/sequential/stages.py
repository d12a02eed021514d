"""What the blocks between two looks added, given every stratum's margins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trialfleet_statistics.comparisons.convolution import (
    by_weight,
    informative,
    informative_strata,
    tilted,
)
from trialfleet_statistics.estimates import Floats, Integers, Tally, strata

PassWeights = Literal["equal", "mh"]
UNIT = 100  # the weight of a pass in a stage of which nothing was lost: weights keep two digits


@dataclass(frozen=True, eq=False)
class SequentialStage:
    """What the blocks since the last look added, given its margins.

    `factors`: every weight with the distribution, at equal rates, of its strata's passes in arm a above the
    least; `low`: the least weighted sum, `sum`: the one that was seen, both in hundredths of a pass; `mean` and
    `variance`: of the sum, in passes. What the margins fix is in all of them. `informative`: strata that carry
    information; `trials`: in these. `task_blocks`: blocks times strata that have valid trials in both arms, or
    were left out as saturated.
    """

    factors: tuple[tuple[int, Floats], ...]
    low: int
    sum: int
    mean: float
    variance: float
    informative: int
    trials: int
    task_blocks: int

    @property
    def divisor(self) -> int:
        return math.gcd(*(weight for weight, _ in self.factors)) if self.factors else 0

    @property
    def high(self) -> int:
        """The largest weighted sum."""
        return self.low + sum(weight * (len(of) - 1) for weight, of in self.factors)


def stage(
    passes_a: Tally,
    trials_a: Tally,
    passes_b: Tally,
    trials_b: Tally,
    *,
    blocks: int,
    weights: PassWeights = "equal",
    scale: Floats | None = None,
    dropped: int = 0,
) -> SequentialStage:
    """Counts of shape (T,), one stratum per entry, of a stage of so many `blocks` (1 where strata are blocks).

    `weights` "equal": passes weigh by (1/n_a + 1/n_b) · blocks/2, so that the sum follows the mean over tasks of
    the differences of rates also where trials were lost; 1 where none was. "mh": all passes weigh 1. `scale`:
    factors of the equal weights, shape (T,). `dropped`: tasks that an earlier look left out as saturated: they
    stay in the mean, with a difference of 0. Raises `ValueError` for counts that cannot be.
    """
    if blocks < 1:
        raise ValueError(f"blocks: expected 1 or more, got {blocks}")
    four = strata(passes_a, trials_a, passes_b, trials_b)
    factors: float | Floats = 1.0 if scale is None else scale
    weight = _pass_weights(four, blocks / 2 * factors, weights)
    x_a, n_a, x_b, n_b = four
    n, m = n_a + n_b, x_a + x_b
    whole = np.maximum(n, 1)
    mean = weight * n_a * m / whole
    variance = weight.astype(np.float64) ** 2 * n_a * n_b * m * (n - m) / (whole**2 * np.maximum(n - 1, 1))
    kept = informative(*four) & (weight > 0)
    found = informative_strata(x_a[kept], n_a[kept], x_b[kept], n_b[kept], weight[kept])
    constant = int((weight * x_a)[~kept].sum())
    return SequentialStage(
        factors=tuple(by_weight(found, tilted(found))) if found.size else (),
        low=found.low + constant,
        sum=found.observed + constant,
        mean=float(mean.sum()) / UNIT,
        variance=float(variance.sum()) / UNIT**2,
        informative=int(kept.sum()),
        trials=found.trials,
        task_blocks=blocks * (dropped + int(((n_a > 0) & (n_b > 0)).sum())),
    )


def _pass_weights(
    four: tuple[Integers, Integers, Integers, Integers], scale: float | Floats, weights: PassWeights
) -> Integers:
    _, n_a, _, n_b = four
    measured = (n_a > 0) & (n_b > 0)
    if weights == "mh":
        return np.where(measured, UNIT, 0).astype(np.int64)
    each = 1 / np.maximum(n_a, 1) + 1 / np.maximum(n_b, 1)
    return np.where(measured, np.maximum(1, np.rint((UNIT * each * scale).round(9))), 0).astype(np.int64)


def common_divisor(stages: Sequence[SequentialStage]) -> int:
    """Of every weight: sums are counted in steps of it."""
    return math.gcd(*(one.divisor for one in stages), *(one.low for one in stages)) or UNIT
