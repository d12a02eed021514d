"""The distribution of Σ a_t x_t, x_t the passes of stratum t in arm a and a_t its integer weight, given every
stratum's margins, at any common odds ratio.

One stratum is hypergeometric, tilted by odds ratio to the power of its passes; their sum is the convolution. Equal
strata are raised to their power by squaring, and the shortest factors are multiplied first, so that ten thousand
pairs cost milliseconds. Sums of products of probabilities lose no relative accuracy, which a Fourier transform
would in the tails.

With unequal weights, up to 100, the sums of a large campaign lie on half a million points: too many to convolve.
Most campaigns have two or three different weights, because some cells lost a trial or two: then the strata of one
weight are convolved, and the combinations of the passes at all weights but one are enumerated. Where those are too
many, the distribution is tilted until its mean is the observed sum; only a window around that carries probability,
a Fourier transform of the window's length is enough, and what it rounds away is small against the tail that is
asked for. Tilting is undone exactly. Source: Keich 2005.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft, optimize, special

from trialfleet_statistics.comparisons import hypergeometric
from trialfleet_statistics.estimates import Floats, Integers, floats

_UNDERFLOW = (
    np.finfo(np.float64).tiny / np.finfo(np.float64).eps
)  # subnormal numbers have lost digits, and are slow


@dataclass(frozen=True, eq=False)
class Strata:
    """Informative strata, those of equal margins and weight once with how `often`; `log_chances[g, k]`: the least
    passes in a that the margins allow + k, padded with −inf. `low` and `high`: bounds of the weighted sum;
    `observed`: the sum itself."""

    log_chances: Floats
    often: Integers
    weights: Integers
    low: int
    high: int
    observed: int
    trials: int

    @property
    def size(self) -> int:
        return int(self.often.sum())

    @property
    def even(self) -> bool:
        """Whether every weight is 1, so that the sum counts passes."""
        return bool(np.all(self.weights == 1))


def informative_strata(
    x_a: Integers, n_a: Integers, x_b: Integers, n_b: Integers, weights: Integers | None = None
) -> Strata:
    """From counts of shape (T,) each. `weights`: of a pass, positive integers; None: 1."""
    keep = informative(x_a, n_a, x_b, n_b)
    each = np.ones_like(n_a) if weights is None else weights
    margins = np.stack([n_a[keep], n_b[keep], (x_a + x_b)[keep], each[keep]], axis=1)
    rows: list[list[int]] = margins.tolist()
    tallied = sorted(Counter(tuple(row) for row in rows).items())
    often = np.array([number for _, number in tallied], dtype=np.int64)
    groups = np.array([group for group, _ in tallied], dtype=np.int64).reshape(-1, 4)
    one, two, passes, weight = groups.T
    low, high = hypergeometric.bounds(one, two, passes)
    chances = np.full((len(groups), int(np.max(high - low, initial=-1)) + 1), -np.inf)
    row, column = np.nonzero(np.arange(chances.shape[1]) <= (high - low)[:, None])
    chances[row, column] = hypergeometric.log_probability(low[row] + column, one[row], two[row], passes[row])
    return Strata(
        chances,
        often,
        weight,
        int((weight * low) @ often),
        int((weight * high) @ often),
        int(each[keep] @ x_a[keep]),
        int((n_a + n_b)[keep].sum()),
    )


def informative(x_a: Integers, n_a: Integers, x_b: Integers, n_b: Integers) -> NDArray[np.bool_]:
    """Strata in which both arms have trials, and both outcomes were seen."""
    passes, trials = x_a + x_b, n_a + n_b
    return (n_a > 0) & (n_b > 0) & (passes > 0) & (passes < trials)


def chances(strata: Strata, log_odds: float = 0.0) -> Floats:
    """P(sum = low + k) for k = 0 … high − low at the common odds ratio exp(`log_odds`), every weight being 1."""
    return convolved([factor for _, factor in by_weight(strata, tilted(strata, log_odds))])


def by_weight(strata: Strata, probabilities: Floats) -> list[tuple[int, Floats]]:
    """Each weight with the distribution of its strata's passes above their least; `probabilities` in the layout of
    `log_chances`."""
    widths = np.count_nonzero(np.isfinite(strata.log_chances), axis=1)
    rows = list(zip(probabilities, widths.tolist(), strata.often.tolist(), strata.weights.tolist(), strict=True))
    return [
        (weight, convolved([powered(row[:width], often) for row, width, often, of in rows if of == weight]))
        for weight in np.unique(strata.weights).tolist()
    ]


def convolved(distributions: Sequence[Floats]) -> Floats:
    """The distribution of the sum; of no summand, 0 for certain."""
    order = count()  # decides between factors of one length, which numpy cannot compare
    factors = [(factor.size, next(order), factor) for factor in distributions]
    heapq.heapify(factors)
    while len(factors) > 1:
        one, two = heapq.heappop(factors)[2], heapq.heappop(factors)[2]
        product = _of_two(one, two)
        heapq.heappush(factors, (product.size, next(order), product))
    return factors[0][2] if factors else np.ones(1)


def _of_two(one: Floats, two: Floats) -> Floats:
    """Of long sums, most places at both ends have underflowed: they add nothing, and are not multiplied."""
    (first, inner), (second, other) = _without_ends(one), _without_ends(two)
    found = np.zeros(one.size + two.size - 1)
    if inner.size and other.size:
        start = first + second
        found[start : start + inner.size + other.size - 1] = np.convolve(inner, other)
    return found


def _without_ends(distribution: Floats) -> tuple[int, Floats]:
    """The first place that has not underflowed, and the distribution from there to the last such place."""
    places = np.flatnonzero(distribution > _UNDERFLOW)
    first, last = (int(places[0]), int(places[-1])) if places.size else (0, -1)
    return first, distribution[first : last + 1]


def centre(strata: Strata, target: float, *, at: float = 0.0, along: Integers | None = None) -> float:
    """The shift at which the sum has the mean `target`, strictly between `low` and `high`.

    Log odds ratios are `at` + shift × `along`: one of each group of strata, None for 1 in all.
    """
    steps, slope = _steps(strata), floats(1 if along is None else along)
    often = strata.often * strata.weights

    def excess(shift: float) -> float:
        means = floats(tilted(strata, floats(at + shift * slope)) @ steps)
        return float(means @ often) + strata.low - target

    reach = 1.0
    while excess(reach) < 0 or excess(-reach) > 0:
        reach *= 2
    return float(optimize.brentq(excess, -reach, reach, xtol=1e-13, rtol=1e-14))


def tilted(strata: Strata, log_odds: float | Floats = 0.0) -> Floats:
    """Probabilities at the odds ratio exp(`log_odds`), one for all or one per group, in the layout of
    `log_chances`."""
    logs = _unscaled(strata, log_odds)
    if not logs.size:
        return logs
    tilted = np.exp(logs - logs.max(axis=1, keepdims=True))
    return floats(tilted / tilted.sum(axis=1, keepdims=True))


def log_total(strata: Strata, log_odds: float | Floats) -> float:
    """ln Σ (ways × odds ratio to the power of the passes above the least), over all strata: what `tilted` divides
    by."""
    return float(special.logsumexp(_unscaled(strata, log_odds), axis=1) @ strata.often)


def _unscaled(strata: Strata, log_odds: float | Floats) -> Floats:
    each = np.broadcast_to(log_odds, strata.often.shape)
    return floats(strata.log_chances + each[:, None] * _steps(strata))


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


@lru_cache(maxsize=256)
def equal_arms(n: int) -> tuple[Floats, ...]:
    """P(passes in a = least + k) for 1 … 2n − 1 passes in both arms of `n` trials each."""
    passes = np.arange(1, 2 * n)
    least = np.maximum(0, passes - n)
    every = tilted(informative_strata(least, np.full_like(passes, n), passes - least, np.full_like(passes, n)))
    widths = np.minimum(passes, 2 * n - passes) + 1
    return tuple(row[:width].copy() for row, width in zip(every, widths.tolist(), strict=True))


COMBINATIONS = 5_000  # from which tilting is faster
OUTSIDE = 1e-20  # at most this probability is left out of the window, on either side


class Tails(NamedTuple):
    """P(sum < observed), P(sum = observed), P(sum > observed)."""

    below: float
    own: float
    above: float


def tails(strata: Strata, log_odds: float = 0.0) -> Tails:
    """At the common odds ratio exp(`log_odds`)."""
    if strata.even:
        return split(chances(strata, log_odds), strata.observed - strata.low)
    if _combinations(strata) <= COMBINATIONS:
        groups = [(weight, of[:, None]) for weight, of in by_weight(strata, tilted(strata, log_odds))]
        return Tails(*(float(side[0]) for side in enumerated(groups, np.array([strata.observed - strata.low]))))
    return _tilted_tails(strata, log_odds)


def split(distribution: Floats, at: int) -> Tails:
    """Of P(sum = k) = `distribution[k]` around k = `at`."""
    return Tails(float(distribution[:at].sum()), float(distribution[at]), float(distribution[at + 1 :].sum()))


def combinations(weights: Integers, most: Integers) -> int:
    """Of the passes at all weights but the one with the most. `most`: passes that each stratum can have above its
    least."""
    _, group = np.unique(weights, return_inverse=True)
    sizes = np.bincount(group.ravel(), most) + 1
    return math.prod(sorted(sizes.astype(int).tolist())[:-1])


def _combinations(strata: Strata) -> int:
    steps = np.count_nonzero(np.isfinite(strata.log_chances), axis=1) - 1
    return combinations(strata.weights, steps * strata.often)


def enumerated(groups: Sequence[tuple[int, Floats]], at: Integers) -> tuple[Floats, Floats, Floats]:
    """P(sum < at), P(sum = at) and P(sum > at) of Σ weight × passes, for each column: a campaign. `groups`: each
    weight with the distributions of its passes, shape (passes, campaigns). `at`: shape (campaigns,)."""
    *others, (weight, last) = sorted(groups, key=lambda group: len(group[1]))
    left, chance = at[None, :], np.ones((1, at.size))
    for step, factor in others:
        left = (left[:, None] - step * np.arange(len(factor))[None, :, None]).reshape(-1, at.size)
        chance = (chance[:, None] * factor[None, :]).reshape(-1, at.size)
    passes, rest = np.divmod(left, weight)
    none = np.zeros((1, at.size))
    fewer = np.concatenate([none, np.cumsum(last, axis=0)])  # P(passes < k)
    more = np.concatenate([np.cumsum(last[::-1], axis=0)[::-1], none])  # P(passes ≥ k)
    exactly = np.concatenate([none, last, none])
    own = np.where(rest == 0, passes, -1)

    def summed(of: Floats, k: Integers) -> Floats:
        return floats((chance * np.take_along_axis(of, k.clip(0, len(of) - 1), axis=0)).sum(axis=0))

    return summed(fewer, passes + (rest > 0)), summed(exactly, own + 1), summed(more, passes + 1)


def _tilted_tails(strata: Strata, log_odds: float) -> Tails:
    """P(sum = k) is what the tilted distribution gives it, times exp(scale − shift × (k − observed)). That factor
    falls on the side that the shift points to, the smaller one; the other is what is left of 1."""
    inside = min(max(strata.observed, strata.low + 0.5), strata.high - 0.5)
    shift = centre(strata, inside, at=log_odds, along=strata.weights)
    tilt = floats(log_odds + shift * strata.weights)
    before, window = _window(strata, tilt)
    scale = log_total(strata, tilt) - log_total(strata, log_odds) - shift * (strata.observed - strata.low)
    own = float(window[before]) * math.exp(scale)
    side = window[before + 1 :] if shift >= 0 else window[:before][::-1]
    small = float(side @ np.exp(scale - abs(shift) * np.arange(1, side.size + 1)))
    rest = max(0.0, 1.0 - own - small)
    return Tails(rest, own, small) if shift >= 0 else Tails(small, own, rest)


def _window(strata: Strata, tilt: Floats) -> tuple[int, Floats]:
    """The tilted distribution around the observed sum, and how many points of it lie before that one."""
    probabilities, at = tilted(strata, tilt), strata.observed - strata.low
    reach = _reach(strata, probabilities)
    before, after = min(at, reach), min(strata.high - strata.observed, reach)
    length = fft.next_fast_len(before + after + 1, real=True)
    product = np.ones(length // 2 + 1, dtype=np.complex128)
    for weight, factor in by_weight(strata, probabilities):
        places = weight * np.arange(factor.size) % length
        product *= fft.rfft(np.bincount(places, factor, minlength=length))
    found = np.roll(fft.irfft(product, length), before - at)
    return before, np.maximum(floats(found[: before + after + 1]), 0.0)


def _reach(strata: Strata, probabilities: Floats) -> int:
    """How far from its mean the sum lies with a probability below `OUTSIDE`, by Bernstein's inequality: each
    stratum's passes are a sum of independent zeros and ones, so that no step exceeds the largest weight."""
    steps = np.arange(probabilities.shape[1], dtype=np.float64)
    means = floats(probabilities @ steps)
    spreads = floats(probabilities @ steps**2) - means**2
    variance = float(np.maximum(spreads, 0.0) @ (strata.often * strata.weights**2))
    logs = -math.log(OUTSIDE)
    step = logs * int(strata.weights.max()) / 3
    return math.ceil(step + math.sqrt(step * step + 2 * logs * variance)) + 1
