"""Labels shuffled inside each task, in all ways or in random ones: a test for *these tasks*, from one task on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_statistics.continuous.samples import (
    DUST,
    Cells,
    cells,
    doubled_midranks,
    measured,
    rows_by_stratum,
)
from trialfleet_statistics.estimates import (
    TIES,
    Alternative,
    Floats,
    Integers,
    Test,
    floats,
    known_alternative,
    one_of,
    whole,
)

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


Statistic = Literal["rank", "mean"]


@dataclass(frozen=True)
class PermutationTest(Test):
    """`resamples`: how many arrangements were counted; `exact`: that is all there are. Else they were drawn, and
    `monte_carlo_se` is the standard error that this leaves on `p_value`."""

    exact: bool = True
    resamples: int = 0
    monte_carlo_se: float = 0.0


class ExtremeCounts(NamedTuple):
    """Arrangements as extreme as the observed one, of how many."""

    above: int
    below: int
    beyond: int
    of: int


def stratified_permutation(
    values: ArrayLike,
    arm: ArrayLike,
    stratum: ArrayLike,
    *,
    statistic: Statistic = "rank",
    resamples: int = 100_000,
    seed: int,
    alternative: Alternative = "two-sided",
) -> PermutationTest:
    """Do the arms differ within the tasks? Labels are shuffled inside every task, so tasks may differ at will.

    `values`, `arm` (1 = a), `stratum` (the task): shape (n,), one entry per trial. `statistic`: "rank", the mean
    over tasks of arm a's rank sum within the task, mid-ranks for ties; "mean", the mean over tasks of
    mean(a) − mean(b). Two-sided by the distance from the statistic's permutation mean. When there are at most
    `resamples` arrangements all are counted; else `resamples` are drawn and p = (b + 1) / (B + 1), b of them as
    extreme as the observed one, itself counted. Sources: Fisher 1935; Phipson & Smyth 2010 for the + 1.

    A test for *these tasks* under the strong null that no trial's value depends on the arm; unequal spread can
    reject too. Tasks without values in one arm, or with all values equal, carry no information; `n_informative`
    counts the others; none: p = 1 with the reason. Nothing measured: undefined. The rank sum gives long tasks
    (more reps) more weight; "mean" does not, but one wild value rules it. `attainable_p`: the least p these values
    allow, at least 1 / (B + 1) when drawn. Ranks are compared as integers, means with tolerance 1e-7.

    Raises `ValueError` for values that are not finite, for columns of unequal length, and for an arm other than 0
    and 1.

    >>> arm, task = [1, 1, 1, 0, 0, 0] * 2, ["django"] * 6 + ["flask"] * 6
    >>> test = stratified_permutation([5, 6, 7, 8, 9, 10, 2, 3, 1, 4, 5, 6], arm, task, seed=1)
    >>> test.statistic, test.p_value, test.exact
    (6.0, 0.005, True)
    """
    one_of(Statistic, statistic, "statistic")
    known_alternative(alternative)
    measures, budget = measured(values, "values"), int(whole(resamples, "resamples"))
    if budget < 1:
        raise ValueError("resamples: expected at least 1")
    found = [of for of in cells(measures, rows_by_stratum(arm, stratum, measures.size)) if of.a.size and of.b.size]
    method = f"stratified_permutation_{statistic}"
    if not found:
        p, reason = (1.0, "no stratum has both arms") if measures.size else (None, "nothing was measured")
        return PermutationTest(p, None, method, alternative, p, 0, reason)
    value = _mean_rank_sum(found) if statistic == "rank" else _mean_difference(found)
    telling = [of for of in found if min(of.a[0], of.b[0]) < max(of.a[-1], of.b[-1])]
    if not telling:
        return PermutationTest(1.0, value, method, alternative, 1.0, 0, "all values within a stratum are equal")
    strata, observed = _scored(telling, statistic)
    exact = math.prod(of.ways for of in strata) <= budget
    sums = every_sum(strata) if exact else drawn_sums(strata, budget, np.random.default_rng(seed))
    counted = _counted(sums, observed, 0.0 if statistic == "rank" else _tolerance(strata, observed))
    p, least = _share(counted, alternative, exact), _least(strata, alternative)
    error = 0.0 if exact else math.sqrt(p * (1 - p) / (counted.of + 1))
    least = least if exact else max(least, 1 / (counted.of + 1))
    return PermutationTest(p, value, method, alternative, least, len(telling), None, exact, counted.of, error)


def _scored(telling: list[Cells], statistic: Statistic) -> tuple[list[Stratum], float]:
    """Each task's scores, and what arm a got of them over all tasks."""
    scored = [_rank_scores(of) if statistic == "rank" else _mean_scores(of) for of in telling]
    return [of for of, _ in scored], sum(seen for _, seen in scored)


