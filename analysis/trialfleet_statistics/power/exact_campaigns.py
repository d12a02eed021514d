"""The exact p-values of thousands of simulated campaigns with the same reps, computed together.

One after another, each campaign of a few tasks costs a hundred calls of numpy on tiny arrays. Here a call works on
all campaigns: the distributions of their sums grow task by task, by shifted additions. Campaigns that are too
large for that are analysed one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from trialfleet_statistics.comparisons.conditional import (
    exact_p,
    pass_weights,
    stratified_exact,
)
from trialfleet_statistics.comparisons.convolution import (
    combinations,
    convolved,
    enumerated,
    equal_arms,
    powered,
)
from trialfleet_statistics.estimates import LEAST, Floats, Integers, floats

WORK, EQUAL_WORK = 500_000, 20_000  # additions per campaign from which one by one is faster; with equal reps
COMBINATION = 40  # additions that take as long as one combination
POINTS = 500_000  # of all campaigns' distributions together, so that they stay in the processor's cache


def exact_p_values(passes_a: Integers, passes_b: Integers, reps: Integers) -> Floats:
    """`stratified_exact`'s p, mid-p and central, of every campaign. Passes: shape (campaigns, T), reps: (T,)."""
    if not np.ptp(reps):
        weights = np.ones_like(reps)
        few = _work(reps, weights) <= EQUAL_WORK
        return (
            _together(passes_a, passes_b, reps, weights) if few else _equal_arms(passes_a, passes_b, int(reps[0]))
        )
    found = np.empty(len(passes_a))
    least = _least_reps(passes_a + passes_b, reps)
    for fewest in np.unique(least).tolist():  # passes weigh by task, relative to those of the fewest reps
        a, b = (passes[least == fewest] for passes in (passes_a, passes_b))
        one = (reps >= fewest).astype(np.int64)
        weights = pass_weights(one, reps, np.zeros_like(one), reps)
        few = _work(reps, weights) <= WORK
        found[least == fewest] = _together(a, b, reps, weights) if few else _one_by_one(a, b, reps)
    return found


def _least_reps(passes: Integers, reps: Integers) -> Integers:
    """Of each campaign's informative tasks; without any, more than any task has."""
    informative = (passes > 0) & (passes < 2 * reps)
    return np.asarray(np.where(informative, reps, reps.max() + 1).min(axis=1))


def _work(reps: Integers, weights: Integers) -> int:
    alike = [reps[weights == of] for of in np.unique(weights)]
    additions = sum(int((of + 1) @ np.cumsum(of)) for of in alike)
    return additions + COMBINATION * combinations(weights, reps)


def _together(passes_a: Integers, passes_b: Integers, reps: Integers, weights: Integers) -> Floats:
    size = max(1, POINTS // (combinations(weights, reps) + int(reps.sum())))
    parts = range(0, len(passes_a), size)
    return np.concatenate([_part(passes_a[i : i + size], passes_b[i : i + size], reps, weights) for i in parts])


def _part(passes_a: Integers, passes_b: Integers, reps: Integers, weights: Integers) -> Floats:
    passes = passes_a + passes_b
    at = (passes_a - np.maximum(0, passes - reps)) @ weights
    alike = ((int(of), weights == of) for of in np.unique(weights) if of)
    groups = [(of, _sums(passes[:, own], reps[own].tolist())) for of, own in alike]
    if not groups:
        return np.ones(at.size)
    below, own, above = enumerated(groups, at)
    return floats(np.clip(2 * np.minimum(below + own / 2, above + own / 2), LEAST, 1.0))


def _sums(passes: Integers, reps: Sequence[int]) -> Floats:
    """P(passes in a = their least + k), shape (points, campaigns). `passes`: of both arms, by task."""
    chances = np.ones((1, len(passes)))
    for n, of in zip(reps, passes.T, strict=True):
        grown = np.zeros((len(chances) + n, len(passes)))
        for k, chance in enumerate(_table(n)[:, of]):
            grown[k : k + len(chances)] += chance * chances
        chances = grown
    return chances


def _table(n: int) -> Floats:
    """P(passes in a = least + k | m passes in both arms of n trials each), shape (n + 1, 2 n + 1)."""
    found = np.zeros((n + 1, 2 * n + 1))
    found[0, [0, -1]] = 1.0
    for passes, chances in enumerate(equal_arms(n), start=1):
        found[: chances.size, passes] = chances
    return found


def _one_by_one(passes_a: Integers, passes_b: Integers, reps: Integers) -> Floats:
    every = (stratified_exact(a, reps, b, reps) for a, b in zip(passes_a, passes_b, strict=True))
    return np.array([test.p_value for test in every], dtype=np.float64)


def _equal_arms(passes_a: Integers, passes_b: Integers, n: int) -> Floats:
    """With as many reps in each task a pass weighs 1, and equal strata are raised to their power."""
    passes = passes_a + passes_b
    above = (passes_a - np.maximum(0, passes - n)).sum(axis=1).tolist()
    return np.array([_equal_arms_p(n, Counter(of), at) for of, at in zip(passes.tolist(), above, strict=True)])


def _equal_arms_p(n: int, margins: Counter[int], at: int) -> float:
    """`at`: the passes in arm a above the least that the margins allow."""
    p = exact_p(_equal_arms_sum(n, margins), at, midp=True, convention="central", alternative="two-sided")
    return min(1.0, max(p, LEAST))


def _equal_arms_sum(n: int, margins: Counter[int]) -> Floats:
    """Of one campaign. `margins`: how many tasks have these passes in both arms of `n` reps."""
    informative = [(passes, often) for passes, often in sorted(margins.items()) if 0 < passes < 2 * n]
    return convolved([powered(equal_arms(n)[passes - 1], often) for passes, often in informative])


def sums_given_margins(passes: Integers, n: int) -> Floats:
    """P(passes in a = the least that the margins allow + k), shape (points, campaigns), in arms of `n` reps of
    each task. `passes`: of both arms, shape (campaigns, T)."""
    reps = np.full(passes.shape[1], n)
    if _work(reps, np.ones_like(reps)) <= EQUAL_WORK:
        return _sums(passes, reps.tolist())
    every = [_equal_arms_sum(n, Counter(of)) for of in passes.tolist()]
    found = np.zeros((max(one.size for one in every), len(every)))
    for place, one in enumerate(every):
        found[: one.size, place] = one
    return found
