"""How far a change travels along an edge: a Beta distribution per edge, updated by the repository's own past."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trialfleet_targets.snapshot import PastCommit
from trialfleet_targets.syntax_facts import Edge, EdgeKind

STRENGTH = 4.0  # s: a kind of edge says as much as four changes that were seen
DECAY = 0.995  # per commit: half is gone after 138
MEANS = {
    EdgeKind.CALL: 0.7,
    EdgeKind.EXTENDS: 0.7,
    EdgeKind.VALUE: 0.7,
    EdgeKind.BARREL: 0.5,
    EdgeKind.DYNAMIC: 0.4,
    EdgeKind.TYPE: 0.3,
}
"""w: what is believed of an edge before any commit. A call or an inheritance needs a value import."""


@dataclass(frozen=True, slots=True)
class Beta:
    """Of the probability that a change of an edge's source file changes its target file too."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        return self.alpha / (self.alpha + self.beta)


def edge_priors(edges: Sequence[Edge], history: Iterable[PastCommit]) -> tuple[Beta, ...]:
    """One for each edge, in their order. `history`: newest first, as a snapshot has it.

    Each edge starts at Beta(s·w, s·(1 − w)). Then, from the oldest commit to the newest, merges and commits
    without known changes left out: α and β are multiplied by .995; where the commit changed the edge's source
    file, α grows by 1 if it changed the target file too, else β does. A commit that changed only the target says
    nothing about the edge. With N commits, the k-th of which (k = 1 … N) is h_k = 1 for both files, m_k = 1 for
    the source alone:

        α = .995^N · s·w + Σ_k .995^(N−k) · h_k        β = .995^N · s·(1 − w) + Σ_k .995^(N−k) · m_k

    Source: Clarté's published constants; its s is not published.
    """
    newest_first = [frozenset(one.changed) for one in history if one.changed and not one.merge]
    changes: defaultdict[str, list[int]] = defaultdict(list)  # path -> how many commits ago
    for ago, changed in enumerate(newest_first):
        for path in changed:
            changes[path].append(ago)
    left = DECAY ** len(newest_first) * STRENGTH
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for edge in edges:
        pair = edge.source, edge.target
        if pair not in found:
            both = sum(DECAY**ago for ago in changes[edge.source] if edge.target in newest_first[ago])
            found[pair] = both, sum(DECAY**ago for ago in changes[edge.source]) - both
    return tuple(
        Beta(left * MEANS[edge.kind] + hits, left * (1 - MEANS[edge.kind]) + max(0.0, misses))
        for edge in edges
        for hits, misses in (found[edge.source, edge.target],)
    )
