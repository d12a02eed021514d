"""Several tests at once: adjusted p-values of one family, and which of its tests can reach alpha at all.

A family is every test that is shown, declared before the results are seen. Discrete tests have a least p that
their margins allow: those that cannot reach alpha are dropped before the adjustment. Margins say nothing of the
effect, so dropping by them keeps the error rate (Tarone 1990).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trialfleet_statistics.estimates import TIES, Floats, floats, share

PValues: TypeAlias = Sequence[float] | NDArray[Any]
Truths: TypeAlias = NDArray[np.bool_]


class Attainability(StrEnum):
    """Why a test cannot come out significant, the reason that lies deepest first."""

    NOT_WITH_THESE_REPS = "cannot reach alpha with these reps"
    NOT_GIVEN_THESE_TOTALS = "cannot reach alpha given these totals"
    NOT_ALONE = "cannot reach alpha in this family unless others agree"
    ALONE = "can reach alpha in this family alone"


@dataclass(frozen=True)
class Attainable:
    """`agreeing`: how many tests of the family must have a p as small as this test's least one; 1: it suffices
    alone, None: no number of them does. `text`: the label for a reader."""

    label: Attainability
    agreeing: int | None
    text: str


@dataclass(frozen=True, eq=False)
class Adjustment:
    """`adjusted`, `rejected`: in the order of the input; a dropped test's adjusted p is NaN and `reason` says why.

    `dropped`: places in the input of the tests that left the family. `family_size`: how many stayed.
    """

    adjusted: Floats
    rejected: Truths
    dropped: tuple[int, ...]
    family_size: int
    method: str
    alpha: float
    reason: NDArray[np.object_]


def holm(p_values: PValues, *, attainable: PValues | None = None, alpha: float = 0.05) -> Adjustment:
    """Holm's step-down: the chance of any false rejection is at most alpha under any dependence.

    Shape (m,). Adjusted p of the i-th smallest: the largest (m − j + 1) p_(j) for j ≤ i, at most 1. Source: Holm
    1979. `attainable`: each test's least p given its margins; tests above alpha are dropped first. For primary
    contrasts. Raises `ValueError` for p outside [0, 1], NaN, another shape, or a least p above its p.

    >>> holm([0.01, 0.04, 0.03]).adjusted.round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    return _adjust("holm", p_values, attainable, alpha, lambda p: np.maximum.accumulate(p * _falling(p)))


def benjamini_hochberg(p_values: PValues, *, attainable: PValues | None = None, alpha: float = 0.05) -> Adjustment:
    """Benjamini and Hochberg's step-up: the expected share of false rejections is at most alpha.

    Shape (m,). Adjusted p of the i-th smallest: the smallest m p_(j) / j for j ≥ i, at most 1. Holds for
    independent tests and for those of positive regression dependence. Source: Benjamini & Hochberg 1995.
    `attainable` and what raises: as in `holm`. Screen with Fisher's p, not mid-p: one perfect split of 5 against 5
    among 7 tasks is not enough.

    >>> screen = benjamini_hochberg([0.0079, 1.0, 0.44, 0.17, 1.0, 1.0, 1.0])
    >>> screen.adjusted.round(3).tolist()[0], screen.rejected.any()
    (0.055, np.False_)
    >>> benjamini_hochberg([0.0079, 1.0, 0.44], attainable=[0.0079, 1.0, 0.0079]).dropped
    (1,)
    """
    return _adjust("benjamini_hochberg", p_values, attainable, alpha, _step_up)


def attainability(with_reps: float, given_totals: float, *, family_size: int, alpha: float = 0.05) -> Attainable:
    """What one test of a family screened by Benjamini-Hochberg could show, before its p is looked at.

    `with_reps`: the least p of any outcome with these reps; `given_totals`: the least p given the margins, never
    less; `family_size`: tests that stayed in the family. A test with least p q is rejected when k tests of m have
    p at most q and m q / k ≤ alpha: `agreeing` is the smallest such k. Raises `ValueError` for p outside [0, 1], a
    family below 1, or totals that allow less than the reps do.

    >>> attainability(0.1, 0.1, family_size=7).text
    'cannot reach alpha with these reps'
    >>> attainability(2 / 252, 2 / 252, family_size=7).text
    'cannot reach alpha in this family unless 2 tasks agree'
    """
    least, given = _probabilities([with_reps, given_totals], "p").tolist()
    if given < least * (1 - TIES):
        raise ValueError(f"given_totals {given} is below with_reps {least}")
    if family_size < 1:
        raise ValueError(f"family_size must be 1 or more, got {family_size}")
    limit = share(alpha, "alpha") * (1 + TIES)
    if least > limit:
        return Attainable(Attainability.NOT_WITH_THESE_REPS, None, Attainability.NOT_WITH_THESE_REPS.value)
    if given > limit:
        return Attainable(Attainability.NOT_GIVEN_THESE_TOTALS, None, Attainability.NOT_GIVEN_THESE_TOTALS.value)
    agreeing = max(1, math.ceil(family_size * given / limit))
    if agreeing == 1:
        return Attainable(Attainability.ALONE, 1, Attainability.ALONE.value)
    text = f"cannot reach alpha in this family unless {agreeing} tasks agree"
    return Attainable(Attainability.NOT_ALONE, agreeing, text)


def _adjust(
    method: str, p_values: PValues, attainable: PValues | None, alpha: float, stepped: Callable[[Floats], Floats]
) -> Adjustment:
    """`stepped`: adjusted values, not yet capped at 1, of p-values in ascending order."""
    p = _probabilities(p_values, "p_values")
    limit = share(alpha, "alpha") * (1 + TIES)
    dropped = _out_of_reach(p, attainable, limit)
    kept = np.flatnonzero(~dropped)
    order = kept[np.argsort(p[kept], kind="stable")]
    adjusted = np.full(p.shape, np.nan)
    adjusted[order] = np.minimum(1.0, stepped(p[order]))
    reason = np.full(p.shape, None, dtype=np.object_)
    reason[dropped] = Attainability.NOT_GIVEN_THESE_TOTALS.value
    places = tuple(np.flatnonzero(dropped).tolist())
    return Adjustment(adjusted, ~dropped & (adjusted <= limit), places, kept.size, method, alpha, reason)


def _out_of_reach(p: Floats, attainable: PValues | None, limit: float) -> Truths:
    if attainable is None:
        return np.zeros(p.shape, dtype=np.bool_)
    least = _probabilities(attainable, "attainable")
    if least.shape != p.shape:
        raise ValueError(f"attainable: expected shape {p.shape}, got {least.shape}")
    if np.any(p < least * (1 - TIES)):
        raise ValueError("attainable: a p-value is below the least that its margins allow")
    return least > limit


def _probabilities(values: ArrayLike, name: str) -> Floats:
    p = floats(values)
    if p.ndim != 1:
        raise ValueError(f"{name}: expected one number per test, shape (m,); got shape {p.shape}")
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError(f"{name} must lie between 0 and 1")
    return p


def _falling(p: Floats) -> Floats:
    return np.arange(p.size, 0.0, -1)


def _step_up(p: Floats) -> Floats:
    return floats(np.minimum.accumulate((p * p.size / np.arange(1, p.size + 1))[::-1])[::-1])
