"""How good a ranking is, and whether one is better than another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

DRAWS = 10_000


@dataclass(frozen=True, slots=True)
class CaseScore:
    """Of one case. `first`: rank of the first true file, from 1; None when it is not in the ranking. `found`: of
    the true files, which share is among the first five."""

    repository: str
    first: int | None
    found: float

    @property
    def reciprocal(self) -> float:
        return 1.0 / self.first if self.first else 0.0

    def hit(self, k: int) -> float:
        return float(self.first is not None and self.first <= k)


def outcome(repository: str, ranking: Sequence[str], truth: Collection[str]) -> CaseScore:
    """
    >>> outcome("r", ["a", "b", "c"], {"b", "x"})
    CaseScore(repository='r', first=2, found=0.5)
    """
    places = [at for at, path in enumerate(ranking, 1) if path in truth]
    return CaseScore(repository, places[0] if places else None, sum(at <= 5 for at in places) / len(truth))


@dataclass(frozen=True, slots=True)
class Measures:
    """Means over cases."""

    cases: int
    hit_at_1: float
    hit_at_5: float
    recall_at_5: float
    mrr: float


def measures(outcomes: Sequence[CaseScore]) -> Measures | None:
    """None without cases."""
    if not outcomes:
        return None
    return Measures(
        len(outcomes),
        *(
            float(np.mean(values))
            for values in (
                [one.hit(1) for one in outcomes],
                [one.hit(5) for one in outcomes],
                [one.found for one in outcomes],
                [one.reciprocal for one in outcomes],
            )
        ),
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of paired differences with its interval."""

    mean: float
    low: float
    high: float


def paired(
    better: Sequence[float], worse: Sequence[float], groups: Sequence[str], *, level: float = 0.95, seed: int = 0
) -> Difference:
    """Mean of `better - worse`, with the percentile interval of a bootstrap over cases within their groups: the
    repositories are fixed, their commits are drawn. Source: Efron & Tibshirani 1993, chapter 8.

    Raises ValueError for sequences of different or no length.

    >>> paired([1.0, 1.0], [0.0, 0.0], ["a", "a"])
    Difference(mean=1.0, low=1.0, high=1.0)
    """
    gains = np.subtract(better, worse)
    if not (len(gains) == len(groups) > 0):
        raise ValueError("each case needs two values and a group")
    rng = np.random.default_rng(seed)
    totals = np.zeros(DRAWS)
    names = np.asarray(groups)
    for name in sorted(set(groups)):
        own = gains[names == name]
        for part in range(0, DRAWS, 1000):
            totals[part : part + 1000] += own[rng.integers(0, len(own), (1000, len(own)))].sum(axis=1)
    low, high = np.quantile(totals / len(gains), [(1 - level) / 2, (1 + level) / 2])
    return Difference(float(gains.mean()), float(low), float(high))
