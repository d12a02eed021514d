"""One cell: exact power of tests of one 2×2 table, the reps that an effect needs, the effect that reps detect."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from trialfleet_statistics.comparisons.fisher import fisher_rejects
from trialfleet_statistics.comparisons.hypergeometric import log_choose
from trialfleet_statistics.comparisons.unconditional import Convention, boschloo_rejects
from trialfleet_statistics.estimates import TIES, Alternative, Floats, Integers, floats, share, whole


def rows(p: Floats, n: int) -> Floats:
    """Shape (P, n + 1): the probabilities of 0 … n passes in n trials, one row per rate."""
    x = np.arange(n + 1)
    rate = p[:, None]
    return np.exp(log_choose(n) + special.xlogy(x, rate) + special.xlog1py(n - x, -rate))


def tails(p: Floats, n: int) -> tuple[Floats, Floats]:
    """`rows`, and of shape (P, n + 2) the probabilities of at least 0 … n + 1 passes."""
    found = rows(p, n)
    above = np.zeros((found.shape[0], n + 2))
    above[:, : n + 1] = np.cumsum(found[:, ::-1], axis=1)[:, ::-1]
    return found, floats(above)


def equal_fisher_power(p_a: Floats, p_b: Floats, n: int, *, alpha: float) -> Floats:
    """Shape (P,): the probability that the test rejects, for each pair of rates."""
    wanted = rejected_from(n, alpha)
    (rows_a, above_a), (rows_b, above_b) = tails(p_a, n), tails(p_b, n)
    upward = np.einsum("ij,ij->i", rows_a, above_b[:, wanted])
    downward = np.einsum("ij,ij->i", rows_b, above_a[:, wanted])
    return floats(np.clip(upward + downward, 0.0, 1.0))


@lru_cache(maxsize=1024)
def rejected_from(n: int, alpha: float) -> Integers:
    """Shape (n + 1,), read-only: for x passes in one arm the least passes in the other, above x, that are
    rejected; n + 1 where none is.

    >>> rejected_from(5, 0.05)
    array([4, 5, 6, 6, 6, 6])
    """
    passes = np.arange(n + 1)
    found: Integers = np.minimum(np.searchsorted(_largest_rejected(n, alpha), passes) - passes, n + 1)
    found.setflags(write=False)
    return found


def _largest_rejected(n: int, alpha: float) -> Integers:
    """For m = 0 … 2n passes in both arms the most passes that the lesser arm may have, −1 where nothing is
    rejected. It never falls with m: more passes in both make few in one arm less likely."""
    half = _lower_half(n, alpha)
    rest = np.arange(n + 1, 2 * n + 1)
    return np.concatenate([half, half[2 * n - rest] + rest - n])  # exchanging pass and fail


def _lower_half(n: int, alpha: float) -> Integers:
    """The same for m = 0 … n: P(X ≤ k | m) ≤ alpha / 2."""
    choose, both = log_choose(n), log_choose(2 * n)[: n + 1]
    columns = n // 2 + 1
    padded = np.concatenate([np.full(columns - 1, -np.inf), choose])  # choose[m − k], impossible below 0
    others = np.lib.stride_tricks.sliding_window_view(padded, columns)[:, ::-1]
    below = np.cumsum(np.exp(choose[:columns] + others - both[:, None]), axis=1)
    below[np.arange(columns)[None, :] > np.arange(n + 1)[:, None]] = np.inf
    rejected: Integers = np.sum(2 * below <= alpha * (1 + TIES), axis=1)
    return rejected - 1


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

    Boschloo's test rejects all that Fisher's does and more, at the same level: 6 to 15 % fewer reps. `convention`
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


def check_shapes(a: Floats, b: Floats, simulations: int) -> None:
    """Raises `ValueError` unless both are of shape (T,), or (simulations, T)."""
    if a.shape != b.shape or not a.size:
        raise ValueError(f"rates_a and rates_b: expected one rate per task in both, got {a.shape} and {b.shape}")
    if a.ndim > 2 or (a.ndim == 2 and len(a) != simulations):
        raise ValueError(f"rates_a: expected shape (T,) or ({simulations}, T), got {a.shape}")


def sizes(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Numbers of trials. Raises `ValueError` unless all are whole and at least 1."""
    found = whole(values, name)
    if np.any(found < 1):
        raise ValueError(f"{name}: expected at least one trial")
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


TestName = Literal["fisher", "boschloo"]


@dataclass(frozen=True)
class RequiredReps:
    """Reps per arm, or None with the `reason`. `first`: the least n whose power reaches the goal. `stable`: the
    least n from which every n up to `n_max` reaches it: plan with this one. `power_first`, `power_stable`: what
    they reach."""

    first: int | None
    stable: int | None
    power_first: float | None
    power_stable: float | None
    n_max: int
    test: TestName
    reason: str | None = None


