"""Training examples from the repository's own commits, each with the state before that commit.

For every file of a commit: do the features, computed from the commit's *other* files, separate it from nearby
files? The publication measures the distance of a changed file from all changed files, including itself, so each
positive has distance 0 and no negative has: the feature is the label. Here a file is never its own source, for the
distance, the path and the coupling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt

from trialfleet_targets.arrays import Flags, Floats, Ints
from trialfleet_targets.clarte.fusion import Group
from trialfleet_targets.coupling import MAX_COMMIT_FILES, couplings
from trialfleet_targets.graph.model import FileGraph
from trialfleet_targets.snapshot import PastCommit
from trialfleet_targets.text.tokens import Tokenizer

MAX_COMMITS = 500
OF_EACH_KIND = 3  # negatives: direct neighbours, two steps away, same community
AT_ONCE = 64  # files whose distances are computed together: one bit each
UNREACHED = 255

Distances = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class IndexedFiles:
    """The files at the indexed commit, shared by all examples. `tests`: files that are never targets."""

    graph: FileGraph
    tests: Flags
    communities: Ints
    betweenness: Floats


def groups(
    indexed: IndexedFiles, history: Sequence[PastCommit], *, seed: int = 0, leave_one_out: bool = True
) -> list[Group]:
    """Examples of the newest 500 commits that changed 2 to 30 files of which at least two may be targets.

    `history`: newest first. For each such file of a commit: the file, and up to nine that the commit did not
    change (direct neighbours of the file, files two steps away, files of its community), drawn by the seed and the
    commit's name. No later commit changes any of it. `leave_one_out` False: distances as published, from all
    changed files, to measure what that does.
    """
    number, paths = {name: at for at, name in enumerate(indexed.graph.names)}, _PathWords(indexed.graph.names)
    found: list[Group] = []
    for batch in _batches(_chosen(indexed, history, number)):
        table = distances(indexed.graph, [file for _, changed in batch for file in changed])
        row = 0
        for ago, changed in batch:
            steps = table[row : row + len(changed)]
            row += len(changed)
            random = np.random.default_rng([seed, crc32(history[ago].sha.encode())])
            rows = [[file, *_others(indexed, file, changed, steps[at], random)] for at, file in enumerate(changed)]
            coupled = couplings_before(history, ago, indexed.graph.names, {file for row in rows for file in row})
            for place, candidates in enumerate(rows):
                if len(candidates) > 1:
                    sources = changed[:place] + changed[place + 1 :]
                    from_sources = np.delete(steps, place, axis=0) if leave_one_out else steps
                    nearest = from_sources[:, candidates].min(axis=0)
                    columns = (
                        [paths.likeness(one, sources) for one in candidates],
                        np.where(nearest == UNREACHED, 0, 1 / (nearest + 1.0)),
                        [max(coupled.get((one, source), 0.0) for source in sources) for one in candidates],
                        indexed.betweenness[candidates],
                    )
                    found.append(Group(ago, _by_maximum(np.column_stack(columns))))
    return found


def distances(graph: FileGraph, sources: Sequence[int]) -> Distances:
    """Steps from each source to each file, dependencies in both directions; 255 where there is no way of fewer.
    Shape: sources × files."""
    near = graph.neighbours
    table = np.full((len(sources), graph.size), UNREACHED, dtype=np.uint8)
    starts = near.indptr[:-1][np.diff(near.indptr) > 0]  # reduceat takes no empty parts
    joined = np.flatnonzero(np.diff(near.indptr) > 0)
    for at in range(0, len(sources), AT_ONCE):
        part = np.asarray(sources[at : at + AT_ONCE])
        reached = np.zeros(graph.size, dtype=np.uint64)
        np.bitwise_or.at(reached, part, np.uint64(1) << np.arange(len(part), dtype=np.uint64))
        table[np.arange(at, at + len(part)), part] = 0
        for steps in range(1, UNREACHED):
            arrived = reached.copy()
            if len(joined):
                arrived[joined] |= np.bitwise_or.reduceat(reached[near.indices], starts)
            fresh = arrived & ~reached
            moved = np.flatnonzero(fresh)
            if not len(moved):
                break
            bits = np.unpackbits(
                fresh[moved].astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little"
            )
            files, source = np.nonzero(bits)
            table[at + source, moved[files]] = steps
            reached = arrived
    return table


def couplings_before(
    history: Sequence[PastCommit], ago: int, names: Sequence[str], files: Set[int]
) -> dict[tuple[int, int], float]:
    """Jaccard indexes of the coupled pairs of these files, either one first, by the commits older than `ago`."""
    number = {names[file]: file for file in files}
    found: dict[tuple[int, int], float] = {}
    for one in couplings(history[ago + 1 :], now=history[ago].time, paths=number.keys()):
        first, second = number[one.first], number[one.second]
        found[first, second] = found[second, first] = one.jaccard
    return found


class _PathWords:
    """Words of the files' paths."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._tokenizer = names, Tokenizer()
        self._known: dict[int, frozenset[str]] = {}

    def likeness(self, file: int, sources: Sequence[int]) -> float:
        """The largest Jaccard index of the words with any of the sources."""
        own = self._words(file)
        return max((_jaccard(own, self._words(source)) for source in sources), default=0.0)

    def _words(self, file: int) -> frozenset[str]:
        if file not in self._known:
            self._known[file] = frozenset(self._tokenizer.terms(self._names[file].rpartition(".")[0]))
        return self._known[file]


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    together = len(one & other)
    return together / (len(one) + len(other) - together) if together else 0.0


def _chosen(
    indexed: IndexedFiles, history: Sequence[PastCommit], number: Mapping[str, int]
) -> list[tuple[int, list[int]]]:
    """Commits to train on: how many commits ago, and the changed files that may be targets."""
    found: list[tuple[int, list[int]]] = []
    for ago, one in enumerate(history):
        changed = [number[path] for path in one.changed if path in number and not indexed.tests[number[path]]]
        if not one.merge and len(one.changed) <= MAX_COMMIT_FILES and len(changed) > 1:
            found.append((ago, sorted(changed)))
    return found[:MAX_COMMITS]


def _by_maximum(features: Floats) -> Floats:
    highest = features.max(axis=0)
    return features / np.where(highest > 0, highest, 1)


def _others(
    indexed: IndexedFiles, file: int, changed: Sequence[int], steps: Distances, random: np.random.Generator
) -> list[int]:
    """Files near `file` that the commit did not change: at most three of each kind."""
    free = ~indexed.tests
    free[list(changed)] = False
    taken: list[int] = []
    for kind in (steps == 1, indexed.communities == indexed.communities[file], steps == 2):
        pool = np.flatnonzero(kind & free)
        drawn = pool if len(pool) <= OF_EACH_KIND else np.sort(random.choice(pool, OF_EACH_KIND, replace=False))
        taken += drawn.tolist()
        free[drawn] = False
    return taken


def _batches(commits: Sequence[tuple[int, list[int]]]) -> Iterator[list[tuple[int, list[int]]]]:
    """Whole commits, in batches of at most `AT_ONCE` files where possible."""
    batch: list[tuple[int, list[int]]] = []
    files = 0
    for one in commits:
        if batch and files + len(one[1]) > AT_ONCE:
            yield batch
            batch, files = [], 0
        batch.append(one)
        files += len(one[1])
    if batch:
        yield batch
