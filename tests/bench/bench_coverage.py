"""What the intervals cover, beside what is expected of them: exact where the outcomes can be enumerated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from scipy import stats

from tests.bench.figure import Figure
from trialfleet_statistics.estimates import Floats, Integers, Interval, Intervals, floats
from trialfleet_statistics.intervals import (
    clopper_pearson,
    effective_sample_wilson,
    jeffreys,
    pooled_fixed,
    pooled_random,
    stratified_miettinen_nurminen,
    stratified_score_z,
    wilson,
)

TASKS, REPS = 7, 5
MIXED = (1, 1, 0.8, 0.6, 0.4, 0.1, 0)
ONE_CELL: dict[int, tuple[float, float, float]] = {
    3: (0.956, 0.995, 0.963),
    10: (0.954, 0.984, 0.953),
    30: (0.952, 0.973, 0.951),
    100: (0.951, 0.965, 0.950),
    300: (0.951, 0.959, 0.950),
}
# (mu, icc): Wilson of the summed counts, and the hierarchical model with its mean width.
# Fixed tasks, their reps, what `effective_sample_wilson` covers (20,000 runs).
FIXED: dict[str, tuple[Sequence[float], Sequence[int], float]] = {
    "4 x 5, .5": ([0.5] * 4, [5] * 4, 0.957),
    "7 x 5, .6": ([0.6] * 7, [5] * 7, 0.943),
    "7 x 5, mixed": (MIXED, [5] * 7, 0.970),
    "7 x 5, .9": ([0.9] * 7, [5] * 7, 0.918),
    "50 x 5, .5": ([0.5] * 50, [5] * 50, 0.948),
    "12 x 25, ten saturated": ([0] * 5 + [1] * 5 + [0.5, 0.3], [25] * 12, 0.975),
    "12 x 25, ten at .02 or .98": ([0.02] * 5 + [0.98] * 5 + [0.5, 0.3], [25] * 12, 0.970),
    "100 x 1, .5": ([0.5] * 100, [1] * 100, 0.944),
    "four of 25 reps, four of 2": ([0.3, 0.5, 0.7, 0.9] * 2, [25] * 4 + [2] * 4, 0.964),
}
LIKE_THESE: dict[tuple[float, float], tuple[float, float, float]] = {
    (0.6, 0.3): (0.796, 0.964, 0.43),
    (0.6, 0.7): (0.660, 0.934, 0.50),
    (0.8, 0.5): (0.719, 0.961, 0.41),
}


def measure() -> list[Figure]:
    return [*_one_cell(), *_these_tasks(), *_fixed_tasks(), *_tasks_like_these(), *_differences(), *_type_one()]


def _beside(name: str, value: float, expected: float, within: float, note: str = "exact") -> Figure:
    return Figure(
        name, value, "", goal=expected + within, floor=expected - within, note=f"{note}; expected {expected:g}"
    )


def _one_cell() -> Iterator[Figure]:
    """Mean over uniform rates: x is then uniform, and the rate given x is Beta(x + 1, n − x + 1)."""
    for n, expected in ONE_CELL.items():
        x = np.arange(n + 1)
        for method, mean in zip((wilson, clopper_pearson, jeffreys), expected, strict=True):
            found: Intervals = method(x, np.full(n + 1, n))
            inside = stats.beta.cdf(found.high, x + 1, n - x + 1) - stats.beta.cdf(found.low, x + 1, n - x + 1)
            yield _beside(f"{method.__name__}, n = {n}", float(np.mean(inside)), mean, 0.0006)


def _these_tasks() -> Iterator[Figure]:
    """Seven fixed rates, 5 reps. `pooled_fixed` sees only the sum, whose distribution is a convolution."""
    even = (sum(MIXED) / TASKS,) * TASKS
    for name, rates, expected in (("alike", even, 0.960), ("mixed", MIXED, 0.999)):
        truth = sum(rates) / TASKS
        exact = _expectation(_sums(rates), [_holds(_of_sum(total), truth) for total in range(TASKS * REPS + 1)])
        yield _beside(f"pooled_fixed, tasks {name}", exact, expected, 0.001)


def _fixed_tasks() -> Iterator[Figure]:
    for name, (rates, reps, expected) in FIXED.items():
        draws = np.random.default_rng(1).binomial(reps, rates, size=(4000, len(rates)))
        covered = _covered(effective_sample_wilson, draws, reps, sum(rates) / len(rates))
        yield _beside(f"effective_sample_wilson, {name}", covered, expected, 0.014, "4,000 runs")


def _sums(rates: tuple[float, ...]) -> list[float]:
    chances = np.ones(1)
    for rate in rates:
        chances = np.convolve(chances, stats.binom.pmf(np.arange(REPS + 1), REPS, rate))
    return chances.tolist()


def _of_sum(total: int) -> Interval:
    """Whichever tasks the passes lie in."""
    passes = [min(REPS, max(0, total - REPS * task)) for task in range(TASKS)]
    return pooled_fixed(passes, [REPS] * TASKS)


def _covered(method: Callable[..., Interval], draws: Integers, reps: Sequence[int], truth: float) -> float:
    return sum(_holds(method(draw, reps), truth) for draw in draws) / len(draws)


def _holds(found: Interval, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


def _tasks_like_these() -> Iterator[Figure]:
    """Exact: all 792 outcomes of 7 tasks × 5 reps, up to the tasks' order."""
    outcomes = list(itertools.combinations_with_replacement(range(REPS + 1), TASKS))
    pooled = [pooled_fixed(list(outcome), [REPS] * TASKS) for outcome in outcomes]
    random = [pooled_random(list(outcome), [REPS] * TASKS) for outcome in outcomes]
    for (mu, icc), (naive, covers, wide) in LIKE_THESE.items():
        chances = _chances(outcomes, mu, icc)
        expect = partial(_expectation, chances)
        name = f"mu = {mu:g}, icc = {icc:g}"
        yield _beside(f"summed counts, {name}", expect([_holds(i, mu) for i in pooled]), naive, 0.003)
        yield _beside(f"pooled_random, {name}", expect([_holds(i, mu) for i in random]), covers, 0.01)
        widths = [(i.high or 0) - (i.low or 0) for i in random]
        yield _beside("  its mean width", expect(widths), wide, 0.01)