def required_reps(
    p_a: float, p_b: float, *, power: float = 0.8, alpha: float = 0.05, test: TestName = "fisher", n_max: int = 500
) -> RequiredReps:
    """Reps per arm in one cell, so that a two-sided exact test detects rates p_a against p_b.

    Power is saw-toothed in n, for the attainable p-values are: of .4 against .6, 102 reps reach 80 % and 103 do
    not. Every n up to n_max is enumerated. Boschloo's test is the central one.

    Raises `ValueError` for equal rates (there is nothing to detect), rates outside [0, 1] and unknown tests.

    >>> found = required_reps(0.3, 0.7)
    >>> found.first, found.stable, round(found.power_first or 0, 3)
    (29, 29, 0.814)
    """
    _check(p_a, p_b, power, alpha, n_max)
    exact = power_of(test)
    reached = _reached_by_fisher(p_a, p_b, power, alpha, n_max)
    if test == "boschloo":
        reached = _reached_by_boschloo(p_a, p_b, power, alpha, reached)
    first = int(np.argmax(reached)) if reached.any() else None
    short = np.flatnonzero(~reached)
    stable = int(short[-1]) + 1 if short[-1] < n_max else None
    return RequiredReps(
        first=first,
        stable=stable,
        power_first=None if first is None else exact(p_a, p_b, first, alpha=alpha),
        power_stable=None if stable is None else exact(p_a, p_b, stable, alpha=alpha),
        n_max=n_max,
        test=test,
        reason=None if stable is not None else f"more than {n_max} reps per arm",
    )


def _reached_by_fisher(p_a: float, p_b: float, power: float, alpha: float, n_max: int) -> NDArray[np.bool_]:
    """Shape (n_max + 1,): whether n reps per arm have the power."""
    found = [fisher_power(p_a, p_b, n, alpha=alpha) >= power for n in range(1, n_max + 1)]
    return np.array([False, *found])


def _reached_by_boschloo(
    p_a: float, p_b: float, power: float, alpha: float, by_fisher: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """The same; enumerated only where two bounds leave it open: at equal arms Boschloo's test rejects all that
    Fisher's rejects, and no test is more powerful than the most powerful one, whose power never falls with n."""
    first = bisect_left(range(len(by_fisher)), power, lo=1, key=lambda n: ceiling(p_a, p_b, n, alpha=alpha))
    found = by_fisher.copy()
    for n in np.flatnonzero(~by_fisher[first:]) + first:
        found[n] = boschloo_power(p_a, p_b, int(n), alpha=alpha) >= power
    return found


def power_of(test: TestName) -> Callable[..., float]:
    """Its power function. Raises `ValueError` for an unknown test."""
    if test == "fisher":
        return fisher_power
    if test == "boschloo":
        return boschloo_power
    raise ValueError(f"test: fisher or boschloo, got {test!r}")


def ceiling(p_a: float, p_b: float, n: int, *, alpha: float) -> float:
    """No test that keeps alpha at every common rate has more power than this: Neyman and Pearson's most powerful
    test of the common rate (p_a + p_b) / 2."""
    null = rows(floats([(p_a + p_b) / 2]), n)[0]
    a, b = rows(floats([p_a, p_b]), n)
    under_null, under_effect = np.outer(null, null).ravel(), np.outer(a, b).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(under_null > 0, under_effect / under_null, np.inf))
    spent = np.cumsum(under_null[order])
    whole = int(np.searchsorted(spent, alpha)) + 1  # one outcome more than fits: its share is rounded up
    return float(np.sum(under_effect[order][:whole]))


def _check(p_a: float, p_b: float, power: float, alpha: float, n_max: int) -> None:
    rates([p_a, p_b], "p_a, p_b")
    share(power, "power")
    share(alpha, "alpha")
    sizes(n_max, "n_max")
    if p_a == p_b:
        raise ValueError("p_a and p_b are equal: there is no effect to detect")


STEPS = 200  # effects looked at before the crossing is refined: half a point apart


def minimum_detectable_effect(
    n: int, *, p_b: float | None = None, power: float = 0.8, alpha: float = 0.05, test: TestName = "fisher"
) -> float | None:
    """The least difference of rates from which on a two-sided exact test, with n reps per arm in one cell, has the
    power.

    p_b None: symmetric about .5 (.5 − d/2 against .5 + d/2); otherwise p_b against p_b + d: the gain over a
    control at p_b (for a loss ask 1 − p_b). On the rate scale: 0.41 is 41 points. None when not even p_a = 1 is
    detected: with 5 reps and a control at .2, nothing is.

    Raises `ValueError` for n below 1, a rate outside [0, 1], a power or alpha outside (0, 1), unknown tests.

    >>> round(minimum_detectable_effect(25), 3), round(minimum_detectable_effect(25, p_b=0.05), 3)
    (0.408, 0.339)
    >>> minimum_detectable_effect(5, p_b=0.2) is None
    True
    """
    sizes(n, "n")
    share(power, "power")
    if p_b is not None:
        rates(p_b, "p_b")
    exact, largest = power_of(test), 1.0 if p_b is None else 1.0 - p_b

    def excess(effect: Floats) -> Floats:
        a, b = arms(effect, p_b)
        return floats(exact(a, b, n, alpha=alpha)) - power

    grid = np.linspace(0, largest, STEPS + 1)
    short = np.flatnonzero(excess(grid) < 0)
    if short.size == 0:  # the power asked for is below the test's size
        return 0.0
    if short[-1] == STEPS:
        return None
    low, high = float(grid[short[-1]]), float(grid[short[-1] + 1])
    return float(optimize.brentq(lambda effect: float(excess(floats([effect]))[0]), low, high))


def arms(effect: Floats, p_b: float | None) -> tuple[Floats, Floats]:
    """Rates of treatment and control; clipped, for 0.8 + 0.2 may be above 1."""
    low = 0.5 - effect / 2 if p_b is None else floats(np.full_like(effect, p_b))
    return np.clip(low + effect, 0, 1), np.clip(low, 0, 1)
