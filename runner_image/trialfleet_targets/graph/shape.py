"""What the shape of the graph says of its files: betweenness, and groups that depend on one another.

Betweenness: on how many shortest ways from file to file a file lies, estimated from some of the starts. Source:
Brandes 2001; starts as pivots: Brandes & Pich 2007. Groups: Blondel et al. 2008 (Louvain), as networkx has it.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from trialfleet_targets.arrays import Floats, Ints, times, transposed
from trialfleet_targets.graph.model import FileGraph

MIN_STARTS = 50
AT_ONCE = 64  # starts that are searched together: 10,000 files × 64 × 8 bytes a table


def starts(files: int, *, seed: int = 0) -> npt.NDArray[np.int64]:
    """max(50, 2√files) of the files, or all when there are no more; ascending."""
    wanted = max(MIN_STARTS, ceil(2 * sqrt(files)))
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
    back = transposed(ahead)
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


def communities(graph: FileGraph, weights: Floats, *, seed: int = 0) -> Ints:
    """The group of each file, numbered by their first files; `weights`: one for each edge, directions alike."""
    import networkx as nx

    joined = cast(Any, nx.Graph())
    joined.add_nodes_from(range(graph.size))
    both = graph.matrix(weights)
    pairs = (both + transposed(both)).tocoo()
    joined.add_weighted_edges_from(
        (int(one), int(other), float(weight))
        for one, other, weight in zip(pairs.row, pairs.col, pairs.data, strict=True)
        if one < other
    )
    found = cast("list[set[int]]", nx.community.louvain_communities(joined, weight="weight", seed=seed))
    groups = np.zeros(graph.size, dtype=np.int32)
    for number, members in enumerate(sorted(found, key=min)):
        groups[list(members)] = number
    return groups
