"""Katz propagation: scores of seeds spread over all walks of the dependency graph; shorter walks count more.

Source: Katz 1953, "A new status index derived from sociometric analysis", personalised by its seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from trialfleet_targets.arrays import Floats, Ints, Matrix, times, transposed
from trialfleet_targets.graph.model import KINDS, FileGraph
from trialfleet_targets.syntax_facts import EdgeKind

KIND_WEIGHTS = {
    EdgeKind.CALL: 0.7,
    EdgeKind.EXTENDS: 0.8,
    EdgeKind.TYPE: 0.3,
    # The source gives the three above. An import of which no call is known lies between them.
    EdgeKind.VALUE: 0.5,
    EdgeKind.DYNAMIC: 0.5,
    EdgeKind.BARREL: 0.5,
}
REVERSE = 0.7
GHOST = 0.6
DAMPING = 0.85
RADIUS_ITERATIONS = 10
MAX_ITERATIONS = 50
TOLERANCE = 1e-6
LEAST = 1e-4


@dataclass(frozen=True, eq=False)
class Ghosts:
    """Pairs of files that change together with this confidence, though neither may import the other."""

    first: Ints
    second: Ints
    confidence: Floats


def adjacency(graph: FileGraph, confidence: Floats, ghosts: Ghosts | None = None) -> Matrix:
    """Entry (i, j): what i gets of what j has. Along a dependency: weight of its kind × `confidence` of the edge
    (one for each edge of the graph); against it: × .7; between files that no dependency joins: .6 × the ghost's
    confidence. Of several the largest counts."""
    by_kind = np.asarray([KIND_WEIGHTS[kind] for kind in KINDS])
    forward = graph.matrix(by_kind[graph.kinds] * confidence)
    both = Matrix(transposed(forward).maximum(forward * REVERSE))
    if ghosts is None or not len(ghosts.first):
        return both
    ghostly = Matrix((GHOST * ghosts.confidence, (ghosts.first, ghosts.second)), shape=both.shape)
    ghostly = Matrix(ghostly.maximum(transposed(ghostly)))
    return Matrix(both + ghostly - ghostly.multiply(both > 0))


def radius(matrix: Matrix, *, iterations: int = RADIUS_ITERATIONS) -> float:
    """The largest eigenvalue's size, by power iteration from a vector of ones; 0 when nothing is joined.

    It is the growth over the last two steps, √(|A²v| / |v|): around a hub, which much imports, the largest
    eigenvalues are a pair of opposite signs, growth alternates from step to step, and one step alone may be 15 %
    below, so that α·A would hand on all it has instead of .85 of it.
    """
    vector = np.ones(matrix.shape[0])
    before = found = 0.0
    for _ in range(iterations):
        moved = times(matrix, vector)
        before, found = found, float(np.linalg.norm(moved)) / max(float(np.linalg.norm(vector)), 1e-300)
        if found == 0:
            return 0.0
        vector = moved / np.linalg.norm(moved)
    return sqrt(before * found) if before else found


def propagate(matrix: Matrix, seeds: Floats, *, radius: float) -> Floats:
    """x ← α·A·x + s with α = .85 / radius, until it moves less than 1e-6 or 50 times; then divided by its maximum,
    and what is below 1e-4 set to 0. All 0 without a seed.

    >>> path = Matrix(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    >>> propagate(path, np.array([1.0, 0.0, 0.0]), radius=2**0.5).round(3).tolist()
    [1.0, 0.941, 0.565]
    """
    if not seeds.any():
        return np.zeros_like(seeds)
    alpha = DAMPING / radius if radius > 0 else 0.0
    x = seeds.astype(np.float64)
    moves = x.copy()  # by the k-th step x moves by (αA)^k·s: half the work of recomputing x
    for _ in range(MAX_ITERATIONS):
        moves = times(matrix, moves)
        moves *= alpha
        x += moves
        if sqrt(float(moves @ moves)) < TOLERANCE:
            break
    x /= x.max()
    return np.where(x < LEAST, 0.0, x)
