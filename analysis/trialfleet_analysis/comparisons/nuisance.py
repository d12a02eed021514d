"""The size of an unconditional test: its rejection probability at the worst common pass rate.

With both arms at rate π, passes in both are binomial and, given them, the table is hypergeometric. So a region's
probability is Σ_m w_m B(m; N, π), where w_m is the probability of the region given m passes in both: N + 1 numbers
instead of a table. Its supremum over π is found on a grid in φ, π = sin² φ, and refined around every maximum.

Why the grid cannot miss it: at a maximum the curvature in φ is at most 4 N times the value (both terms of the
second derivative of a binomial's logarithm sum to that where the first vanishes). A step of 1 / (16 √N) therefore
loses less than 1 % at the nearest point, and whatever lies within 1 % of the best is refined.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from trialfleet_analysis.comparisons.hypergeometric import log_choose
from trialfleet_analysis.estimates import TIES, Floats, floats

_STEPS_PER_ROOT = 16
_NEAR_BEST = 0.99
_POINTS = np.linspace(-1.0, 1.0, 17)


def supremum(weights: Floats) -> float:
    """Largest Σ_m w_m B(m; N, π) over π in [0, 1]; `weights`: w_0 … w_N. Relative error below 1e-8."""
    angles, binomials = _grid(weights.size - 1)
    values = binomials @ weights
    best = float(values.max())
    if best >= 1 or best == 0:
        return best
    rises, falls = values[1:] >= values[:-1], values[1:] <= values[:-1]
    peak = values >= _NEAR_BEST * best
    peak[1:] &= rises
    peak[:-1] &= falls
    return max(best, _refined(weights, angles[peak], float(angles[1])))


def exceeds(weights: Floats, limit: float) -> bool:
    """Whether `supremum` is above the limit; the refinement is spared where the grid decides."""
    best = float((_grid(weights.size - 1)[1] @ weights).max())
    if best > limit * (1 + TIES) or best < _NEAR_BEST * limit:
        return best > limit
    return supremum(weights) > limit * (1 + TIES)


def _refined(weights: Floats, centres: Floats, reach: float) -> float:
    """Best value around the centres (φ): each bracket is searched in finer steps, twice, then a parabola is laid
    through the best point and its neighbours. Beyond 0 and π / 2 the value continues as its mirror image."""
    angles, _, best = _searched(weights, centres, reach)
    finer = np.take_along_axis(angles, best, axis=1)[:, 0]
    _, values, best = _searched(weights, finer, reach * float(_POINTS[1] - _POINTS[0]))
    before, here, after = np.take_along_axis(values, best + np.array([-1, 0, 1]), axis=1).T
    bend = 2 * here - before - after
    rise = np.divide((after - before) ** 2, 8 * bend, out=np.zeros_like(bend), where=bend > 0)
    return min(1.0, max(float(values.max()), float((here + rise).max())))


def _searched(weights: Floats, centres: Floats, reach: float) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Angles around each centre, their values, and where the best with two neighbours is: shape (centres, 1)."""
    angles = centres[:, None] + reach * _POINTS
    values = (_binomials(weights.size - 1, angles.ravel()) @ weights).reshape(angles.shape)
    return angles, values, np.clip(np.argmax(values, axis=1), 1, _POINTS.size - 2)[:, None]


@lru_cache(maxsize=4)
def _grid(trials: int) -> tuple[Floats, Floats]:
    angles = np.linspace(0.0, np.pi / 2, int(np.ceil(_STEPS_PER_ROOT * np.sqrt(trials) * np.pi / 2)) + 1)
    return angles, _binomials(trials, angles)


def _binomials(trials: int, angles: Floats) -> Floats:
    """B(m; N, sin² φ), shape (angles, N + 1)."""
    passes = np.arange(trials + 1)
    hit, miss = np.sin(angles)[:, None] ** 2, np.cos(angles)[:, None] ** 2
    miss[hit == 1] = 0.0  # at the float nearest to π / 2 the cosine is not 0
    return floats(np.exp(log_choose(trials) + special.xlogy(passes, hit) + special.xlogy(trials - passes, miss)))