def _mean_rank_sum(found: list[Cells]) -> float:
    sums = [int(_doubled_ranks(of)[: of.a.size].sum()) for of in found]
    return sum(sums) / (2 * len(sums))


def _mean_difference(found: list[Cells]) -> float:
    return float(np.mean([of.a.mean() - of.b.mean() for of in found]))


def _doubled_ranks(of: Cells) -> Integers:
    return doubled_midranks(np.concatenate((of.a, of.b)), DUST)


def _rank_scores(of: Cells) -> tuple[Stratum, float]:
    """Doubled ranks less their mean."""
    ranks, n = _doubled_ranks(of), of.a.size + of.b.size
    centred = floats(ranks - (n + 1))
    return Stratum(np.sort(centred), of.a.size), float(centred[: of.a.size].sum())


def _mean_scores(of: Cells) -> tuple[Stratum, float]:
    """Scores whose sum over arm a is mean(a) − mean(b): centred values times 1 / n_a + 1 / n_b."""
    pooled = np.concatenate((of.a, of.b))
    scores = (pooled - pooled.mean()) * (1 / of.a.size + 1 / of.b.size)
    return Stratum(np.sort(scores), of.a.size), float(scores[: of.a.size].sum())


def _tolerance(strata: list[Stratum], observed: float) -> float:
    """Sums of means closer than this are equal."""
    return TIES * abs(observed) + DUST * float(sum(np.abs(of.scores).sum() for of in strata))


def _counted(sums: Iterator[Floats], observed: float, tolerance: float) -> ExtremeCounts:
    above = below = beyond = of = 0
    for batch in sums:
        above += int(np.count_nonzero(batch >= observed - tolerance))
        below += int(np.count_nonzero(batch <= observed + tolerance))
        beyond += int(np.count_nonzero(np.abs(batch) >= abs(observed) - tolerance))
        of += batch.size
    return ExtremeCounts(above, below, beyond, of)


def _share(counted: ExtremeCounts, alternative: Alternative, exact: bool) -> float:
    extreme = {"two-sided": counted.beyond, "greater": counted.above, "less": counted.below}[alternative]
    return extreme / counted.of if exact else (extreme + 1) / (counted.of + 1)


def _least(strata: list[Stratum], alternative: Alternative) -> float:
    """The share of the arrangements that give arm a the largest scores everywhere, or the smallest."""
    top = math.prod(_share_of_extreme(of.scores[::-1], of) for of in strata)
    bottom = math.prod(_share_of_extreme(of.scores, of) for of in strata)
    if alternative != "two-sided":
        return top if alternative == "greater" else bottom
    high = sum(float(of.scores[of.scores.size - of.drawn :].sum()) for of in strata)
    low = -sum(float(of.scores[: of.drawn].sum()) for of in strata)
    if abs(high - low) <= TIES * max(high, low):
        return top + bottom
    return top if high > low else bottom


def _share_of_extreme(scores: Floats, of: Stratum) -> float:
    """Choices that take the first `drawn` of the sorted scores, whichever of the tied ones at the border."""
    border = scores[of.drawn - 1]
    tied = np.isclose(scores, border, rtol=0, atol=DUST * float(np.abs(scores).max()))
    return math.comb(int(tied.sum()), int(tied[: of.drawn].sum())) / of.ways
