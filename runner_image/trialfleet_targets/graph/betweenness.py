"""Betweenness: on how many shortest ways from file to file a file lies, estimated from some of the starts.

Source: Brandes 2001; starts as pivots: Brandes & Pich 2007.
"""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np
import numpy.typing as npt

from trialfleet_targets.graph.model import FileGraph
from trialfleet_targets.matrices import Floats, times, turned

FEWEST_STARTS = 50
AT_ONCE = 64  # starts whose waves travel together: 10,000 files × 64 × 8 bytes a table


def starts(files: int, *, seed: int = 0) -> npt.NDArray[np.int64]:
    """max(50, 2√files) of the files, or all when there are no more; ascending."""
    wanted = max(FEWEST_STARTS, ceil(2 * sqrt(files)))
    if wanted >= files:
        return np.arange(files)
    return np.sort(np.random.default_rng(seed).choice(files, size=wanted, replace=False))


def betweenness(graph: FileGraph, chosen: npt.NDArray[np.int64]) -> Floats:
    """Share of the shortest ways from the `chosen` files to all others that lead through a file, in the direction
    of the dependencies, all kinds alike; as if all n files had been starts, divided by (n - 1)(n - 2)."""
    n = graph.size
    if n < 3 or not len(chosen):
        return np.zeros(n)
    ahead = graph.matrix(np.ones(len(graph.sources)))
    back = turned(ahead)
    total = np.zeros(n)
    for at in range(0, len(chosen), AT_ONCE):
        roots = chosen[at : at + AT_ONCE]
        columns = np.arange(len(roots))
        ways = np.zeros((n, len(roots)))
        ways[roots, columns] = 1
        waves = [ways.copy()]  # ways of each length, by file and start
        while True:
            reached = times(back, waves[-1])
            reached[ways > 0] = 0
            if not reached.any():
                break
            ways += reached
            waves.append(reached)
        credit = np.zeros_like(ways)
        for earlier, later in zip(waves[-2::-1], waves[:0:-1], strict=True):
            share = np.divide(1 + credit, later, out=np.zeros_like(later), where=later > 0)
            credit += earlier * times(ahead, share)
        credit[roots, columns] = 0
        total += credit.sum(axis=1)
    return total * (n / len(chosen)) / ((n - 1) * (n - 2))
