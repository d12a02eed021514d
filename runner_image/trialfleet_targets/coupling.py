"""Files that change together: a file that a fix needs is often one that changed with it before."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import combinations

from trialfleet_targets.snapshot import PastCommit

WINDOW_DAYS = 90
LARGEST_COMMIT = 30  # files: beyond it stand imports, renames and releases
DECAY_PER_DAY = 0.033  # after the window's 90 days a commit counts 5 %; half of it is gone after 21
LEAST_JACCARD = 0.3
LEAST_TOGETHER, LEAST_TOGETHER_IF_FEW = 3, 2
FEW_COMMITS = 20
_DAY_S = 86_400
# What a subject says about a commit whose files change together for another reason than their meaning.
_NOISE = (
    (re.compile(r"\b(lint(ing|er)?|format(ting|ter)?|prettier|black|gofmt|rustfmt|isort|style)\b", re.I), 0.1),
    (re.compile(r"^merge\b", re.I), 0.2),
    (re.compile(r"\b(refactor\w*|renam\w+|mov(e[ds]?|ing)|clean-?\s?up)\b", re.I), 0.5),
)


@dataclass(frozen=True, slots=True)
class Coupling:
    """`first` < `second`. `together`: commits that changed both. `jaccard`: of the commits that changed either,
    the share that changed both. `weight`: Σ 1/(n − 1) · recency · noise over the commits that changed both."""

    first: str
    second: str
    together: int
    jaccard: float
    weight: float


def couplings(
    history: Iterable[PastCommit], *, now: int, paths: Collection[str] | None = None
) -> tuple[Coupling, ...]:
    """Pairs of files that changed together often enough, by path. The order of `history` does not matter.

    A commit counts when it is at most 90 days older than `now` (Unix seconds; the snapshot's own time, so that the
    same commit always gives the same pairs) and changed 1–30 files. With n its files, `weight` grows by

        1/(n − 1) · exp(−0.033 · age in days) · noise

    where noise is .1 for a subject about formatting, .2 for one that begins with "merge", .5 for refactoring, else
    1. Pairs need a Jaccard index ≥ .3 and 3 common commits, 2 where no more than 20 commits changed several files.
    `paths`: only pairs of these; the commits' sizes count all that they changed.

    Source: Clarté's published constants; the Jaccard index is of the plain sets of commits, one-file commits
    included (the publication leaves open which).
    """
    near = [
        one for one in history if 1 <= len(one.changed) <= LARGEST_COMMIT and _age_days(one, now) <= WINDOW_DAYS
    ]
    changes = Counter(path for one in near for path in one.changed)
    weights: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for one in near:
        kept = sorted(path for path in one.changed if paths is None or path in paths)
        if len(kept) > 1:
            weight = math.exp(-DECAY_PER_DAY * _age_days(one, now)) * noise(one.subject) / (len(one.changed) - 1)
            for pair in combinations(kept, 2):
                weights[pair].append(weight)
    several = sum(len(one.changed) > 1 for one in near)
    least = LEAST_TOGETHER_IF_FEW if several <= FEW_COMMITS else LEAST_TOGETHER
    found = (_coupling(pair, own, changes) for pair, own in sorted(weights.items()) if len(own) >= least)
    return tuple(one for one in found if one.jaccard >= LEAST_JACCARD)


def noise(subject: str) -> float:
    """How much a commit with this subject counts.

    >>> [noise(subject) for subject in ("Run prettier", "Merge pull request #1", "refactor(io): move", "Fix it")]
    [0.1, 0.2, 0.5, 1.0]
    """
    return next((weight for pattern, weight in _NOISE if pattern.search(subject)), 1.0)


def _coupling(pair: tuple[str, str], weights: list[float], changes: Counter[str]) -> Coupling:
    together = len(weights)
    either = changes[pair[0]] + changes[pair[1]] - together
    return Coupling(*pair, together, together / either, math.fsum(weights))  # fsum: whatever the order


def _age_days(commit: PastCommit, now: int) -> float:
    """0 for a commit whose committer's clock was ahead."""
    return max(0.0, (now - commit.time) / _DAY_S)
