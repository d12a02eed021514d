"""Groups of files that depend on one another more than on others.

Source: Blondel et al. 2008 (Louvain), as networkx has it.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from trialfleet_targets.graph.model import FileGraph, Ints
from trialfleet_targets.matrices import Floats, turned


def communities(graph: FileGraph, weights: Floats, *, seed: int = 0) -> Ints:
    """The group of each file, numbered by their first files; `weights`: one for each edge, directions alike."""
    import networkx as nx

    joined = cast(Any, nx.Graph())
    joined.add_nodes_from(range(graph.size))
    both = graph.matrix(weights)
    pairs = (both + turned(both)).tocoo()
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
