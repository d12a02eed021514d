"""Counts under an assumption about the missing trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_analysis.estimates import Counts, Integers, counts, whole

C = TypeVar("C", int, Integers)


class Counted(NamedTuple, Generic[C]):
    """One arm's counts."""

    passes: C
    trials: C


class FourCounts(NamedTuple, Generic[C]):
    """Two arms' counts, in the order that every comparison takes them."""

    passes_a: C
    trials_a: C
    passes_b: C
    trials_b: C


@dataclass(frozen=True, eq=False)
class Bounds(Generic[C]):
    """`worst`: a's lost trials failed and b's passed; `best`: the other way round. a is the treatment."""

    worst: FourCounts[C]
    best: FourCounts[C]


@overload
def complete_case(passes: int, valid: int, lost: int) -> Counted[int]: ...
@overload
def complete_case(passes: Counts, valid: Counts, lost: Counts) -> Counted[Integers]: ...
def complete_case(
    passes: int | Counts, valid: int | Counts, lost: int | Counts
) -> Counted[int] | Counted[Integers]:
    """The valid trials alone: unbiased only if a loss does not depend on how the trial would have ended.

    Raises `ValueError` for counts that cannot be.

    >>> complete_case(20, 25, 5)
    Counted(passes=20, trials=25)
    """
    x, n, _ = arm(passes, valid, lost)
    return _counted(x, n)


@overload
def lost_as_failed(passes: int, valid: int, lost: int) -> Counted[int]: ...
@overload
def lost_as_failed(passes: Counts, valid: Counts, lost: Counts) -> Counted[Integers]: ...
def lost_as_failed(
    passes: int | Counts, valid: int | Counts, lost: int | Counts
) -> Counted[int] | Counted[Integers]:
    """Every started trial counts, the lost ones as not passed. Raises `ValueError` for counts that cannot be.

    >>> lost_as_failed(20, 25, 5)
    Counted(passes=20, trials=30)
    """
    x, n, missing = arm(passes, valid, lost)
    return _counted(x, n + missing)


@overload
def bounds(passes_a: int, valid_a: int, lost_a: int, passes_b: int, valid_b: int, lost_b: int) -> Bounds[int]: ...
@overload
def bounds(
    passes_a: Counts, valid_a: Counts, lost_a: Counts, passes_b: Counts, valid_b: Counts, lost_b: Counts
) -> Bounds[Integers]: ...
def bounds(
    passes_a: int | Counts,
    valid_a: int | Counts,
    lost_a: int | Counts,
    passes_b: int | Counts,
    valid_b: int | Counts,
    lost_b: int | Counts,
) -> Bounds[int] | Bounds[Integers]:
    """Both ends of what the missing trials could have been; no assumption. Source: Manski 1990.

    Raises `ValueError` for counts that cannot be.

    >>> bounds(20, 25, 5, 12, 25, 2).worst
    FourCounts(passes_a=20, trials_a=30, passes_b=14, trials_b=27)
    """
    six = two_arms(passes_a, valid_a, lost_a, passes_b, valid_b, lost_b)
    found = Bounds(worst=resolved(six, against_a=True), best=resolved(six, against_a=False))
    if six[0].ndim:
        return found
    return Bounds(worst=_scalars(found.worst), best=_scalars(found.best))


SixCounts = tuple[Integers, Integers, Integers, Integers, Integers, Integers]


def resolved(six: SixCounts, *, against_a: bool) -> FourCounts[Integers]:
    """All lost trials with an outcome: against a, its own failed and b's passed; else the other way round."""
    x_a, n_a, lost_a, x_b, n_b, lost_b = six
    if against_a:
        return FourCounts(x_a, n_a + lost_a, x_b + lost_b, n_b + lost_b)
    return FourCounts(x_a + lost_a, n_a + lost_a, x_b, n_b + lost_b)


def arm(passes: ArrayLike, valid: ArrayLike, lost: ArrayLike) -> tuple[Integers, Integers, Integers]:
    """As integers of one shape. Raises `ValueError` for counts that cannot be."""
    x, n = counts(passes, whole(valid, "valid"))
    one, two, three = np.broadcast_arrays(x, n, whole(lost, "lost"))
    return one, two, three


def two_arms(
    passes_a: ArrayLike,
    valid_a: ArrayLike,
    lost_a: ArrayLike,
    passes_b: ArrayLike,
    valid_b: ArrayLike,
    lost_b: ArrayLike,
) -> SixCounts:
    """As `arm`, both arms in one shape."""
    a, b = arm(passes_a, valid_a, lost_a), arm(passes_b, valid_b, lost_b)
    one, two, three, four, five, six = np.broadcast_arrays(*a, *b)
    return one, two, three, four, five, six


def _counted(passes: Integers, trials: Integers) -> Counted[int] | Counted[Integers]:
    return Counted(passes, trials) if passes.ndim else Counted(int(passes), int(trials))


def _scalars(found: FourCounts[Integers]) -> FourCounts[int]:
    return FourCounts(*(int(values) for values in found))
