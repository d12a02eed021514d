"""What the repository's own commits teach about the weights, each seen from the commit before it.

For every file of a commit the question is: sought from the commit's *other* files, would it have been told from
files nearby? The publication measures the distance of a changed file from all changed files, itself among them, so
that each positive is at distance 0 and no negative ever is: the feature is the label. Here a file is never its own
source, for the distance, the path and the coupling alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt

from trialfleet_targets.clarte.fusion import Group
from trialfleet_targets.coupling import (
    FEW_COMMITS,
    LARGEST_COMMIT,
    LEAST_JACCARD,
    LEAST_TOGETHER,
    LEAST_TOGETHER_IF_FEW,
    WINDOW_DAYS,
)
from trialfleet_targets.graph.model import FileGraph, Flags, Ints
from trialfleet_targets.matrices import Floats
from trialfleet_targets.snapshot import PastCommit
from trialfleet_targets.text.tokens import Tokenizer

MOST_COMMITS = 500
OF_EACH_KIND = 3  # negatives: direct neighbours, two steps away, same community
AT_ONCE = 64  # files whose distances travel together: one bit each
UNREACHED = 255
_DAY_S = 86_400

Distances = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class World:
    """What is the same for all commits: the files as they are at the indexed commit. `tests`: never a target."""

    graph: FileGraph
    tests: Flags
    communities: Ints
    betweenness: Floats


def groups(
    world: World, history: Sequence[PastCommit], *, seed: int = 0, leave_one_out: bool = True
) -> list[Group]:
    """Examples of the newest 500 commits that changed 2 to 30 files of which at least two may be targets.

    `history`: newest first. For each such file of a commit: the file, and up to nine that the commit left alone
    (direct neighbours of the file, files two steps away, files of its community), drawn by the seed and the
    commit's name. No later commit changes any of it. `leave_one_out` False: distances as published, from all
    changed files, to measure what that does.
    """
    number = {name: at for at, name in enumerate(world.graph.names)}
    past, paths = Past(history, number), _Paths(world.graph.names)
    found: list[Group] = []
    for batch in _batches(_chosen(world, history, number)):
        table = distances(world.graph, [file for _, changed in batch for file in changed])
        row = 0
        for ago, changed in batch:
            steps = table[row : row + len(changed)]
            row += len(changed)
            before = past.before(ago)
            random = np.random.default_rng([seed, crc32(history[ago].sha.encode())])
            for place, file in enumerate(changed):
                candidates = [file, *_others(world, file, changed, steps[place], random)]
                if len(candidates) > 1:
                    sources = changed[:place] + changed[place + 1 :]
                    from_sources = np.delete(steps, place, axis=0) if leave_one_out else steps
                    nearest = from_sources[:, candidates].min(axis=0)
                    columns = (
                        [paths.likeness(one, sources) for one in candidates],
                        np.where(nearest == UNREACHED, 0, 1 / (nearest + 1.0)),
                        [before.coupling(one, sources) for one in candidates],
                        world.betweenness[candidates],
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


class Past:
    """Which commits changed a file, so that its coupling can be asked as of any of them."""

    def __init__(self, history: Sequence[PastCommit], number: Mapping[str, int]) -> None:
        self._times = np.asarray([one.time for one in history], dtype=np.int64)
        sizes = np.asarray([len(one.changed) for one in history])
        self._counted = (sizes >= 1) & (sizes <= LARGEST_COMMIT)
        self._several = self._counted & (sizes > 1)
        self._changes: defaultdict[int, list[int]] = defaultdict(list)
        for ago in np.flatnonzero(self._counted).tolist():
            for path in history[ago].changed:
                if path in number:
                    self._changes[number[path]].append(ago)

    def before(self, ago: int) -> Before:
        """As it was when the commit `ago` was made: older commits of the 90 days before it."""
        near = self._times >= self._times[ago] - WINDOW_DAYS * _DAY_S
        near[: ago + 1] = False
        several = int((near & self._several).sum())
        return Before(
            frozenset(np.flatnonzero(near & self._counted).tolist()),
            self._changes,
            LEAST_TOGETHER_IF_FEW if several <= FEW_COMMITS else LEAST_TOGETHER,
        )


class Before:
    """Couplings from some of the commits."""

    def __init__(self, near: frozenset[int], changes: Mapping[int, list[int]], least_together: int) -> None:
        self._near, self._changes, self._least = near, changes, least_together
        self._known: dict[int, frozenset[int]] = {}

    def coupling(self, file: int, sources: Sequence[int]) -> float:
        """The largest Jaccard index with any of the sources that makes a coupling (`coupling.couplings`), or 0."""
        return max((self._jaccard(file, source) for source in sources if source != file), default=0.0)

    def _jaccard(self, one: int, other: int) -> float:
        first, second = self._commits(one), self._commits(other)
        together = len(first & second)
        if together < self._least:
            return 0.0
        jaccard = together / (len(first) + len(second) - together)
        return jaccard if jaccard >= LEAST_JACCARD else 0.0

    def _commits(self, file: int) -> frozenset[int]:
        if file not in self._known:
            self._known[file] = self._near.intersection(self._changes.get(file, ()))
        return self._known[file]


class _Paths:
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


def _chosen(world: World, history: Sequence[PastCommit], number: Mapping[str, int]) -> list[tuple[int, list[int]]]:
    """Commits to learn from: how many commits ago, and the files that may be targets."""
    found: list[tuple[int, list[int]]] = []
    for ago, one in enumerate(history):
        changed = [number[path] for path in one.changed if path in number and not world.tests[number[path]]]
        if not one.merge and len(one.changed) <= LARGEST_COMMIT and len(changed) > 1:
            found.append((ago, sorted(changed)))
    return found[:MOST_COMMITS]


def _by_maximum(features: Floats) -> Floats:
    highest = features.max(axis=0)
    return features / np.where(highest > 0, highest, 1)


def _others(
    world: World, file: int, changed: Sequence[int], steps: Distances, random: np.random.Generator
) -> list[int]:
    """Files near `file` that the commit left alone: at most three of each kind."""
    free = ~world.tests
    free[list(changed)] = False
    taken: list[int] = []
    for kind in (steps == 1, world.communities == world.communities[file], steps == 2):
        pool = np.flatnonzero(kind & free)
        drawn = pool if len(pool) <= OF_EACH_KIND else np.sort(random.choice(pool, OF_EACH_KIND, replace=False))
        taken += drawn.tolist()
        free[drawn] = False
    return taken


def _batches(commits: Sequence[tuple[int, list[int]]]) -> Iterator[list[tuple[int, list[int]]]]:
    """Whole commits, as many as travel together."""
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
