"""Families of tests that are corrected together; every result carries its family and its corrected p."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from trialfleet_statistics.estimates import Estimand, Test
from trialfleet_statistics.multiplicity import benjamini_hochberg, holm

R = TypeVar("R")
CorrectionMethod = Literal["holm", "benjamini_hochberg"]
NAMES: dict[Estimand, str] = {"these_tasks": "these tasks", "tasks_like_these": "tasks like these"}


@dataclass(frozen=True)
class AdjustedPValue:
    """A p-value within its family. `p_value` None: the test has none."""

    family: str
    p_value: float | None


@dataclass(frozen=True)
class Family:
    """Tests that are corrected together. `size`: how many took part; `dropped`: the names of those that could not
    have reached alpha with any outcome."""

    id: str
    method: CorrectionMethod
    alpha: float
    size: int
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class PValueSlot(Generic[R]):
    """Where a result keeps one test and its corrected p."""

    test: Callable[[R], Test | None]
    put: Callable[[R, AdjustedPValue], R]


@dataclass(frozen=True)
class Corrected(Generic[R]):
    """Results with their corrected p-values, and the families of their tests."""

    found: tuple[R, ...]
    families: tuple[Family, ...]


def in_both_estimands(
    found: Sequence[R],
    family: str,
    slots: dict[Estimand, PValueSlot[R]],
    name: Callable[[R], str],
    *,
    method: CorrectionMethod,
    alpha: float,
) -> Corrected[R]:
    """One family per estimand."""
    families: tuple[Family, ...] = ()
    for estimand, slot in slots.items():
        done = corrected(found, f"{family}, {NAMES[estimand]}", slot, name, method=method, alpha=alpha)
        found, families = done.found, (*families, *done.families)
    return Corrected(tuple(found), families)


def corrected(
    found: Sequence[R],
    family: str,
    slot: PValueSlot[R],
    name: Callable[[R], str],
    *,
    method: CorrectionMethod,
    alpha: float,
) -> Corrected[R]:
    """One family. A test without a p-value takes no part and stays uncorrected; without any there is no family.

    Benjamini and Hochberg's correction drops and names the tests that cannot reach alpha given their margins.
    """
    tests = {n: test for n, one in enumerate(found) if (test := slot.test(one)) and test.p_value is not None}
    if not tests:
        return Corrected(tuple(found), ())
    p_values = [test.p_value or 0.0 for test in tests.values()]
    if method == "holm":
        adjustment = holm(p_values, alpha=alpha)
    else:
        adjustment = benjamini_hochberg(p_values, attainable=[_attainable(t) for t in tests.values()], alpha=alpha)
    adjusted = [None if math.isnan(p) else p for p in adjustment.adjusted.tolist()]
    done = list(found)
    for n, p in zip(tests, adjusted, strict=True):
        done[n] = slot.put(found[n], AdjustedPValue(family, p))
    dropped = tuple(name(found[n]) for n, p in zip(tests, adjusted, strict=True) if p is None)
    return Corrected(tuple(done), (Family(family, method, alpha, adjustment.family_size, dropped),))


def _attainable(test: Test) -> float:
    """The p itself where the test does not say what it could have reached."""
    p = test.p_value or 0.0
    return p if test.attainable_p is None else min(p, test.attainable_p)
