"""Group-sequential tests in the normal limit: bounds, crossing probabilities, and estimates after a stop.

Z_1 … Z_K are normal with mean θ √t_k, variance 1 and correlation √(t_i / t_j): θ is the drift, the expected Z at
the end. Integrals by Simpson's rule on the grid of Jennison & Turnbull 2000, section 19.2, r = 18.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize, special

from trialfleet_statistics.estimates import Floats, floats, share
from trialfleet_statistics.sequential.design import SequentialDesign

_FINENESS = 18
_NEVER = 12.0  # the bound of a look that may spend nothing more
_FARTHEST = 40.0  # in drift units: no campaign is this clear


@dataclass(frozen=True, eq=False)
class _Grid:
    """Points of Z_k among campaigns that have not stopped, with their density times the rule's weight."""

    z: Floats
    mass: Floats
    time: float


def normal_bounds(design: SequentialDesign) -> Floats:
    """The |Z_k| at which each look rejects, shape (looks,), equal to rpact's `asKD` and `asOF` to 1e-6.

    >>> normal_bounds(SequentialDesign.of(25)).round(4).tolist()
    [3.0902, 2.7141, 2.4728, 2.2799, 2.114]
    """
    return floats(_bounds(design))


@lru_cache(maxsize=64)
def _bounds(design: SequentialDesign) -> tuple[float, ...]:
    levels, times = design.levels() / 2, design.times()
    bounds: list[float] = []
    grid: _Grid | None = None
    steps = floats(np.diff(levels, prepend=0.0))
    for place in range(len(design.looks)):
        time, newly = float(times[place]), float(steps[place])
        bounds.append(_bound(grid, time, newly))
        grid = _next_grid(grid, time, (-bounds[-1], bounds[-1]), 0.0)
    return tuple(bounds)


def _bound(grid: _Grid | None, time: float, newly: float) -> float:
    if grid is None:
        return float(-special.ndtri(newly))
    if newly <= 0:
        return _NEVER

    def excess(bound: float) -> float:
        return _upper_crossing(grid, time, bound, 0.0) - newly

    return float(optimize.brentq(excess, 0.0, _NEVER, xtol=1e-12))


def _next_grid(grid: _Grid | None, time: float, bounds: tuple[float, float], drift: float) -> _Grid:
    """Between the lower and the upper bound."""
    z, weight = _points(drift * float(np.sqrt(time)), *bounds)
    if grid is None:
        return _Grid(z, weight * _density(z - drift * np.sqrt(time)), time)
    step = time - grid.time
    ahead = z[:, None] * np.sqrt(time) - grid.z[None, :] * np.sqrt(grid.time) - drift * step
    joint = _density(ahead / np.sqrt(step)) @ grid.mass
    return _Grid(z, weight * joint * np.sqrt(time / step), time)


def _upper_crossing(grid: _Grid | None, time: float, bound: float, drift: float) -> float:
    """P(Z ≥ bound at this time, not stopped before)."""
    if grid is None:
        return float(special.ndtr(drift * math.sqrt(time) - bound))
    step = time - grid.time
    ahead = (grid.z * math.sqrt(grid.time) + drift * step - bound * math.sqrt(time)) / math.sqrt(step)
    return float(np.sum(grid.mass * floats(special.ndtr(ahead))))


def _points(centre: float, low: float, high: float) -> tuple[Floats, Floats]:
    """Simpson's points and weights for low … high, densest around `centre`."""
    outer = 3 + 4 * np.log(_FINENESS / np.arange(1, _FINENESS))
    inner = -3 + 3 * np.arange(4 * _FINENESS + 1) / (2 * _FINENESS)
    odd = centre + np.concatenate([-outer, inner, outer[::-1]])
    odd = np.unique(np.concatenate([[low, high], odd[(odd > low) & (odd < high)]]))
    every = np.empty(2 * odd.size - 1)
    every[::2], every[1::2] = odd, (odd[1:] + odd[:-1]) / 2
    width = np.diff(odd)
    weight = np.zeros(every.size)
    weight[1::2] = 4 * width / 6
    weight[:-1:2] += width / 6
    weight[2::2] += width / 6
    return floats(every), floats(weight)


def _density(z: Floats) -> Floats:
    return floats(np.exp(-z * z / 2) / np.sqrt(2 * np.pi))


