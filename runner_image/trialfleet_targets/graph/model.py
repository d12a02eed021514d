"""The dependencies between the files of one snapshot as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trialfleet_targets.arrays import Floats, Ints, Matrix, transposed
from trialfleet_targets.syntax_facts import Edge, EdgeKind

KINDS = tuple(EdgeKind)
"""A kind's number is its position in this tuple."""


@dataclass(frozen=True, eq=False)
class FileGraph:
    """File number `sources[e]` depends on file number `targets[e]` in the way
    `KINDS[kinds[e]]`. `names` ascend; edges ascend by source, target and kind; none leads to its own file."""

    names: Sequence[str]
    sources: Ints
    targets: Ints
    kinds: Ints

    @classmethod
    def of(cls, names: Iterable[str], edges: Iterable[Edge]) -> FileGraph:
        """Edges to files that are not in `names` are left out. Repeated edges are merged."""
        ordered = sorted(names)
        number = {name: at for at, name in enumerate(ordered)}
        kind = {one: at for at, one in enumerate(KINDS)}
        keys = sorted(
            {
                (number[edge.source], number[edge.target], kind[edge.kind])
                for edge in edges
                if edge.source in number and edge.target in number and edge.source != edge.target
            }
        )
        columns = np.asarray(keys, dtype=np.int32).reshape(len(keys), 3)
        return cls(ordered, columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())

    @property
    def size(self) -> int:
        """How many files."""
        return len(self.names)

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Sources and targets, each pair once regardless of kind; ascending."""
        return self.strongest(np.ones(len(self.sources)))[:2]

    def strongest(self, weights: Floats) -> tuple[Ints, Ints, Floats]:
        """Each pair of files once, with the largest weight that any of its edges has."""
        keys = self.sources.astype(np.int64) * max(self.size, 1) + self.targets
        first = np.flatnonzero(np.diff(keys, prepend=-1))  # edges ascend: those of a pair are adjacent
        best = np.maximum.reduceat(weights, first) if len(first) else np.zeros(0)
        return self.sources[first], self.targets[first], best

    def matrix(self, weights: Floats) -> Matrix:
        """Files × files: row depends on column, with the pair's largest weight."""
        sources, targets, best = self.strongest(weights)
        return Matrix((best, (sources, targets)), shape=(self.size, self.size))

    @cached_property
    def importers(self) -> Ints:
        """How many files depend on each file."""
        return np.bincount(self.pairs[1], minlength=self.size).astype(np.int32)

    @cached_property
    def imported(self) -> Ints:
        """On how many files each file depends."""
        return np.bincount(self.pairs[0], minlength=self.size).astype(np.int32)

    @cached_property
    def neighbours(self) -> Matrix:
        """Files × files, 1 where one depends on the other, in either direction."""
        one_way = self.matrix(np.ones(len(self.sources)))
        return Matrix(one_way.maximum(transposed(one_way)))