def _chances(outcomes: list[tuple[int, ...]], mu: float, icc: float) -> list[float]:
    size = 1 / icc - 1
    of_task = stats.betabinom.pmf(np.arange(REPS + 1), REPS, mu * size, (1 - mu) * size)
    return [
        math.factorial(TASKS)
        / math.prod(math.factorial(outcome.count(x)) for x in set(outcome))
        * math.prod(float(of_task[x]) for x in outcome)
        for outcome in outcomes
    ]


def _expectation(chances: list[float], values: list[bool] | list[float]) -> float:
    return sum(chance * value for chance, value in zip(chances, values, strict=True))


def _differences() -> Iterator[Figure]:
    """The stratified Miettinen-Nurminen interval, and a narrower candidate for saturated tasks: normal limits with
    the variance of the tasks' own rates, half a pass and half a failure added to each. The candidate would have to
    cover .945 everywhere."""
    for name, (rates_a, rates_b, reps, expected) in DIFFERENCES.items():
        rng, n = np.random.default_rng(6), [reps] * len(rates_a)
        arms = rng.binomial(reps, (rates_a, rates_b), size=(RUNS, 2, len(rates_a)))
        truth = float(np.mean(rates_a) - np.mean(rates_b))
        found = [stratified_miettinen_nurminen(a, n, b, n) for a, b in arms]
        covered = float(np.mean([_holds(interval, truth) for interval in found]))
        wide = float(np.mean([(interval.high or 0) - (interval.low or 0) for interval in found]))
        yield _beside(f"stratified Miettinen-Nurminen, {name}", covered, expected, 0.018, f"{RUNS:,} runs")
        half = _half_width(arms, reps)
        estimates = (arms[:, 0] - arms[:, 1]).mean(axis=1) / reps
        kept = float(np.mean(np.abs(estimates - truth) <= half + 1e-12))
        widths = f"widths {200 * half.mean():.1f} and {100 * wide:.1f} points"
        yield Figure("  rates with half a pass and half a failure more", kept, "", note=widths)