def crossing_probabilities(
    bounds: Sequence[float] | Floats, times: Sequence[float] | Floats, drift: float
) -> Floats:
    """P(the first crossing is upwards, at look k), shape (looks,), of campaigns that stop at |Z_k| ≥ bounds[k].

    >>> design = SequentialDesign.of(25, spending="obrien_fleming")
    >>> round(float(crossing_probabilities(normal_bounds(design), design.times(), 2.8016).sum()), 5)
    0.7903
    """
    return stopping_probabilities(bounds, times, drift).upwards


@dataclass(frozen=True, eq=False)
class StoppingProbabilities:
    """P(a campaign ends so at look k), shape (looks,) each. `given_up`: before the last look."""

    upwards: Floats
    downwards: Floats
    given_up: Floats


def stopping_probabilities(
    bounds: Sequence[float] | Floats,
    times: Sequence[float] | Floats,
    drift: float,
    *,
    futile_below: Sequence[float] | Floats = (),
) -> StoppingProbabilities:
    """Of campaigns that stop at |Z_k| ≥ bounds[k]. `futile_below`: of the looks before the last, the |Z_k| below
    which they are given up; empty: they are not.

    >>> design = SequentialDesign.of(25)
    >>> rule = [0, 0, 0.2, 0.8]
    >>> found = stopping_probabilities(normal_bounds(design), design.times(), 2.8016, futile_below=rule)
    >>> round(float(found.upwards.sum()), 3), round(float(found.given_up.sum()), 3)
    (0.774, 0.05)
    """
    found = np.zeros((3, len(bounds)))
    grid: _Grid | None = None
    for at, (bound, moment) in enumerate(zip(bounds, times, strict=True)):
        time, high = float(moment), float(bound)
        low = min(float(futile_below[at]), high) if at < len(futile_below) else 0.0
        up, above, below, not_down = (_upper_crossing(grid, time, z, drift) for z in (high, low, -low, -high))
        going = 1.0 if grid is None else float(grid.mass.sum())
        found[:, at] = up, max(0.0, going - not_down), below - above
        sides = [(-high, -low), (low, high)] if low else [(-high, high)]
        grids = [_next_grid(grid, time, edges, drift) for edges in sides]
        z, mass = (np.concatenate(part) for part in zip(*((one.z, one.mass) for one in grids), strict=True))
        grid = _Grid(floats(z), floats(mass), time)
    return StoppingProbabilities(*(floats(row) for row in found))


def upper_tail(bounds: Floats, times: Floats, look: int, z: float, drift: float) -> float:
    """P(an outcome further towards a than Z = `z` at `look`, from 1) by stage-wise ordering: an upper crossing at
    an earlier look, or no crossing before it and Z ≥ z."""
    earlier = slice(0, look - 1)
    return tail_between(-bounds[earlier], bounds[earlier], times[:look], z, drift)


def tail_between(lower: Floats, upper: Floats, times: Floats, z: float, drift: float = 0.0) -> float:
    """`upper_tail` at the last of `times`, where looks before it stop at Z ≤ `lower` and at Z ≥ `upper`, both of
    shape (looks − 1,)."""
    found, grid = 0.0, None
    for low, high, time in zip(lower, upper, times[:-1], strict=True):
        found += _upper_crossing(grid, float(time), float(high), drift)
        grid = _next_grid(grid, float(time), (float(low), float(high)), drift)
    return found + _upper_crossing(grid, float(times[-1]), z, drift)


@dataclass(frozen=True)
class DriftEstimate:
    """Median-unbiased drift with stage-wise limits, in units of θ."""

    median: float
    low: float
    high: float


def drift_estimate(design: SequentialDesign, look: int, z: float, *, level: float = 0.95) -> DriftEstimate:
    """The drifts at which what was seen at `look`, from 1, or more has probability ½, and (1 ∓ level) / 2.

    Source: Fairbanks & Madsen 1982; Tsiatis, Rosner & Mehta 1984.

    >>> found = drift_estimate(SequentialDesign.of(25), 3, 2.6)
    >>> round(found.median, 5), round(found.low, 5), round(found.high, 5)
    (3.27888, 0.66851, 5.83777)
    """
    tail = (1 - share(level, "level")) / 2
    bounds, times = normal_bounds(design), design.times()

    def at(chance: float) -> float:
        def excess(drift: float) -> float:
            return upper_tail(bounds, times, look, z, drift) - chance

        start = z / float(np.sqrt(times[look - 1]))  # earlier looks may have all the chance there, so 0 is inside
        return float(optimize.brentq(excess, min(start, 0.0) - _FARTHEST, max(start, 0.0) + _FARTHEST, xtol=1e-10))

    return DriftEstimate(median=at(0.5), low=at(tail), high=at(1 - tail))
