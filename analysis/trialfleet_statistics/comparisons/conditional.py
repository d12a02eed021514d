"""Exact comparison of two arms within strata: the test, and the odds ratio with limits that agree with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import optimize, special

from trialfleet_statistics.comparisons.convolution import (
    Strata,
    Tails,
    centre,
    chances,
    informative,
    informative_strata,
    split,
    tails,
)
from trialfleet_statistics.comparisons.unconditional import Convention, conventional
from trialfleet_statistics.estimates import (
    LEAST,
    TIES,
    Alternative,
    Floats,
    Integers,
    Interval,
    Tally,
    Test,
    floats,
    known_alternative,
    share,
    strata,
)
from trialfleet_statistics.intervals import Weights
from trialfleet_statistics.intervals.differences import resolved_weights

ERRATIC = "sums of unequal weights differ in probability without an order that could be called extreme"
EPSILON = float(np.finfo(np.float64).eps)
FINENESS = 100  # the largest weight of a pass: weights keep two digits
NONE_INFORMATIVE = "no informative stratum: in each an arm has no trial, every trial passed, or none did"


@dataclass(frozen=True)
class StratifiedTest(Test):
    """`direction`: the side of its mean, given the margins, on which the statistic lies: 1 if a passes more often
    than equal rates lead to expect, −1 if less often, 0 within rounding."""

    direction: int = 0


def stratified_exact(
    passes_a: Tally,
    trials_a: Tally,
    passes_b: Tally,
    trials_b: Tally,
    *,
    weights: Weights = "equal",
    midp: bool = True,
    convention: Convention = "central",
    alternative: Alternative = "two-sided",
) -> StratifiedTest:
    """Exact conditional test of equal pass rates in every stratum (task, or task x block): one p for shape (T,).

    W = Σ a_t x_t over informative strata, x_t the passes in arm a, is, given every stratum's margins, a weighted
    sum of hypergeometrics. With c = 1/2 for `midp`, else 1: "greater" P(W > w) + c P(W = w), "less" mirrored;
    two-sided "central" twice the smaller side, at most 1, "minlike" P(π < π_w) + c P(π = π_w) over the
    probabilities π of W, ties within 1e-7; that convention is for `weights` "mh" alone. Source: Cox 1970; mid-p:
    Lancaster 1961. Strata of one trial per arm make it McNemar's test.

    `weights` are those of the strata's differences of rates, as in `stratified_miettinen_nurminen`: "equal", the
    estimand; "mh", R's `mantelhaen.test(exact = TRUE)`; or one number per stratum. They make `pass_weights` a_t
    from the margins alone, which keeps the test exact. With the same trials in every stratum and arm, a_t = 1.

    `statistic`: W. `n_informative`: strata with trials in both arms and both outcomes; without any p is 1, and the
    reason says so. `attainable_p`: the least p that the margins allow. Below 1e-300 p is given as 2.2e-308.

    Pitfall: it answers for *these tasks*. With mid-p the size is near alpha, not guaranteed to stay below it.
    Raises `ValueError` for counts that cannot be.

    >>> found = stratified_exact([5, 3, 5], [5, 5, 5], [1, 2, 5], [5, 5, 5])
    >>> round(found.p_value, 4), found.statistic, found.n_informative, found.direction
    (0.0418, 8.0, 2, 1)
    """
    conventional(convention)
    known_alternative(alternative)
    if convention == "minlike" and not (isinstance(weights, str) and weights == "mh"):
        raise ValueError(f'convention="minlike" wants weights="mh": {ERRATIC}')
    four = strata(passes_a, trials_a, passes_b, trials_b)
    per_pass = pass_weights(*four, weights=weights)
    found = weighted_strata(four, per_pass)
    method = "stratified_exact" + (", mid-p" if midp else "")
    if alternative == "two-sided":
        method += f", {convention}"
    if not found.size:
        return StratifiedTest(1.0, 0.0, method, alternative, 1.0, 0, NONE_INFORMATIVE)
    if alternative == "two-sided" and convention == "minlike":
        p_value, least = _minimum_likelihood(found, midp)
    else:
        p_value = from_tails(tails(found), midp=midp, alternative=alternative)
        least = min(from_tails(end, midp=midp, alternative=alternative) for end in _ends(found))
    return StratifiedTest(
        min(1.0, max(p_value, LEAST)),
        float(found.observed),
        method,
        alternative,
        min(1.0, max(least, LEAST)),
        found.size,
        direction=_direction(four, per_pass),
    )


def pass_weights(
    passes_a: Integers, trials_a: Integers, passes_b: Integers, trials_b: Integers, *, weights: Weights = "equal"
) -> Integers:
    """a_t of `stratified_exact`: whole numbers proportional to w_t (1 / n_a + 1 / n_b), w_t the weight of the
    stratum's difference, the largest 100, the least 1, without their common divisor; 0 where a stratum is not
    informative. Σ a_t (x_t − E x_t) then is Σ w_t d_t but for the rounding.

    >>> pass_weights(*np.array([(25, 25, 3, 25), (9, 25, 4, 6)]).T).tolist()
    [39, 100]
    """
    relative = resolved_weights(weights, trials_a, trials_b)
    kept = informative(passes_a, trials_a, passes_b, trials_b) & (relative > 0)
    found = np.zeros(trials_a.shape, dtype=np.int64)
    if not kept.any():
        return found
    exact = floats(relative[kept] * (1 / trials_a[kept] + 1 / trials_b[kept]))
    shares = FINENESS * exact / float(exact.max())
    found[kept] = np.maximum(1, np.rint(shares.round(9)))  # an exact half is not moved by rounding
    return found // int(np.gcd.reduce(found))


def weighted_strata(four: tuple[Integers, Integers, Integers, Integers], per_pass: Integers) -> Strata:
    """The strata whose passes have a weight."""
    kept = per_pass > 0
    x_a, n_a, x_b, n_b = (counted[kept] for counted in four)
    return informative_strata(x_a, n_a, x_b, n_b, per_pass[kept])


def exact_p(
    distribution: Floats, at: int, *, midp: bool, convention: Convention, alternative: Alternative
) -> float:
    """p of outcome `at` under P(S = k) = `distribution[k]`; not yet held to (0, 1]."""
    if alternative == "two-sided" and convention == "minlike":
        own = float(distribution[at])
        tied = np.abs(distribution - own) <= TIES * own
        return float(
            distribution[(distribution < own) & ~tied].sum() + (0.5 if midp else 1.0) * distribution[tied].sum()
        )
    return from_tails(split(distribution, at), midp=midp, alternative=alternative)


def from_tails(found: Tails, *, midp: bool, alternative: Alternative) -> float:
    """p, two-sided by the central convention; not yet held to (0, 1]."""
    weight = 0.5 if midp else 1.0
    less, greater = found.below + weight * found.own, found.above + weight * found.own
    return {"less": less, "greater": greater, "two-sided": 2 * min(less, greater)}[alternative]


def _ends(found: Strata) -> tuple[Tails, Tails]:
    """The least and the largest sum: every stratum at its own end."""
    last = np.count_nonzero(np.isfinite(found.log_chances), axis=1) - 1
    ends = (found.log_chances[:, 0], found.log_chances[np.arange(last.size), last])
    lowest, highest = (float(np.exp(logs @ found.often)) for logs in ends)
    return Tails(0.0, lowest, 1 - lowest), Tails(1 - highest, highest, 0.0)


def _minimum_likelihood(found: Strata, midp: bool) -> tuple[float, float]:
    """p, and the least that the margins allow."""
    distribution = chances(found)

    def p_value(at: int) -> float:
        return exact_p(distribution, at, midp=midp, convention="minlike", alternative="two-sided")

    return p_value(found.observed - found.low), min(p_value(0), p_value(found.high - found.low))


def _direction(four: tuple[Integers, Integers, Integers, Integers], per_pass: Integers) -> int:
    x_a, n_a, x_b, n_b = four
    distances = per_pass * (x_a * n_b - x_b * n_a) / np.maximum(n_a + n_b, 1)
    total = float(distances.sum())
    return 0 if abs(total) <= TIES * float(np.abs(distances).sum()) else int(np.sign(total))


def conditional_odds_ratio(
    passes_a: Tally,
    trials_a: Tally,
    passes_b: Tally,
    trials_b: Tally,
    *,
    weights: Weights = "equal",
    midp: bool = True,
    level: float = 0.95,
) -> Interval:
    """The common odds ratio of passing, a against b, with limits that agree with `stratified_exact` (central).

    Estimate: the ratio at which W has its observed value as mean; with equal pass weights (all strata alike, or
    `weights` "mh") that is conditional maximum likelihood. Limits: the ratios at which P(W > w) + c P(W = w), and
    the same downwards, are (1 − level) / 2, c = 1/2 for `midp`, else 1; so 1 lies outside exactly when the central
    test of the same c and `weights` rejects at 1 − level. Source: Cornfield 1956; Mehta, Patel & Gray 1985. On the
    scale of odds, not of rates: 0 and infinity are real answers, where W has its least or largest value. `n`:
    trials in informative strata.

    Undefined (None, with the reason) without an informative stratum. Pitfall: one odds ratio for all strata is an
    assumption (`breslow_day`). Raises `ValueError` for counts that cannot be.

    >>> found = conditional_odds_ratio([8, 7], [10, 10], [3, 4], [10, 10])
    >>> round(found.estimate, 2), found.rounded(2)
    (5.06, (1.34, 21.18))
    """
    tail = (1 - share(level, "level")) / 2
    four = strata(passes_a, trials_a, passes_b, trials_b)
    found = weighted_strata(four, pass_weights(*four, weights=weights))
    method = "conditional_odds_ratio, mid-p" if midp else "conditional_odds_ratio"
    if not found.size:
        return Interval(None, None, None, level, 0, method, "these_tasks", NONE_INFORMATIVE)
    estimate = {found.low: 0.0, found.high: math.inf}.get(found.observed)
    start = centre(found, min(max(found.observed, found.low + 0.5), found.high - 0.5))
    if estimate is None:
        estimate = math.exp(start)
    low, high = _limits(found, start, tail, 0.5 if midp else 1.0)
    return Interval(estimate, low, high, level, found.trials, method, "these_tasks")


def _limits(found: Strata, start: float, tail: float, weight: float) -> tuple[float, float]:
    """Solved on the scale of normal quantiles, where tails are nearly straight and few steps are enough."""
    at = _tilted_tails(found, start) if found.even else partial(_tails_at, found, start)

    def beyond(side: float, own: float) -> float:
        return float(special.ndtri(min(max(side + weight * own, LEAST), 1 - EPSILON)) - special.ndtri(tail))

    def above(down: float) -> float:
        sides = at(-down)
        return beyond(sides.above, sides.own)

    def below(up: float) -> float:
        sides = at(up)
        return beyond(sides.below, sides.own)

    reach = 10 / math.sqrt(found.trials)  # of the limits, about, where half of the trials pass
    low = 0.0 if found.observed == found.low else math.exp(start - _root(above, reach))
    high = math.inf if found.observed == found.high else math.exp(start + _root(below, reach))
    return low, high


def _tails_at(found: Strata, start: float, shift: float) -> Tails:
    return tails(found, start + shift)


def _tilted_tails(found: Strata, start: float) -> Callable[[float], Tails]:
    """Of a sum of passes, by a shift of the log odds ratio: solved from the distribution tilted to lie around the
    observed sum, where nothing has underflowed. One convolution is enough for all shifts."""
    with np.errstate(divide="ignore"):
        logs = np.log(chances(found, start))
    at = found.observed - found.low

    def shifted(shift: float) -> Tails:
        tilted = logs + (np.arange(logs.size) - at) * shift
        terms = np.exp(tilted - tilted.max())
        return split(terms / terms.sum(), at)

    return shifted


def _root(falling: Callable[[float], float], reach: float) -> float:
    """Where a falling function is 0: left of 0 when it starts below, else right of it."""
    low, high = -reach, reach
    while falling(low) < 0:
        low *= 2
    while falling(high) > 0:
        high *= 2
    return float(optimize.brentq(falling, low, high, xtol=1e-13, rtol=1e-14))
