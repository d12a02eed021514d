"""Arms of ascending doses within strata: does the pass rate rise, or fall, with the dose?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from trialfleet_analysis.statistics.comparisons.convolution import convolved
from trialfleet_analysis.statistics.estimates import LEAST, Floats, Integers, Test, counts, floats

NO_TREND = "no informative stratum: in each, fewer than two doses have trials, every trial passed, or none did"


@dataclass(frozen=True)
class TrendTest(Test):
    """`mean`, `variance`: of the statistic, given the margins. `direction`: 1 if passes rise with the dose, beyond
    what equal rates lead to expect, −1 if they fall, 0 at the mean."""

    mean: float = 0.0
    variance: float = 0.0
    direction: int = 0

    @property
    def z(self) -> float | None:
        """(W − E) / √V: the normal approximation. None without variance."""
        if self.statistic is None or not self.variance:
            return None
        return (self.statistic - self.mean) / math.sqrt(self.variance)


def stratified_trend(
    passes: NDArray[Any] | Sequence[Sequence[int]],
    trials: NDArray[Any] | Sequence[Sequence[int]],
    doses: Sequence[int],
    *,
    midp: bool = True,
) -> TrendTest:
    """Exact conditional trend test, counts of shape (T, J): one stratum (task) a row, one dose a column.

    W = Σ_t Σ_j d_j x_tj for whole-numbered doses d. Given a stratum's trials n_j and its passes m, Σ_j d_j x_j has
    the probabilities of the coefficients of z^m in Π_j Σ_k C(n_j, k) z^k q^(d_j k); strata are convolved.
    Two-sided, central: 2 min(P(W < w), P(W > w)) + P(W = w) for `midp`, else 2 min(P(W ≤ w), P(W ≥ w)), at most
    1. Source: Cochran 1954; Armitage 1955; Mantel 1963, made exact. With doses 0, 1 it is `stratified_exact` with
    `weights` "mh". Only the distances between doses matter.

    `attainable_p`: the least p that the margins allow; without an informative stratum p is 1, and the reason says
    so. Raises `ValueError` for counts that cannot be, and for doses that are not ascending whole numbers.

    >>> found = stratified_trend([[1, 2, 4], [0, 3, 3], [2, 1, 4]], [[5, 5, 5], [5, 5, 5], [5, 5, 4]], [0, 1, 2])
    >>> round(found.p_value, 6), found.n_informative, found.direction
    (0.001904, 3, 1)
    """
    x, n = counts(passes, trials)
    dose = np.asarray(doses)
    if x.ndim != 2 or dose.shape != x.shape[1:] or dose.size < 2:
        raise ValueError(f"expected counts of shape (T, J) and J doses, two or more; got {x.shape}, {dose.shape}")
    if dose.dtype.kind not in "iu" or (np.diff(dose) <= 0).any():
        raise ValueError("doses are whole numbers in ascending order")
    method = "stratified_trend" + (", mid-p" if midp else "")
    statistic = float((x @ dose).sum())
    told = ((n > 0).sum(axis=1) > 1) & (x.sum(axis=1) > 0) & (x.sum(axis=1) < n.sum(axis=1))
    mean, variance = _moments(x, n, dose)
    if not told.any():
        return TrendTest(1.0, statistic, method, "two-sided", 1.0, 0, NO_TREND, mean, variance)
    steps = (dose - dose[0]) // int(np.gcd.reduce(np.diff(dose)))
    low, chances = _distribution(x[told].sum(axis=1), n[told], steps)
    at = int((x[told] @ steps).sum()) - low
    possible = np.flatnonzero(chances)
    return TrendTest(
        _central(chances, at, midp=midp),
        statistic,
        method,
        "two-sided",
        min(_central(chances, int(end), midp=midp) for end in (possible[0], possible[-1])),
        int(told.sum()),
        None,
        mean,
        variance,
        int(np.sign(round(statistic - mean, 9))),
    )


def _moments(x: Integers, n: Integers, dose: Integers) -> tuple[float, float]:
    total, passed = n.sum(axis=1), x.sum(axis=1)
    first, second = n @ dose, n @ dose**2
    mean = passed * first / np.maximum(total, 1)
    spread = total * second - first**2
    variance = passed * (total - passed) * spread / np.maximum(total**2 * (total - 1), 1)
    return float(mean.sum()), float(variance.sum())


def _distribution(passed: Integers, n: Integers, steps: Integers) -> tuple[int, Floats]:
    """Of the sum over strata: the least sum kept, and the probabilities from it on."""
    strata = [_stratum(int(m), row, steps) for m, row in zip(passed, n, strict=True)]
    return sum(low for low, _ in strata), convolved([chances for _, chances in strata])


def _stratum(passed: int, n: Integers, steps: Integers) -> tuple[int, Floats]:
    """Rows are passes so far, columns their doses; a binomial's coefficients, halved n times, cannot overflow."""
    table = np.zeros((passed + 1, int(n @ steps) + 1))
    table[0, 0] = 1.0
    arms = [(int(count), int(step)) for count, step in zip(n, steps, strict=True)]
    for count, step in arms:
        k = floats(np.arange(min(count, passed) + 1))
        logs = special.gammaln(count + 1) - special.gammaln(k + 1) - special.gammaln(count - k + 1)
        table = _with_arm(table, np.exp(logs - count * math.log(2)), step)
    chances = table[passed]
    possible = np.flatnonzero(chances)
    kept = chances[possible[0] : possible[-1] + 1]
    return int(possible[0]), np.asarray(kept / kept.sum(), dtype=np.float64)


def _with_arm(table: Floats, chances: Floats, step: int) -> Floats:
    found = np.zeros_like(table)
    rows, columns = table.shape
    for k, chance in enumerate(chances.tolist()):
        found[k:, k * step :] += chance * table[: rows - k, : columns - k * step]
    return found


def _central(chances: Floats, at: int, *, midp: bool) -> float:
    below, own, above = float(chances[:at].sum()), float(chances[at]), float(chances[at + 1 :].sum())
    p_value = 2 * (min(below, above) + (0.5 if midp else 1.0) * own)
    return min(1.0, max(p_value, LEAST))
