"""Labels shuffled inside each task: a test for *these tasks*, from one task on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_analysis.continuous.arrangements import Stratum, drawn_sums, every_sum
from trialfleet_analysis.continuous.ranks import doubled_midranks
from trialfleet_analysis.continuous.samples import (
    DUST,
    Cells,
    cells,
    chosen,
    known_alternative,
    measured,
    rows_by_stratum,
)
from trialfleet_analysis.estimates import TIES, Alternative, Floats, Integers, Test, floats, whole

Statistic = Literal["rank", "mean"]


@dataclass(frozen=True)
class PermutationTest(Test):
    """`resamples`: how many arrangements were counted; `exact`: that is all there are. Else they were drawn, and
    `monte_carlo_se` is the standard error that this leaves on `p_value`."""

    exact: bool = True
    resamples: int = 0
    monte_carlo_se: float = 0.0


class Counted(NamedTuple):
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

    Raises `ValueError` for what is not finite, for columns of unequal length, and for an arm other than 0 and 1.

    >>> arm, task = [1, 1, 1, 0, 0, 0] * 2, ["django"] * 6 + ["flask"] * 6
    >>> test = stratified_permutation([5, 6, 7, 8, 9, 10, 2, 3, 1, 4, 5, 6], arm, task, seed=1)
    >>> test.statistic, test.p_value, test.exact
    (6.0, 0.005, True)
    """
    chosen(statistic, "statistic", ("rank", "mean"))
    known_alternative(alternative)
    measures, budget = measured(values, "values"), int(whole(resamples, "resamples"))
    if budget < 1:
        raise ValueError("resamples: at least 1 is wanted")
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


def _counted(sums: Iterator[Floats], observed: float, tolerance: float) -> Counted:
    above = below = beyond = of = 0
    for batch in sums:
        above += int(np.count_nonzero(batch >= observed - tolerance))
        below += int(np.count_nonzero(batch <= observed + tolerance))
        beyond += int(np.count_nonzero(np.abs(batch) >= abs(observed) - tolerance))
        of += batch.size
    return Counted(above, below, beyond, of)


def _share(counted: Counted, alternative: Alternative, exact: bool) -> float:
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
