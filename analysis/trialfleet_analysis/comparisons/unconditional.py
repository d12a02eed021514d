"""Boschloo's test: it holds only the arms' sizes fixed and takes the worst common pass rate."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Literal, get_args, overload

import numpy as np

from trialfleet_analysis.comparisons.answers import at_most, sided
from trialfleet_analysis.comparisons.fisher import fisher_design
from trialfleet_analysis.comparisons.nuisance import exceeds
from trialfleet_analysis.comparisons.region import Found, Mask, each_table, size, weights
from trialfleet_analysis.estimates import Alternative, Counts, Floats, Test, Tests, share

Convention = Literal["central", "minlike"]


@overload
def boschloo(
    passes_a: int,
    trials_a: int,
    passes_b: int,
    trials_b: int,
    *,
    convention: Convention = "central",
    alternative: Alternative = "two-sided",
) -> Test: ...
@overload
def boschloo(
    passes_a: Counts,
    trials_a: Counts,
    passes_b: Counts,
    trials_b: Counts,
    *,
    convention: Convention = "central",
    alternative: Alternative = "two-sided",
) -> Tests: ...
def boschloo(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    convention: Convention = "central",
    alternative: Alternative = "two-sided",
) -> Test | Tests:
    """Boschloo's exact test of equal pass rates: Fisher's p as the statistic, no margin but the arms fixed.

    p = sup over π of P(Fisher's p ≤ the observed one) with both arms at rate π, tables within 1e-7 of each other
    tied; never above Fisher's p of the same convention, at nominal size. Two-sided: "central" is twice the smaller
    one-sided p, "minlike" takes the two-sided Fisher p as the statistic; they differ (1/5 v 6/7: .0464, .0386), so
    name the one used. Source: Boschloo 1970. `statistic`: Fisher's p that was ordered by (central: that of the
    smaller side). `attainable_p`: the least p of any table with these arms. `n_informative`: trials in both arms,
    0 where all passed or none did.

    Undefined (None, NaN in arrays) where an arm has no trial. Raises `ValueError` for counts that cannot be.
    Memory and time grow with trials_a x trials_b.

    >>> found = boschloo(1, 5, 6, 7)
    >>> round(found.p_value, 4), round(boschloo(1, 5, 6, 7, convention="minlike").p_value, 4)
    (0.0464, 0.0386)
    """
    conventional(convention)
    sided(alternative)
    central = alternative == "two-sided" and convention == "central"
    one = _central if central else partial(_one_statistic, alternative=alternative)
    method = f"boschloo, {convention}" if alternative == "two-sided" else "boschloo"
    return each_table(passes_a, trials_a, passes_b, trials_b, one, method, alternative)


def boschloo_rejects(
    n_a: int,
    n_b: int,
    *,
    alpha: float,
    convention: Convention = "central",
    alternative: Alternative = "two-sided",
) -> Mask:
    """Which tables of a design Boschloo's test rejects: shape (n_a + 1, n_b + 1), rows passes in a; read-only.

    >>> boschloo_rejects(5, 5, alpha=0.05).sum()
    np.int64(6)
    """
    return _rejects(n_a, n_b, share(alpha, "alpha"), conventional(convention), sided(alternative))


def conventional(convention: Convention) -> Convention:
    """Raises `ValueError` for what is no two-sided convention."""
    if convention not in get_args(Convention):
        raise ValueError(f"convention must be one of {', '.join(get_args(Convention))}, got {convention!r}")
    return convention


@lru_cache(maxsize=128)
def _rejects(n_a: int, n_b: int, alpha: float, convention: Convention, alternative: Alternative) -> Mask:
    if alternative == "two-sided" and convention == "central":
        greater = _rejects(n_a, n_b, alpha / 2, convention, "greater")
        mask = greater | (greater.T if n_a == n_b else _rejects(n_a, n_b, alpha / 2, convention, "less"))
    else:
        mask = _largest_region(fisher_design(n_a, n_b, alternative), n_a, n_b, alpha)
    mask.setflags(write=False)
    return mask


def _largest_region(statistic: Floats, n_a: int, n_b: int, alpha: float) -> Mask:
    """All tables with p ≤ alpha: p grows with the statistic, so the last value that holds is found by halving.
    Fisher's own region always holds."""
    ascending = np.sort(statistic, axis=None)
    holds, fails = int(np.count_nonzero(at_most(ascending, alpha))) - 1, ascending.size
    while fails - holds > 1:
        middle = (holds + fails) // 2
        region = at_most(statistic, float(ascending[middle]))
        holds, fails = (holds, middle) if exceeds(weights(region, n_a, n_b), alpha) else (middle, fails)
    return at_most(statistic, float(ascending[holds])) if holds >= 0 else np.zeros(statistic.shape, dtype=np.bool_)


def _one_statistic(x_a: int, x_b: int, n_a: int, n_b: int, alternative: Alternative) -> Found:
    """p, the statistic, and the least p that these arms allow."""
    if alternative == "less":  # fewer passes are more failures
        return _one_statistic(n_a - x_a, n_b - x_b, n_a, n_b, "greater")
    observed = float(fisher_design(n_a, n_b, alternative)[x_a, x_b])
    return _size(n_a, n_b, alternative, observed), observed, _least(n_a, n_b, alternative)


@lru_cache(maxsize=1024)  # tables with pass and fail exchanged share their statistic
def _size(n_a: int, n_b: int, alternative: Alternative, observed: float) -> float:
    return size(at_most(fisher_design(n_a, n_b, alternative), observed), n_a, n_b)


@lru_cache(maxsize=64)
def _least(n_a: int, n_b: int, alternative: Alternative) -> float:
    statistic = fisher_design(n_a, n_b, alternative)
    return size(at_most(statistic, float(statistic.min())), n_a, n_b)


def _central(x_a: int, x_b: int, n_a: int, n_b: int) -> Found:
    sides: tuple[Alternative, ...] = ("greater", "less")
    greater, less = (_one_statistic(x_a, x_b, n_a, n_b, side) for side in sides)
    p_value, statistic, _ = min(greater, less)
    return min(1.0, 2 * p_value), statistic, min(1.0, 2 * min(greater[2], less[2]))
