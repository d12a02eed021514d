"""Counts under assumptions about the missing trials, and whether the decision holds under all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_statistics.comparisons import stratified_exact
from trialfleet_statistics.estimates import (
    Counts,
    Floats,
    Integers,
    Tally,
    counts,
    floats,
    rejects,
    share,
    whole,
)

C = TypeVar("C", int, Integers)


class ArmCounts(NamedTuple, Generic[C]):
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
def complete_case(passes: int, valid: int, lost: int) -> ArmCounts[int]: ...
@overload
def complete_case(passes: Counts, valid: Counts, lost: Counts) -> ArmCounts[Integers]: ...
def complete_case(passes: Tally, valid: Tally, lost: Tally) -> ArmCounts[int] | ArmCounts[Integers]:
    """The valid trials alone: unbiased only if a loss does not depend on how the trial would have ended.

    Raises `ValueError` for counts that cannot be.

    >>> complete_case(20, 25, 5)
    ArmCounts(passes=20, trials=25)
    """
    x, n, _ = arm(passes, valid, lost)
    return _counted(x, n)


@overload
def lost_as_failed(passes: int, valid: int, lost: int) -> ArmCounts[int]: ...
@overload
def lost_as_failed(passes: Counts, valid: Counts, lost: Counts) -> ArmCounts[Integers]: ...
def lost_as_failed(passes: Tally, valid: Tally, lost: Tally) -> ArmCounts[int] | ArmCounts[Integers]:
    """Every started trial counts, the lost ones as not passed. Raises `ValueError` for counts that cannot be.

    >>> lost_as_failed(20, 25, 5)
    ArmCounts(passes=20, trials=30)
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
    passes_a: Tally, valid_a: Tally, lost_a: Tally, passes_b: Tally, valid_b: Tally, lost_b: Tally
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


def _counted(passes: Integers, trials: Integers) -> ArmCounts[int] | ArmCounts[Integers]:
    return ArmCounts(passes, trials) if passes.ndim else ArmCounts(int(passes), int(trials))


def _scalars(found: FourCounts[Integers]) -> FourCounts[int]:
    return FourCounts(*(int(values) for values in found))


FEW_CHOICES = 20_000  # tried one by one, the smallest first
FEW_STEPS = 50  # of a path, asked one by one; a longer one is halved

Decide = Callable[[FourCounts[Integers]], int]


@dataclass(frozen=True)
class Tipping:
    """`exhaustive`: no smaller choice is left untried."""

    point: int | None
    exhaustive: bool


def tipping(six: SixCounts, baseline: int, decide: Decide, *, choices: int = FEW_CHOICES) -> Tipping:
    """`baseline`: the complete case's decision, 1 or −1, or another number where it is for neither arm; `decide`:
    that of any counts; `choices`: up to how many are tried one by one."""
    sides = {1: (True,), -1: (False,)}.get(baseline, (True, False))
    lost = np.stack([six[2], six[5]])
    found = [_on_side(six, lost, side, lambda counts: decide(counts) != baseline, choices) for side in sides]
    least = min((side.point for side in found if side.point is not None), default=None)
    return Tipping(least, least == 1 or all(side.exhaustive for side in found))


def _on_side(
    six: SixCounts, lost: Integers, against_a: bool, changed: Callable[[FourCounts[Integers]], bool], few: int
) -> Tipping:
    if prod((lost.ravel() + 1).tolist()) <= few:
        sizes = (int(c.sum()) for c in _choices(lost) if changed(chosen(six, c, against_a=against_a)))
        return Tipping(next(sizes, None), exhaustive=True)
    path, steps = [np.zeros_like(lost)], _steepest(six, lost, against_a)

    def changed_at(step: int) -> bool:
        path.extend(islice(steps, max(0, step + 1 - len(path))))
        return changed(chosen(six, path[step], against_a=against_a))

    every = int(lost.sum())
    if every > FEW_STEPS and not changed(chosen(six, lost, against_a=against_a)):
        return Tipping(None, exhaustive=False)
    point = _first(every, changed_at)
    return Tipping(point, exhaustive=point == 1)


