"""How many reps a cell needs before a test of its 2×2 table detects an effect."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trialfleet_analysis.estimates import floats, share
from trialfleet_analysis.power.binomial import rows
from trialfleet_analysis.power.exact import boschloo_power, fisher_power, rates, sizes

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
    p_a: float,
    p_b: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    test: TestName = "fisher",
    n_max: int = 500,
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
