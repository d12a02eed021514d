"""Ways to hand a task's values to two arms: all of them, or random ones; and the sums that arm a gets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, combinations, islice
from typing import NamedTuple

import numpy as np

from trialfleet_analysis.estimates import Floats

BATCH = 1 << 15  # arrangements held at once: what fits a core's cache


class Stratum(NamedTuple):
    """The pooled scores of one task, ascending; arm a has `drawn` of them. Scores sum to 0, and so, on average,
    does what arm a gets. Ranks are whole numbers, whose sums floats hold exactly."""

    scores: Floats
    drawn: int

    @property
    def ways(self) -> int:
        return math.comb(self.scores.size, self.drawn)


def every_sum(strata: list[Stratum]) -> Iterator[Floats]:
    """The sum over arm a in every arrangement, in batches: strata are folded while they fit one, then crossed."""
    inner, outer = np.zeros(1), np.zeros(1)
    for of in sorted(strata, key=lambda of: of.ways):
        sums = _subset_sums(of)
        if inner.size * sums.size <= BATCH:
            inner = np.add.outer(inner, sums).ravel()
        else:
            outer = np.add.outer(outer, sums).ravel()
    rows = max(1, BATCH // inner.size)
    for start in range(0, outer.size, rows):
        yield np.add.outer(outer[start : start + rows], inner).ravel()


def _subset_sums(of: Stratum) -> Floats:
    """The sum of `drawn` scores, for every choice of them; the smaller arm is listed."""
    fewer = min(of.drawn, of.scores.size - of.drawn)
    listed = chain.from_iterable(combinations(range(of.scores.size), fewer))
    sums = np.empty(of.ways)
    for start in range(0, of.ways, BATCH):
        rows = min(BATCH, of.ways - start)
        picked = np.fromiter(islice(listed, rows * fewer), dtype=np.int64, count=rows * fewer)
        sums[start : start + rows] = of.scores[picked.reshape(rows, fewer)].sum(axis=1)
    return sums if fewer == of.drawn else of.scores.sum() - sums


def drawn_sums(strata: list[Stratum], resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """The sum over arm a in random arrangements: one pass over the scores, each taken with probability
    (still wanted) / (still left), which makes every choice equally likely."""
    for start in range(0, resamples, BATCH):
        rows = min(BATCH, resamples - start)
        total = np.zeros(rows)
        for scores, drawn in strata:
            wanted = np.full(rows, drawn, dtype=np.int64)
            for left, score in zip(range(scores.size, 0, -1), scores, strict=True):
                taken = rng.random(rows) * left < wanted
                wanted -= taken
                total += taken * score
        yield total
