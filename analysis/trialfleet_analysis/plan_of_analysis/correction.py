"""One family of tests, corrected together; every result carries its family and its corrected p."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from trialfleet_analysis.estimates import Test
from trialfleet_analysis.multiplicity import benjamini_hochberg, holm
from trialfleet_analysis.report.document.contrasts import Adjusted, Family

R = TypeVar("R")


@dataclass(frozen=True)
class Place(Generic[R]):
    """Where a result keeps one test, and where its corrected p goes."""

    test: Callable[[R], Test | None]
    put: Callable[[R, Adjusted], R]
    name: Callable[[R], str]


def by_holm(found: Sequence[R], family: str, place: Place[R], *, alpha: float) -> tuple[list[R], Family | None]:
    """No family without a p-value; a test without one takes no part, and is left uncorrected."""
    tests = _with_p(found, place)
    if not tests:
        return list(found), None
    adjusted = holm(list(tests.values()), alpha=alpha).adjusted.tolist()
    values = dict(zip(tests, adjusted, strict=True))
    done = [place.put(one, Adjusted(family, values[n])) if n in values else one for n, one in enumerate(found)]
    return done, Family(family, "holm", alpha, len(tests), ())


def by_benjamini_hochberg(
    found: Sequence[R], family: str, place: Place[R], *, alpha: float
) -> tuple[list[R], Family | None]:
    """As `by_holm`; tests that cannot reach alpha given their margins are dropped first, and named."""
    tests = _with_p(found, place)
    if not tests:
        return list(found), None
    reach = [_attainable(place.test(found[n]), p) for n, p in tests.items()]
    corrected = benjamini_hochberg(list(tests.values()), attainable=reach, alpha=alpha)
    values = {n: None if math.isnan(p) else p for n, p in zip(tests, corrected.adjusted.tolist(), strict=True)}
    done = [place.put(one, Adjusted(family, values[n])) if n in values else one for n, one in enumerate(found)]
    dropped = tuple(place.name(found[n]) for n, p in values.items() if p is None)
    return done, Family(family, "benjamini_hochberg", alpha, corrected.family_size, dropped)


def _with_p(found: Sequence[R], place: Place[R]) -> dict[int, float]:
    return {
        n: test.p_value
        for n, one in enumerate(found)
        if (test := place.test(one)) is not None and test.p_value is not None
    }


def _attainable(test: Test | None, p: float) -> float:
    """A test that does not say what it could have reached is taken to reach what it did."""
    return p if test is None or test.attainable_p is None else min(p, test.attainable_p)
