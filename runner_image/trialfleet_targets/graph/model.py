"""The dependencies between the files of one snapshot as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trialfleet_targets.facts import Edge, EdgeKind
from trialfleet_targets.matrices import Floats, Matrix, turned

Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
KINDS = tuple(EdgeKind)
"""The numbers of the kinds: where each stands here."""


@dataclass(frozen=True, eq=False)
class FileGraph:
    """File number `sources[e]` depends on file number `targets[e]` by `symbols[e]` names (0: as a whole), in the
    way `KINDS[kinds[e]]`. `names` ascend; edges ascend by source, target and kind; none leads to its own file."""

    names: Sequence[str]
    sources: Ints
    targets: Ints
    kinds: Ints
    symbols: Ints

    @classmethod
    def of(cls, names: Iterable[str], edges: Iterable[Edge]) -> FileGraph:
        """Edges to files that are not in `names` are left out. One that stands twice counts once: all symbols."""
        ordered = sorted(names)
        number = {name: at for at, name in enumerate(ordered)}
        kind = {one: at for at, one in enumerate(KINDS)}
        symbols: dict[tuple[int, int, int], set[str]] = {}
        for edge in edges:
            source, target = number.get(edge.source), number.get(edge.target)
            if source is not None and target is not None and source != target:
                symbols.setdefault((source, target, kind[edge.kind]), set()).update(edge.symbols)
        keys = sorted(symbols)
        columns = np.asarray(keys, dtype=np.int32).reshape(len(keys), 3)
        counts = np.asarray([len(symbols[key]) for key in keys], dtype=np.int32)
        return cls(ordered, columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy(), counts)

    @property
    def size(self) -> int:
        """How many files."""
        return len(self.names)

    def has_kind(self, *kinds: EdgeKind) -> Flags:
        """For each edge, whether it is of one of these kinds."""
        return np.isin(self.kinds, [KINDS.index(kind) for kind in kinds])

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Sources and targets, each pair once whatever its kinds; ascending."""
        return self.strongest(np.ones(len(self.sources)))[:2]

    def strongest(self, weights: Floats) -> tuple[Ints, Ints, Floats]:
        """Each pair of files once, with the largest weight that any of its edges has."""
        keys = self.sources.astype(np.int64) * max(self.size, 1) + self.targets
        first = np.flatnonzero(np.diff(keys, prepend=-1))  # edges ascend: those of a pair stand together
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
        return Matrix(one_way.maximum(turned(one_way)))
