"""Hubs and authorities: files that use much, and files that much uses.

Source: Kleinberg 1999, with the random jump of Ng, Zheng & Jordan 2001.
"""

from __future__ import annotations

from math import log2

import numpy as np

from trialfleet_targets.facts import EdgeKind
from trialfleet_targets.graph.model import FileGraph, Flags
from trialfleet_targets.matrices import Floats, times, turned

TELEPORT = 0.15
MAX_ITERATIONS = 30
TOLERANCE = 1e-6
WHOLE = log2(6)  # five names are a whole dependency
LEAST_SPECIFIC = 0.2
TYPE_ONLY = 0.3
DYNAMIC = 0.5
BARREL = 0.3


def specificity(graph: FileGraph) -> Floats:
    """How much each edge says: log2(names + 1) / log2 6, at least .2; × .3 for types alone, × .5 when dynamic."""
    weights: Floats = np.maximum(np.log2(graph.symbols + 1.0) / WHOLE, LEAST_SPECIFIC)
    weights[graph.has_kind(EdgeKind.TYPE)] *= TYPE_ONLY
    weights[graph.has_kind(EdgeKind.DYNAMIC)] *= DYNAMIC
    return weights


def hits(graph: FileGraph, barrels: Flags) -> tuple[Floats, Floats]:
    """Hub and authority of each file: each sums to 1 before barrels lose .7 of their authority.

    authority ← .85 · Wᵀ·hub / |Wᵀ·hub|₁ + .15 / n and hub ← .85 · W·authority / |W·authority|₁ + .15 / n, until
    neither moves more than 1e-6 (sum of changes) or 30 times.
    """
    n = graph.size
    if n == 0:
        return np.zeros(0), np.zeros(0)
    uses = graph.matrix(specificity(graph))
    used = turned(uses)
    hub = np.full(n, 1 / n)
    authority = hub
    for _ in range(MAX_ITERATIONS):
        stronger = _jumping(times(used, hub))
        wider = _jumping(times(uses, stronger))
        moved = float(np.abs(stronger - authority).sum() + np.abs(wider - hub).sum())
        hub, authority = wider, stronger
        if moved < TOLERANCE:
            break
    return hub, np.where(barrels, BARREL * authority, authority)


def _jumping(values: Floats) -> Floats:
    total = float(values.sum())
    share = values / total if total > 0 else np.full_like(values, 1 / len(values))
    return (1 - TELEPORT) * share + TELEPORT / len(values)
