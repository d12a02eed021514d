"""From resampled statistics to an interval that says what resampling could not tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trialfleet_analysis.continuous.samples import DUST
from trialfleet_analysis.estimates import Floats, Interval, share, whole


@dataclass(frozen=True)
class BootstrapInterval(Interval):
    """`undefined_share`: of the `resamples`, how many had no value. `monte_carlo_se`: the standard error of the
    limits (low, high) that drawing only so many leaves; a limit shown to more digits is noise."""

    resamples: int = 0
    undefined_share: float = 0.0
    monte_carlo_se: tuple[float, float] | None = None


class Limits(NamedTuple):
    """Either end may be infinite: resamples without a value count against both."""

    low: float
    high: float
    low_se: float
    high_se: float


def enough_resamples(resamples: int, level: float) -> int:
    """Raises `ValueError` where a limit would lie beyond the most extreme resample."""
    least, given = math.ceil(2 / (1 - share(level, "level")) - 1e-9) - 1, int(whole(resamples, "resamples"))
    if given < least:
        raise ValueError(f"resamples: at least {least} are wanted for level {level}, got {given}")
    return given


def percentile_limits(resampled: Floats, level: float) -> Limits:
    """The order statistics k and B + 1 − k, k = ⌊(B + 1) (1 − level) / 2⌋ (Davison & Hinkley 1997, 2.1).

    NaN: a resample without a value, put where it widens the interval. The limits' own errors are half the
    distance between the order statistics one binomial standard deviation of k to either side.
    """
    size, tail = resampled.size, (1 - level) / 2
    k = math.floor((size + 1) * tail + 1e-9)
    low, low_se = _order_statistic(np.where(np.isnan(resampled), -np.inf, resampled), k, tail)
    high, high_se = _order_statistic(-np.where(np.isnan(resampled), np.inf, resampled), k, tail)
    return Limits(low, -high, low_se, high_se)


def percentile_interval(
    estimate: float, resampled: Floats, scale: float, *, level: float, n: int
) -> BootstrapInterval:
    """An unnamed interval around the estimate; no limits where all resamples are equal, at the values' `scale`."""
    if float(np.ptp(resampled)) <= DUST * scale:
        reason = "every resample gives the same value: the spread is unknown, not 0"
        return BootstrapInterval(estimate, None, None, level, n, "percentile", None, reason, resampled.size)
    found = percentile_limits(resampled, level)
    return BootstrapInterval(
        estimate,
        found.low,
        found.high,
        level,
        n,
        "percentile",
        resamples=resampled.size,
        monte_carlo_se=(found.low_se, found.high_se),
    )


def _order_statistic(values: Floats, k: int, tail: float) -> tuple[float, float]:
    ascending, spread = np.sort(values), math.ceil(math.sqrt(values.size * tail * (1 - tail)))
    before, after = ascending[max(0, k - 1 - spread)], ascending[min(values.size - 1, k - 1 + spread)]
    return float(ascending[k - 1]), float((after - before) / 2) if np.isfinite(before) else math.inf