def chosen(six: SixCounts, choice: Integers, *, against_a: bool) -> FourCounts[Integers]:
    """The valid trials and the chosen lost ones: against a, its own failed and b's passed; else the reverse."""
    x_a, n_a, _, x_b, n_b, _ = six
    a, b = choice
    if against_a:
        return FourCounts(x_a, n_a + a, x_b + b, n_b + b)
    return FourCounts(x_a + a, n_a + a, x_b, n_b + b)


def _choices(lost: Integers) -> Iterator[Integers]:
    """All, the smallest first. Only cells that lost something are crossed: there are few, however many tasks."""
    some = np.flatnonzero(lost)
    grid = np.indices(tuple(lost.flat[some] + 1))
    rows = grid.reshape(some.size, -1).T if some.size else np.zeros((1, 0), dtype=np.int64)
    for row in rows[np.argsort(rows.sum(axis=1), kind="stable")]:
        choice = np.zeros_like(lost)
        choice.flat[some] = row
        yield choice


def _steepest(six: SixCounts, lost: Integers, against_a: bool) -> Iterator[Integers]:
    """Choices of 1, 2, 3, … trials, each adding to the last the one that moves the score furthest."""
    choice = np.zeros_like(lost)
    arms, tasks = np.indices(lost.shape)
    for _ in range(int(lost.sum())):
        scores = _scores_after(chosen(six, choice, against_a=against_a), against_a)
        scores[choice >= lost] = -np.inf
        best = int(np.argmax(scores))
        choice = choice.copy()
        choice[arms.flat[best], tasks.flat[best]] += 1
        yield choice


def _scores_after(counts: FourCounts[Integers], against_a: bool) -> Floats:
    """How far the score stands on the adverse side after one more trial, by arm and stratum: shape (2, T)."""
    x_a, n_a, x_b, n_b = counts
    distance, variance = _moments(x_a, n_a, x_b, n_b)
    passed_a, passed_b = (0, 1) if against_a else (1, 0)
    more_a = _moments(x_a + passed_a, n_a + 1, x_b, n_b)
    more_b = _moments(x_a, n_a, x_b + passed_b, n_b + 1)
    after = np.stack([[more_a[0], more_a[1]], [more_b[0], more_b[1]]], axis=1)
    total, spread = (rest.sum() - rest + more for rest, more in zip((distance, variance), after, strict=True))
    score = total / np.sqrt(np.maximum(spread, np.finfo(float).tiny))
    return floats(-score if against_a else score)


def _moments(x_a: Integers, n_a: Integers, x_b: Integers, n_b: Integers) -> tuple[Floats, Floats]:
    """Per stratum: passes in a less their mean given the margins, and their variance, times the weight 1 / n_a +
    1 / n_b of the test and its square; 0 without a trial in either arm."""
    n, passes, pairs = n_a + n_b, x_a + x_b, np.maximum(n_a * n_b, 1)
    distance = (x_a * n_b - x_b * n_a) / pairs
    return floats(distance), floats((n_a * n_b > 0) * passes * (n - passes) / (pairs * np.maximum(n - 1.0, 1.0)))


def _first(last: int, changed: Callable[[int], bool]) -> int | None:
    """The first step of a path with a change. A long path, whose last step has one, is walked in strides that
    double, then halved: far apart its steps do not waver, and no more of it is made than is asked for."""
    low, high = 0, min(FEW_STEPS, last)
    while high < last and not changed(high):
        low, high = high, min(2 * high, last)
    while high - low > FEW_STEPS:
        middle = (low + high) // 2
        low, high = (low, middle) if changed(middle) else (middle, high)
    return next((k for k in range(low + 1, high + 1) if changed(k)), None)


Verdict = Literal["robust", "not robust"]


