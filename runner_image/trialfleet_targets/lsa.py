"""Files that import the same things, though their words differ: latent semantic analysis of imports.

Source: Deerwester et al. 1990; the decomposition: Halko, Martinsson & Tropp 2011, algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import numpy.typing as npt

from trialfleet_targets.arrays import Floats, Matrix, times, transposed
from trialfleet_targets.snapshot import SourceFile

Coordinates = npt.NDArray[np.float32]
RANK = 32
OVERSAMPLING = 10
POWER_ITERATIONS = 2
MIN_FILES = 50
MAX_ADDED = 5
MIN_SIMILAR = 0.3
DISCOUNT = 0.4
DIGITS = 6  # of a stored coordinate, so that another number of threads gives the same bytes


def incidence(files: Mapping[str, SourceFile]) -> Matrix:
    """Files × imported symbols, 1 where a file imports it. A symbol is its name where it is defined; an import
    without names (all of a module, a package) counts as its module. Rows and columns ascend by name."""
    taken = [_imported(files[path]) for path in sorted(files)]
    number = {name: at for at, name in enumerate(sorted(set[str]().union(*taken)))}
    columns = [number[name] for names in taken for name in sorted(names)]
    starts = np.cumsum([0, *(len(names) for names in taken)])
    return Matrix((np.ones(len(columns)), columns, starts), shape=(len(taken), len(number)))


def coordinates(matrix: Matrix, *, rank: int = RANK, seed: int = 0) -> Coordinates:
    """Each row as a vector of length 1 in the space of the largest singular values; 0 for a row without entries.
    Shape: rows × at most `rank`."""
    rows, columns = matrix.shape
    width = min(rank + OVERSAMPLING, rows, columns)
    if width == 0:
        return np.zeros((rows, 0), dtype=np.float32)
    across = transposed(matrix)
    basis = _orthonormal(times(matrix, np.random.default_rng(seed).standard_normal((columns, width))))
    for _ in range(POWER_ITERATIONS):
        basis = _orthonormal(times(matrix, _orthonormal(times(across, basis))))
    left, values, _ = np.linalg.svd(times(across, basis).T, full_matrices=False)
    dimensions = min(rank, int((values > 1e-9 * max(values.max(), 1e-300)).sum()))
    placed: Floats = basis @ (left[:, :dimensions] * values[:dimensions])
    lengths = np.linalg.norm(placed, axis=1, keepdims=True)
    placed = np.divide(placed, lengths, out=np.zeros_like(placed), where=lengths > 1e-9)
    return placed.round(DIGITS).astype(np.float32)


def expand(places: Coordinates, seeds: Floats, allowed: npt.NDArray[np.bool_]) -> Floats:
    """Scores of the files that join the seeds: at most five of those `allowed` that are no seed (score 0) and
    whose cosine to the seeds' centre, weighted by their scores, is at least .3; each gets .4 of the least seed's
    score. All 0 below 50 files."""
    added = np.zeros_like(seeds)
    chosen = np.flatnonzero(seeds)
    if len(seeds) < MIN_FILES or not len(chosen):
        return added
    centre = (seeds[chosen, None] * places[chosen]).sum(axis=0)
    length = float(np.linalg.norm(centre))
    if length < 1e-9:
        return added
    similar = cast(Floats, np.round(places @ (centre / length), DIGITS))
    similar[~allowed | (seeds > 0)] = -1
    near = np.flatnonzero(similar >= MIN_SIMILAR)
    nearest = near[np.lexsort((near, -similar[near]))][:MAX_ADDED]
    added[nearest] = DISCOUNT * seeds[chosen].min()
    return added


def _imported(file: SourceFile) -> set[str]:
    found: set[str] = set()
    for one in file.facts.imports:
        names = {there for there, _ in one.names if there != "*"}
        found |= names or {one.module}
    return found - {""}


def _orthonormal(block: Floats) -> Floats:
    return np.linalg.qr(block)[0]
