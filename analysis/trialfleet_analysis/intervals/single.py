"""One cell's pass rate: Wilson's, the exact and Jeffreys' interval."""

from __future__ import annotations

from typing import overload

import numpy as np
from scipy import special

from trialfleet_analysis.estimates import (
    Counts,
    Floats,
    Integers,
    Interval,
    Intervals,
    counts,
    floats,
    normal_quantile,
    share,
)
from trialfleet_analysis.intervals.shapes import answered, unmeasured


@overload
def wilson(passes: int, trials: int, *, level: float = 0.95) -> Interval: ...
@overload
def wilson(passes: Counts, trials: Counts, *, level: float = 0.95) -> Intervals: ...
def wilson(passes: int | Counts, trials: int | Counts, *, level: float = 0.95) -> Interval | Intervals:
    """Wilson's score interval for one cell's pass rate, without continuity correction.

    Limits are the rates p with |x/n − p| = z √(p (1 − p) / n). Source: Wilson 1927; Brown, Cai & DasGupta 2001.
    Mean coverage is near nominal at every n, the worst rate's is not (.83 at n = 5): `clopper_pearson` never
    falls below. For one cell's reps, not for reps pooled over tasks (`effective_sample_wilson`).

    >>> wilson(3, 5).rounded(3)
    (0.231, 0.882)
    >>> wilson(0, 0).estimate, wilson(0, 0).reason
    (None, 'no valid trial')
    """
    x, n = counts(passes, trials)
    limits = wilson_limits(x.astype(np.float64), n.astype(np.float64), normal_quantile(level))
    return _answer(x, n, limits, level, "wilson")


@overload
def clopper_pearson(passes: int, trials: int, *, level: float = 0.95) -> Interval: ...
@overload
def clopper_pearson(passes: Counts, trials: Counts, *, level: float = 0.95) -> Intervals: ...
def clopper_pearson(passes: int | Counts, trials: int | Counts, *, level: float = 0.95) -> Interval | Intervals:
    """The exact interval for one cell's pass rate: both binomial tails held at (1 − level) / 2.

    Limits are beta quantiles: B(α/2; x, n − x + 1) and B(1 − α/2; x + 1, n − x), 0 at x = 0 and 1 at x = n.
    Source: Clopper & Pearson 1934. Coverage is never below the level and usually well above it.

    >>> clopper_pearson(3, 5).rounded(3)
    (0.147, 0.947)
    """
    x, n = counts(passes, trials)
    return _answer(x, n, _beta_limits(x, n, level, low=(0.0, 1.0), high=(1.0, 0.0)), level, "clopper_pearson")


@overload
def jeffreys(passes: int, trials: int, *, level: float = 0.95) -> Interval: ...
@overload
def jeffreys(passes: Counts, trials: Counts, *, level: float = 0.95) -> Intervals: ...
def jeffreys(passes: int | Counts, trials: int | Counts, *, level: float = 0.95) -> Interval | Intervals:
    """The equal-tailed credible interval for one cell's pass rate under Jeffreys' prior, Beta(½, ½).

    Limits are the quantiles of Beta(x + ½, n − x + ½), except that low is 0 at x = 0 and high is 1 at x = n:
    without these edges coverage falls to 0 as the rate nears them. Source: Brown, Cai & DasGupta 2001, section
    4.1. The estimate is x/n, as for the other intervals of one cell. Never average such posteriors over tasks:
    each is drawn towards ½, and that does not average out.

    >>> jeffreys(3, 5).rounded(3)
    (0.209, 0.906)
    >>> jeffreys(0, 5).rounded(3)
    (0.0, 0.379)
    """
    x, n = counts(passes, trials)
    return _answer(x, n, _beta_limits(x, n, level, low=(0.5, 0.5), high=(0.5, 0.5)), level, "jeffreys")


def wilson_limits(x: Floats, n: Floats, z: float) -> tuple[Floats, Floats]:
    """Limits for x passes of n, both real; NaN where n is 0, exactly 0 and 1 at the edges."""
    with np.errstate(invalid="ignore", divide="ignore"):
        p = x / n
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = np.where(p <= 0, 0.0, np.clip(centre - half, 0, 1))
    high = np.where(p >= 1, 1.0, np.clip(centre + half, 0, 1))
    return floats(low), floats(high)


def _beta_limits(
    x: Integers, n: Integers, level: float, *, low: tuple[float, float], high: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Quantiles of Beta(x + low₀, n − x + low₁) and Beta(x + high₀, n − x + high₁), with the edges at 0 and 1."""
    tail = (1 - share(level, "level")) / 2
    with np.errstate(all="ignore"):
        lower = np.where(x == 0, 0.0, special.betaincinv(x + low[0], n - x + low[1], tail))
        upper = np.where(x == n, 1.0, special.betainccinv(x + high[0], n - x + high[1], tail))
    return floats(lower), floats(upper)


def _answer(
    x: Integers, n: Integers, limits: tuple[Floats, Floats], level: float, method: str
) -> Interval | Intervals:
    with np.errstate(invalid="ignore"):
        estimate = floats(x / n)
    return answered((estimate, *limits), n=n, level=level, method=method, reason=unmeasured(n))
