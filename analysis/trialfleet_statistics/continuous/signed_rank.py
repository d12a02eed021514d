"""One difference per task: is it centred on 0, and where is its centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_statistics.continuous.samples import DUST, doubled_midranks, measured
from trialfleet_statistics.estimates import (
    LEAST,
    TIES,
    Alternative,
    Estimand,
    Floats,
    Integers,
    Interval,
    Test,
    known_alternative,
    one_of,
    share,
)

Zeros = Literal["pratt", "wilcox"]


@dataclass(frozen=True)
class SignedRankInterval(Interval):
    """`attained_level`: the level that the discrete distribution allows, at least the one asked for; None when
    no limits reach it."""

    attained_level: float | None = None


def signed_rank(differences: ArrayLike, *, zeros: Zeros = "pratt", alternative: Alternative = "two-sided") -> Test:
    """Wilcoxon's signed-rank test by its exact permutation distribution, also with ties and zeros.

    `differences`: shape (T,), one per task (of medians, or of mean logs), a − b. The statistic W₊ is the sum of
    the ranks of |d| over the positive differences, mid-ranks for ties. Given the |d|, every sign is a fair coin:
    the distribution of W₊ is the convolution of the T two-point distributions {0, rank}, over doubled ranks, which
    are integers. Two-sided: twice the smaller tail, at most 1. `zeros`: "pratt" ranks them among the others and
    then drops them, "wilcox" drops them first. Sources: Wilcoxon 1945; Pratt 1959.

    |d| within 1e-7 of each other (relative) tie, and |d| below 1e-12 of the largest is 0: what arithmetic leaves.
    The least two-sided p is 2 / 2ⁿ over n non-zero differences (`attainable_p`): 5 tasks never reach .05, 11 are
    needed for .001. A claim about *tasks like these*, for differences symmetric about their centre; feeding it
    single trials instead of tasks is pseudo-replication. Undefined without differences; p = 1, with the reason,
    when all are 0. Raises `ValueError` for values that are not finite or unknown.

    >>> test = signed_rank([8, 3, 5, 1, 9, 2, 4])
    >>> test.statistic, test.p_value, test.attainable_p
    (28.0, 0.015625, 0.015625)
    """
    one_of(Zeros, zeros, "zeros")
    known_alternative(alternative)
    d, method = measured(differences, "differences"), f"signed_rank_{zeros}"
    if not d.size:
        return Test(None, None, method, alternative, n_informative=0, reason="no differences")
    doubled = _doubled_ranks(d, zeros)
    signed = doubled[doubled != 0]
    if not signed.size:
        return Test(1.0, 0.0, method, alternative, 1.0, 0, "all differences are 0")
    w, n = int(signed[signed > 0].sum()), signed.size
    least = max(2.0**-n, LEAST) * (2 if alternative == "two-sided" else 1)
    p = max(_p_value(np.abs(signed), w, alternative), LEAST)
    return Test(p, w / 2, method, alternative, min(1.0, least), n)


def hodges_lehmann(differences: ArrayLike, *, level: float = 0.95) -> SignedRankInterval:
    """The centre of the differences: the median of all pairwise means, with the signed-rank test's interval.

    `differences`: shape (T,), one per task. The T (T + 1) / 2 Walsh averages (dᵢ + dⱼ) / 2, i ≤ j, sorted; with k
    the largest value for which P(W₊ ≤ k) ≤ (1 − level) / 2 under T untied differences, the limits are the
    (k + 1)-th from either end. Source: Hodges & Lehmann 1963. Its `attained_level` is 1 − 2 P(W₊ ≤ k); with ties
    it covers at least that. It excludes 0 exactly when `signed_rank` rejects at 1 − level, without ties and
    zeros; with them the test may reject where the interval still touches 0.

    Fewer than 6 tasks cannot reach 95 %: the limits are infinite, hence None, with the reason. Raises `ValueError`
    for values that are not finite.

    >>> found = hodges_lehmann([8, 3, 5, 1, 9, 2, 4])
    >>> found.estimate, found.rounded(1), found.attained_level
    (4.5, (2.0, 8.0), 0.953125)
    """
    d, tail = measured(differences, "differences"), (1 - share(level, "level")) / 2
    method = "hodges_lehmann"
    estimand: Estimand = "tasks_like_these"
    if not d.size:
        return SignedRankInterval(None, None, None, level, 0, method, estimand, "no differences")
    walsh = _walsh_averages(d)
    centre = float(np.median(walsh))
    below = np.cumsum(_distribution(np.arange(1, d.size + 1), walsh.size // 2))
    k = int(np.searchsorted(below, tail * (1 + TIES), side="right")) - 1
    if k < 0:
        most = max(0.0, 1 - 2.0 ** (1 - d.size))
        limits = f"{d.size} differences allow an interval of {100 * most:.4g}% at most"
        reason = "one difference gives no interval" if d.size == 1 else limits
        return SignedRankInterval(centre, None, None, level, d.size, method, estimand, reason)
    low, high, attained = float(walsh[k]), float(walsh[-1 - k]), float(1 - 2 * below[k])
    return SignedRankInterval(centre, low, high, level, d.size, method, estimand, attained_level=attained)


def _doubled_ranks(d: Floats, zeros: Zeros) -> Integers:
    """Twice the mid-rank of |d|, with the sign of d; 0 where d is."""
    size = np.where(np.abs(d) <= DUST * np.max(np.abs(d)), 0.0, np.abs(d))
    kept = np.ones(d.size, dtype=np.bool_) if zeros == "pratt" else size > 0
    ranks = np.zeros(d.size, dtype=np.int64)
    ranks[kept] = doubled_midranks(size[kept], TIES)
    return np.where(size > 0, np.sign(d).astype(np.int64) * ranks, 0)


def _p_value(doubled: Integers, w: int, alternative: Alternative) -> float:
    """The shorter tail alone is summed; the distribution is symmetric."""
    total = int(doubled.sum())
    short = min(w, total - w)
    step = int(np.gcd.reduce(doubled))  # 2 without ties: half the sums cannot occur
    mass = _distribution(doubled // step, short // step)
    tail, rest = float(mass.sum()), float(1 - mass[:-1].sum())
    if alternative == "two-sided":
        return min(1.0, 2 * tail)
    at_short_end = (w > total - w) == (alternative == "greater") if 2 * w != total else True
    return tail if at_short_end else rest


def _distribution(ranks: Integers, most: int) -> Floats:
    """P(Σ of fairly chosen ranks = s) for s = 0 … most."""
    mass = np.zeros(most + 1)
    mass[0] = 1.0
    reached = 0
    for rank in np.sort(ranks).tolist():
        reached = min(most, reached + rank)
        kept = mass[: reached + 1].copy()
        if rank <= reached:
            mass[rank : reached + 1] += kept[: reached + 1 - rank]
        mass[: reached + 1] *= 0.5
    return mass


def _walsh_averages(d: Floats) -> Floats:
    i, j = np.triu_indices(d.size)
    return np.sort((d[i] + d[j]) / 2)
