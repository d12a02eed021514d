"""McNemar's test of discordant pairs."""

from __future__ import annotations

from typing import overload

import numpy as np
from scipy import special

from trialfleet_analysis.comparisons.answers import answer, probability, sided
from trialfleet_analysis.comparisons.hypergeometric import log_factorials
from trialfleet_analysis.estimates import Alternative, Counts, Floats, Integers, Test, Tests, floats, whole


@overload
def mcnemar(only_a: int, only_b: int, *, midp: bool = True, alternative: Alternative = "two-sided") -> Test: ...
@overload
def mcnemar(
    only_a: Counts, only_b: Counts, *, midp: bool = True, alternative: Alternative = "two-sided"
) -> Tests: ...
def mcnemar(
    only_a: int | Counts, only_b: int | Counts, *, midp: bool = True, alternative: Alternative = "two-sided"
) -> Test | Tests:
    """McNemar's exact test: of the pairs that differ, do as many pass in a alone as in b alone? Elementwise.

    only_a is binomial with n = only_a + only_b and rate 1/2. "greater" (a better): P(X > only_a) + P(X = only_a)
    / 2 with `midp`, else P(X ≥ only_a); two-sided: twice the smaller side, at most 1. Source: McNemar 1947;
    mid-p: Fagerland, Lydersen & Laake 2013. It is `stratified_exact` with every pair a stratum of one trial per
    arm. `statistic`: only_a. `n_informative`: pairs that differ; without any p is 1, and the reason says so.

    Pitfall: five pairs that all point one way give .0625 without `midp`. Raises `ValueError` for counts that
    cannot be.

    >>> mcnemar(5, 0).p_value, mcnemar(5, 0, midp=False).p_value, mcnemar(0, 0).p_value
    (0.03125, 0.0625, 1.0)
    """
    sided(alternative)
    one, two = np.broadcast_arrays(whole(only_a, "only_a"), whole(only_b, "only_b"))
    pairs = floats(one + two)
    reasons = np.full(pairs.shape, None, dtype=np.object_)
    reasons[pairs == 0] = "no pair differs"
    share = 0.5 if midp else 1.0
    end = np.exp2(-pairs)  # probability of all pairs pointing one way
    least = np.where(pairs == 0, 1.0, share * end * (2 if alternative == "two-sided" else 1))
    return answer(
        probability(_p_values(one, two, share, alternative)),
        floats(one),
        probability(least),
        one + two,
        reasons,
        method="mcnemar, mid-p" if midp else "mcnemar",
        alternative=alternative,
    )


def _p_values(one: Integers, two: Integers, share: float, alternative: Alternative) -> Floats:
    logs, pairs = log_factorials(int(np.max(one + two, initial=0))), one + two
    at = np.exp(logs[pairs] - logs[one] - logs[two] - pairs * np.log(2))
    greater, less = (np.where(pairs == 0, 1.0, _tail(x, pairs) - (1 - share) * at) for x in (one, two))
    if alternative == "two-sided":
        return floats(np.minimum(1.0, 2 * np.minimum(greater, less)))
    return floats(greater if alternative == "greater" else less)


def _tail(x: Integers, pairs: Integers) -> Floats:
    """P(X ≥ x) for X binomial with rate 1/2."""
    return floats(np.where(x == 0, 1.0, special.betainc(np.maximum(x, 1), pairs - x + 1.0, 0.5)))
