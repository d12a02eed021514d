"""The posterior of a mean rate and its between-task correlation, on a grid: deterministic, no sampling.

Passes of task t are beta-binomial with mean `mu` and intra-class correlation `icc`, the share of one trial's
variance that lies between tasks: the rates are Beta(mu s, (1 − mu) s) with s = 1/icc − 1. Both priors are flat on
(0, 1).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy import special

from trialfleet_statistics.estimates import Floats, Integers, floats

GRIDS = ((120, 40), (240, 80), (480, 160), (960, 320), (1920, 640))  # midpoints of mu × icc
FINE = (480, 160)  # the first grid whose quantiles may be final
NEGLIGIBLE = 1e-10  # of the posterior's peak: what the box may leave out
SETTLED_MU = 1e-4  # how far a quantile may still move from one grid to a finer one
SETTLED_ICC = 5e-4  # read with two digits at most
LOGARITHMS = 6  # cost about as much as one log-gamma

Box = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Marginals:
    """Quantiles of both parameters' marginal posteriors, in the order they were asked for."""

    mu: Floats
    icc: Floats


def marginals(x: Integers, n: Integers, probabilities: Floats) -> Marginals:
    """Quantiles of the marginal posteriors, from ever finer grids on boxes that close in on the mass.

    One coarse pass is wrong where the posterior is concentrated, since it then lies in a few cells. Where a long
    tail keeps the box wide, only a finer grid tells: the same grid twice would agree with itself, however wrong.
    """
    box, found = _pass(x, n, ((0.0, 1.0), (0.0, 1.0)), GRIDS[0], probabilities)
    for shape in GRIDS[1:]:
        before = found
        box, found = _closed_in(x, n, box, shape, probabilities)
        if shape >= FINE and _settled(before, found):
            break
    return found


def _closed_in(x: Integers, n: Integers, box: Box, shape: tuple[int, int], at: Floats) -> tuple[Box, Marginals]:
    """Passes of one shape until the box keeps most of its area."""
    while True:
        closer, found = _pass(x, n, box, shape, at)
        if _area(closer) > _area(box) / 2:
            return closer, found
        box = closer


def _pass(x: Integers, n: Integers, box: Box, shape: tuple[int, int], at: Floats) -> tuple[Box, Marginals]:
    """One grid over the box: the box that its mass asks for, and the quantiles that it gives.

    The box's sides are not mu and icc but u and v with mu = u² (3 − 2 u) and icc = v³. With many reps the
    posterior of icc can sit within 1/n of 0 and still have a tail up to 1, and that of mu close to 0 or 1: cells
    of equal width in mu and icc would miss what lies there.
    """
    u_edges, v_edges = (np.linspace(low, high, cells + 1) for (low, high), cells in zip(box, shape, strict=True))
    u, v = _midpoints(u_edges), _midpoints(v_edges)
    density = _density(x, n, _mu(u), v * v * v)
    closer = (_around(u_edges, density.max(axis=1)), _around(v_edges, density.max(axis=0)))
    by_u, by_v = density @ (v * v), (u * (1 - u)) @ density
    mu = _mu(_quantiles(u_edges, by_u * u * (1 - u), at))
    return closer, Marginals(mu, _quantiles(v_edges, by_v * v * v, at) ** 3)


def _mu(u: Floats) -> Floats:
    return floats(u * u * (3 - 2 * u))


def _area(box: Box) -> float:
    (a, b), (c, d) = box
    return (b - a) * (d - c)


def _density(x: Integers, n: Integers, mu: Floats, icc: Floats) -> Floats:
    """Posterior density on the grid mu × icc, as a share of its largest value."""
    size = 1 / icc - 1
    a, b = mu[:, None] * size, (1 - mu)[:, None] * size
    log = _log_rising(a, x) + _log_rising(b, n - x) - _log_rising(size, n)
    return floats(np.exp(log - log.max()))


def _log_rising(base: Floats, counts: Integers) -> Floats:
    """Σ over tasks of log Γ(base + count) − log Γ(base): of base (base + 1) … (base + count − 1)."""
    risen: list[int] = [count for count in counts.tolist() if count > 0]
    most, distinct = max(risen, default=0), Counter(risen)
    if most <= LOGARITHMS * (len(distinct) + 1):
        total, factor = np.zeros_like(base), np.empty_like(base)  # in place: the grid is filled often
        for step in range(most):
            np.log(np.add(base, step, out=factor), out=factor)
            factor *= sum(count > step for count in risen)
            total += factor
        return total
    gammas = (tasks * floats(special.gammaln(base + count)) for count, tasks in distinct.items())
    return floats(sum(gammas, -len(risen) * floats(special.gammaln(base))))


def _midpoints(edges: Floats) -> Floats:
    return floats((edges[1:] + edges[:-1]) / 2)


def _around(edges: Floats, peaks: Floats) -> tuple[float, float]:
    """From one cell before the first heavy cell to one after the last: it may hold what its midpoint missed."""
    cells = np.flatnonzero(peaks > NEGLIGIBLE)
    return float(edges[max(0, cells[0] - 1)]), float(edges[min(edges.size - 1, cells[-1] + 2)])


def _quantiles(edges: Floats, mass: Floats, at: Floats) -> Floats:
    """Where the cumulated mass, linear between the cells' edges, reaches the probabilities."""
    cumulated = np.concatenate([[0.0], np.cumsum(mass)])
    return floats(np.interp(at, cumulated / cumulated[-1], edges))


def _settled(before: Marginals, after: Marginals) -> bool:
    mu, icc = np.abs(before.mu - after.mu).max(), np.abs(before.icc - after.icc).max()
    return bool(mu < SETTLED_MU and icc < SETTLED_ICC)