@dataclass(frozen=True, eq=False)
class Scenario:
    """The comparison under one assumption. `sign`: the test's direction, 1, 0 or −1; `decision`: that sign when p
    is at most alpha, else 0. p is None where the test has none; the stratified exact one always has."""

    name: str
    counts: FourCounts[Integers]
    p_value: float | None
    sign: int
    decision: int


@dataclass(frozen=True, eq=False)
class Robustness:
    """`verdict`: "robust" when all scenarios give one decision, and so does every choice of trials that was tried.
    `scenarios`: complete case, lost as failed, worst, best for a.

    `tipping_point`: the fewest missing trials whose adverse resolution changes the complete case's decision, the
    others staying missing; None when no number of them does. `tipping_exhaustive`: every smaller choice of trials
    was tried; else the point is the least that a directed search found, and fewer might do.
    """

    verdict: Verdict
    scenarios: tuple[Scenario, ...]
    tipping_point: int | None
    tipping_exhaustive: bool
    missing: int
    alpha: float
    method: str = "stratified_exact"
    reason: str | None = None


def robustness(
    passes_a: Tally,
    valid_a: Tally,
    lost_a: Tally,
    passes_b: Tally,
    valid_b: Tally,
    lost_b: Tally,
    *,
    alpha: float = 0.05,
) -> Robustness:
    """Whether the stratified exact test gives one decision for every outcome of the missing trials.

    Numbers, or shape (T,), one entry per stratum. A decision is "a above b", "b above a" or "no rejection", by the
    central mid-p test at alpha: two scenarios that do not reject agree, also when their estimates differ in sign.
    Adverse means against the decision; without a rejection, towards a rejection on either side. Bounds assume
    nothing and are wide: "not robust" says that the losses could matter, not that they did.

    Raises `ValueError` for counts that cannot be, for more than one dimension, and for alpha outside (0, 1).

    >>> found = robustness(20, 25, 5, 12, 25, 2)
    >>> found.verdict, found.tipping_point, [s.decision for s in found.scenarios]
    ('not robust', 2, [1, 0, 0, 1])
    """
    share(alpha, "alpha")
    six = _strata(two_arms(passes_a, valid_a, lost_a, passes_b, valid_b, lost_b))
    scenarios = tuple(judged(name, found, exact, alpha) for name, found in assumed(six).items())
    found = tipping(six, scenarios[0].decision, lambda counts: judged("", counts, exact, alpha).decision)
    agree = len({scenario.decision for scenario in scenarios}) == 1
    missing = int(six[2].sum() + six[5].sum())
    return Robustness(
        "robust" if agree and found.point is None else "not robust",
        scenarios,
        found.point,
        found.exhaustive,
        missing,
        alpha,
        reason=None if missing else "no trial is missing",
    )


def exact(counts: FourCounts[Integers]) -> tuple[float | None, int]:
    """p of the stratified exact test, and its direction."""
    test = stratified_exact(*counts)
    return test.p_value, test.direction


def judged(
    name: str,
    counts: FourCounts[Integers],
    test: Callable[[FourCounts[Integers]], tuple[float | None, int]],
    alpha: float,
) -> Scenario:
    """`test` gives p and the side that it points to, 1, 0 or −1."""
    p_value, sign = test(counts)
    return Scenario(name, counts, p_value, sign, sign if p_value is not None and rejects(p_value, alpha) else 0)


def assumed(six: SixCounts) -> dict[str, FourCounts[Integers]]:
    """By name, the counts under each assumption."""
    x_a, n_a, lost_a, x_b, n_b, lost_b = six
    return {
        "complete case": FourCounts(x_a, n_a, x_b, n_b),
        "lost as failed": FourCounts(x_a, n_a + lost_a, x_b, n_b + lost_b),
        "worst": resolved(six, against_a=True),
        "best": resolved(six, against_a=False),
    }


def _strata(six: SixCounts) -> SixCounts:
    if six[0].ndim > 1:
        raise ValueError(f"expected one entry per stratum, shape (T,); got shape {six[0].shape}")
    one, two, three, four, five, last = (np.atleast_1d(values) for values in six)
    return one, two, three, four, five, last
