"""Change coupling: pairs of files that often change in the same commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import combinations

from trialfleet_targets.snapshot import PastCommit

WINDOW_DAYS = 90
MAX_COMMIT_FILES = 30  # files; larger commits are imports, renames and releases
MIN_JACCARD = 0.3
MIN_COMMON_COMMITS, MIN_COMMON_COMMITS_IF_FEW = 3, 2
FEW_COMMITS = 20
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Coupling:
    """`first` < `second`. `together`: commits that changed both. `jaccard`: of the commits that changed either,
    the share that changed both."""

    first: str
    second: str
    together: int
    jaccard: float


def couplings(
    history: Iterable[PastCommit], *, now: int | None, paths: Collection[str] | None = None
) -> tuple[Coupling, ...]:
    """Pairs of files that changed together often enough, by path. The order of `history` does not matter.

    A commit counts when it is at most 90 days older than `now` (Unix seconds; the snapshot's own time, so that the
    same commit always gives the same pairs; None: no pairs) and changed 1–30 files. Pairs need a Jaccard index
    ≥ .3 and 3 common commits, 2 where no more than 20 commits changed several files. `paths`: only pairs of these;
    the commits' sizes count all that they changed.

    Source: Clarté's published constants; the Jaccard index is of the plain sets of commits, one-file commits
    included (the publication leaves open which).
    """
    near = [one for one in history if 1 <= len(one.changed) <= MAX_COMMIT_FILES and _is_near(one.time, now)]
    changes = Counter(path for one in near for path in one.changed)
    together = Counter(
        pair
        for one in near
        for pair in combinations(sorted(path for path in one.changed if paths is None or path in paths), 2)
    )
    several = sum(len(one.changed) > 1 for one in near)
    least = MIN_COMMON_COMMITS_IF_FEW if several <= FEW_COMMITS else MIN_COMMON_COMMITS
    found = (
        Coupling(first, second, times, times / (changes[first] + changes[second] - times))
        for (first, second), times in sorted(together.items())
        if times >= least
    )
    return tuple(one for one in found if one.jaccard >= MIN_JACCARD)


def _is_near(time: int | None, now: int | None) -> bool:
    return time is not None and now is not None and time >= now - WINDOW_DAYS * _DAY_S