def _half_width(arms: Integers, reps: int) -> Floats:
    shrunk = (arms + 0.5) / (reps + 1)
    variance = (shrunk * (1 - shrunk) / reps).sum(axis=(1, 2)) * 2 * reps / (2 * reps - 1)
    return floats(stats.norm.isf(0.025) * np.sqrt(variance) / arms.shape[2])


def _moving(tasks: int, moving: int, before: float, after: float) -> tuple[list[float], list[float]]:
    """Rates of a and of b: `moving` tasks, and others that pass never and always in turn."""
    rest = [float(place % 2) for place in range(tasks - moving)]
    return [after] * moving + rest, [before] * moving + rest


def _spread(tasks: int, shape: float) -> list[float]:
    return [float(rate) for rate in stats.beta.ppf((np.arange(tasks) + 0.5) / tasks, shape, shape)]


RUNS = 2_000
# Rates of a and of b, reps, what the stratified Miettinen-Nurminen interval covers.
DIFFERENCES: dict[str, tuple[Sequence[float], Sequence[float], int, float]] = {
    "4 x 5, one task 0 to .6": (*_moving(4, 1, 0, 0.6), 5, 1.0),
    "4 x 5, .5": ([0.5] * 4, [0.5] * 4, 5, 0.950),
    "7 x 5, .5, +20 points": ([0.7] * 7, [0.5] * 7, 5, 0.945),
    "7 x 25, .5, +20 points": ([0.7] * 7, [0.5] * 7, 25, 0.950),
    "12 x 25, two tasks 0 to .8": (*_moving(12, 2, 0, 0.8), 25, 1.0),
    "12 x 25, one task .3 to .7": (*_moving(12, 1, 0.3, 0.7), 25, 0.997),
    "20 x 25, one task 0 to .6": (*_moving(20, 1, 0, 0.6), 25, 1.0),
    "20 x 25, one task .5 to .5": (*_moving(20, 1, 0.5, 0.5), 25, 0.943),
    "20 x 10, Beta(.6, .6)": (_spread(20, 0.6), _spread(20, 0.6), 10, 0.951),
    "20 x 10, Beta(.3, .3)": (_spread(20, 0.3), _spread(20, 0.3), 10, 0.951),
    "50 x 5, Beta(.6, .6)": (_spread(50, 0.6), _spread(50, 0.6), 5, 0.948),
    "8 x 25, effects of .4 and -.4": ([0.7] * 4 + [0.3] * 4, [0.3] * 4 + [0.7] * 4, 25, 0.966),
}


def _type_one() -> Iterator[Figure]:
    """No effect on 7 tasks × 5 reps, icc .3, mu .5: the score at 0, and its interval's coverage of 0."""
    rng = np.random.default_rng(2)
    runs, size = 2000, 1 / 0.3 - 1
    rates = rng.beta(size / 2, size / 2, size=(runs, TASKS))
    arms, n = rng.binomial(REPS, rates, size=(2, runs, TASKS)), [REPS] * TASKS
    scores = [stratified_score_z(a, n, b, n, 0.0, weights="mh") for a, b in zip(*arms, strict=True)]
    size_of_test = float(np.mean(np.abs(scores) > stats.norm.isf(0.025)))
    yield _beside("CMH's type I error, as the score at 0", size_of_test, 0.051, 0.012, f"{runs:,} runs")
    kept = [_holds(stratified_miettinen_nurminen(a, n, b, n), 0.0) for a, b in zip(*arms, strict=True)]
    yield _beside("stratified Miettinen-Nurminen covers 0", float(np.mean(kept)), 0.949, 0.012, f"{runs:,} runs")
