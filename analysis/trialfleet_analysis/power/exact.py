"""Exact power of tests of one 2×2 table: every outcome weighed by its probability, nothing simulated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trialfleet_analysis.comparisons.fisher import fisher_rejects
from trialfleet_analysis.comparisons.unconditional import boschloo_rejects
from trialfleet_analysis.estimates import Alternative, Floats, floats, share, whole
from trialfleet_analysis.power.binomial import rows
from trialfleet_analysis.power.equal_arms import equal_fisher_power

Convention = Literal["central", "minlike"]
PowerOfPairs: TypeAlias = Callable[[Floats, Floats, int, int], Floats]


@overload
def fisher_power(
    p_a: float,
    p_b: float,
    n_a: int,
    n_b: int | None = None,
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> float: ...
@overload
def fisher_power(
    p_a: ArrayLike,
    p_b: ArrayLike,
    n_a: ArrayLike,
    n_b: ArrayLike | None = None,
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> float | Floats: ...
def fisher_power(
    p_a: ArrayLike,
    p_b: ArrayLike,
    n_a: ArrayLike,
    n_b: ArrayLike | None = None,
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> float | Floats:
    """Probability that Fisher's exact test rejects, when arms of n_a and n_b trials pass at rates p_a and p_b.

    Σ over all tables of P(x_a) P(x_b) where the test's p-value is at most alpha. Rates and sizes broadcast;
    scalars give a float. `n_b` None: as many as n_a. At p_a = p_b it is the test's size, which lies far below
    alpha for small n. The power is saw-toothed in n: `required_reps` says from where it stays. For one cell: of
    reps pooled over tasks it means nothing (`stratified_power`).

    Raises `ValueError` for rates outside [0, 1], sizes below 1 and an alpha outside (0, 1).

    >>> round(fisher_power(0.4, 0.6, 25), 3), round(fisher_power(0.4, 0.6, 108), 3)
    (0.237, 0.802)
    """
    share(alpha, "alpha")

    def of_pairs(rates_a: Floats, rates_b: Floats, a: int, b: int) -> Floats:
        if a == b and alternative == "two-sided":
            return equal_fisher_power(rates_a, rates_b, a, alpha=alpha)
        return region_power(rates_a, rates_b, fisher_rejects(a, b, alpha=alpha, alternative=alternative))

    return _power(p_a, p_b, n_a, n_b, of_pairs)


@overload
def boschloo_power(
    p_a: float,
    p_b: float,
    n_a: int,
    n_b: int | None = None,
    *,
    convention: Convention = "central",
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> float: ...
@overload
def boschloo_power(
    p_a: ArrayLike,
    p_b: ArrayLike,
    n_a: ArrayLike,
    n_b: ArrayLike | None = None,
    *,
    convention: Convention = "central",
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> float | Floats: ...
def boschloo_power(
    p_a: ArrayLike,
    p_b: ArrayLike,
    n_a: ArrayLike,
    n_b: ArrayLike | None = None,
    *,
    convention: Convention = "central",
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> float | Floats:
    """Probability that Boschloo's test rejects; arguments as `fisher_power`.

    Boschloo's test rejects whatever Fisher's does and more, at the same level: 6 to 15 % fewer reps. `convention`
    is that of `boschloo`; the two differ at two-sided tests only. Source: Boschloo 1970.

    >>> round(boschloo_power(0.4, 0.6, 25), 3)
    0.251
    """
    share(alpha, "alpha")

    def of_pairs(rates_a: Floats, rates_b: Floats, a: int, b: int) -> Floats:
        region = boschloo_rejects(a, b, alpha=alpha, convention=convention, alternative=alternative)
        return region_power(rates_a, rates_b, region)

    return _power(p_a, p_b, n_a, n_b, of_pairs)


def rates(values: ArrayLike, name: str) -> Floats:
    """Rates as floats. Raises `ValueError` unless all lie in [0, 1]."""
    found = floats(values)
    if not np.all((found >= 0) & (found <= 1)):
        raise ValueError(f"{name}: rates lie between 0 and 1")
    return found


def sizes(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Numbers of trials. Raises `ValueError` unless all are whole and at least 1."""
    found = whole(values, name)
    if np.any(found < 1):
        raise ValueError(f"{name}: at least one trial is wanted")
    return found


def region_power(p_a: Floats, p_b: Floats, region: NDArray[np.bool_]) -> Floats:
    """Shape (P,): the probability of the region, of shape (n_a + 1, n_b + 1), under each pair of rates."""
    a, b = rows(p_a, region.shape[0] - 1), rows(p_b, region.shape[1] - 1)
    return floats(np.clip(np.einsum("ij,ij->i", a @ region.astype(np.float64), b), 0.0, 1.0))


def _power(
    p_a: ArrayLike, p_b: ArrayLike, n_a: ArrayLike, n_b: ArrayLike | None, of_pairs: PowerOfPairs
) -> float | Floats:
    """One region per distinct pair of sizes, all its rates at once."""
    a, b, sizes_a, sizes_b = np.broadcast_arrays(
        rates(p_a, "p_a"),
        rates(p_b, "p_b"),
        sizes(n_a, "n_a"),
        sizes(n_a if n_b is None else n_b, "n_b"),
    )
    power = np.empty(a.shape)
    for pair in sorted(set(zip(sizes_a.ravel().tolist(), sizes_b.ravel().tolist(), strict=True))):
        here = (sizes_a == pair[0]) & (sizes_b == pair[1])
        power[here] = of_pairs(a[here], b[here], *pair)
    return float(power) if power.ndim == 0 else power
