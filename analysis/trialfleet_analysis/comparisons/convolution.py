"""The distribution of all strata's passes in arm a, given every stratum's margins, at any common odds ratio.

One stratum is hypergeometric, tilted by odds ratio to the power of its passes; their sum is the convolution. Equal
strata are raised to their power by squaring, and the shortest factors are multiplied first, so that ten thousand
pairs cost milliseconds. Sums of products of probabilities lose no relative accuracy, which a Fourier transform
would in the tails.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from trialfleet_analysis.comparisons import hypergeometric
from trialfleet_analysis.estimates import Floats, Integers, floats


@dataclass(frozen=True, eq=False)
class Strata:
    """Informative strata, equal margins once with how `often`; `log_chances[g, k]`: low + k passes in a, padded
    with −inf. `low` and `high`: bounds of the sum; `observed`: the sum itself."""

    log_chances: Floats
    often: Integers
    low: int
    high: int
    observed: int
    trials: int

    @property
    def size(self) -> int:
        return int(self.often.sum())


def informative_strata(x_a: Integers, n_a: Integers, x_b: Integers, n_b: Integers) -> Strata:
    """From counts of shape (T,) each."""
    keep = informative(x_a, n_a, x_b, n_b)
    margins = np.stack([n_a[keep], n_b[keep], (x_a + x_b)[keep]], axis=1)
    groups, often = np.unique(margins, axis=0, return_counts=True)
    one, two, passes = groups.T
    low, high = hypergeometric.bounds(one, two, passes)
    chances = np.full((len(groups), int(np.max(high - low, initial=-1)) + 1), -np.inf)
    row, column = np.nonzero(np.arange(chances.shape[1]) <= (high - low)[:, None])
    chances[row, column] = hypergeometric.log_probability(low[row] + column, one[row], two[row], passes[row])
    return Strata(
        chances,
        often,
        int(low @ often),
        int(high @ often),
        int(x_a[keep].sum()),
        int((n_a + n_b)[keep].sum()),
    )


def informative(x_a: Integers, n_a: Integers, x_b: Integers, n_b: Integers) -> NDArray[np.bool_]:
    """Strata in which both arms have trials, and both outcomes were seen."""
    passes, trials = x_a + x_b, n_a + n_b
    return (n_a > 0) & (n_b > 0) & (passes > 0) & (passes < trials)


def chances(strata: Strata, log_odds: float = 0.0) -> Floats:
    """P(S = low + k) for k = 0 … high − low at the common odds ratio exp(`log_odds`)."""
    widths = np.count_nonzero(np.isfinite(strata.log_chances), axis=1)
    rows = zip(tilted(strata, log_odds), widths.tolist(), strata.often.tolist(), strict=True)
    return convolved([powered(row[:width], often) for row, width, often in rows])


def convolved(distributions: Sequence[Floats]) -> Floats:
    """The distribution of the sum; of no summand, 0 for certain."""
    order = count()  # decides between factors of one length, which numpy cannot compare
    factors = [(factor.size, next(order), factor) for factor in distributions]
    heapq.heapify(factors)
    while len(factors) > 1:
        one, two = heapq.heappop(factors)[2], heapq.heappop(factors)[2]
        product = np.convolve(one, two)
        heapq.heappush(factors, (product.size, next(order), product))
    return factors[0][2] if factors else np.ones(1)


def centre(strata: Strata, target: float) -> float:
    """The log odds ratio at which S has the mean `target`, strictly between `low` and `high`."""
    steps = _steps(strata)

    def excess(log_odds: float) -> float:
        means = floats(tilted(strata, log_odds) @ steps)
        return float(means @ strata.often) + strata.low - target

    reach = 1.0
    while excess(reach) < 0 or excess(-reach) > 0:
        reach *= 2
    return float(optimize.brentq(excess, -reach, reach, xtol=1e-13, rtol=1e-14))


def tilted(strata: Strata, log_odds: float = 0.0) -> Floats:
    """Probabilities at the common odds ratio exp(`log_odds`), in the layout of `log_chances`."""
    logs = strata.log_chances + log_odds * _steps(strata)
    if not logs.size:
        return logs
    tilted = np.exp(logs - logs.max(axis=1, keepdims=True))
    return floats(tilted / tilted.sum(axis=1, keepdims=True))


def _steps(strata: Strata) -> Floats:
    return np.arange(strata.log_chances.shape[1], dtype=np.float64)


def powered(factor: Floats, exponent: int) -> Floats:
    """The distribution of the sum of that many, each distributed like `factor`."""
    if exponent == 1:
        return factor
    found = np.ones(1)
    while exponent:
        if exponent & 1:
            found = np.convolve(found, factor)
        exponent >>= 1
        if exponent:
            factor = np.convolve(factor, factor)
    return found
