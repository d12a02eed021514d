"""The fewest missing trials that, resolved against a decision, change it.

A choice says how many lost trials get the adverse outcome: shape (2, T), arm by stratum; the others stay missing.
Which stratum a trial lies in matters, and there are too many choices to try all, so that large searches follow the
steepest path of the normal approximation and ask the exact test only where it may change its mind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import prod

import numpy as np

from trialfleet_analysis.estimates import Floats, Integers, floats
from trialfleet_analysis.missing.counted import FourCounts, SixCounts

FEW_CHOICES = 400  # tried one by one, the smallest first
FEW_STEPS = 50  # of a path, asked one by one; a longer one is halved

Decide = Callable[[FourCounts[Integers]], int]


@dataclass(frozen=True)
class Tipping:
    """`exhaustive`: no smaller choice is left untried."""

    point: int | None
    exhaustive: bool


def tipping(six: SixCounts, baseline: int, decide: Decide) -> Tipping:
    """`baseline`: the complete case's decision, 1, 0 or −1; `decide`: that of any counts."""
    sides = {1: (True,), -1: (False,), 0: (True, False)}[baseline]
    lost = np.stack([six[2], six[5]])
    found = [_on_side(six, lost, side, lambda counts: decide(counts) != baseline) for side in sides]
    points = [side.point for side in found if side.point is not None]
    return Tipping(min(points, default=None), all(side.exhaustive for side in found))


def _on_side(
    six: SixCounts, lost: Integers, against_a: bool, changed: Callable[[FourCounts[Integers]], bool]
) -> Tipping:
    if prod((lost.ravel() + 1).tolist()) <= FEW_CHOICES:
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
    """Per stratum: passes in a less their mean given the margins, and their variance."""
    n, passes = n_a + n_b, x_a + x_b
    some = np.maximum(n, 1)
    distance = x_a - n_a * passes / some
    return floats(distance), floats(n_a * n_b * passes * (n - passes) / (some * some * np.maximum(n - 1.0, 1.0)))


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
