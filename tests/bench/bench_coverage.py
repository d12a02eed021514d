"""What the intervals cover, beside what is expected of them: exact where the outcomes can be enumerated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy import stats

from tests.bench.figure import Figure
from trialfleet_analysis.estimates import Integers, Interval, Intervals
from trialfleet_analysis.intervals import (
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
LIKE_THESE: dict[tuple[float, float], tuple[float, float, float]] = {
    (0.6, 0.3): (0.796, 0.964, 0.43),
    (0.6, 0.7): (0.660, 0.934, 0.50),
    (0.8, 0.5): (0.719, 0.961, 0.41),
}


def measure() -> list[Figure]:
    return [*_one_cell(), *_these_tasks(), *_tasks_like_these(), *_type_one()]


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
        draws = np.random.default_rng(1).binomial(REPS, rates, size=(4000, TASKS))
        sharp = _covered(effective_sample_wilson, draws, truth)
        note = "4,000 runs; expected .91 to .99"
        yield Figure(f"effective_sample_wilson, tasks {name}", sharp, "", goal=0.99, floor=0.91, note=note)


def _sums(rates: tuple[float, ...]) -> list[float]:
    chances = np.ones(1)
    for rate in rates:
        chances = np.convolve(chances, stats.binom.pmf(np.arange(REPS + 1), REPS, rate))
    return chances.tolist()


def _of_sum(total: int) -> Interval:
    """Whichever tasks the passes lie in."""
    passes = [min(REPS, max(0, total - REPS * task)) for task in range(TASKS)]
    return pooled_fixed(passes, [REPS] * TASKS)


def _covered(method: Callable[..., Interval], draws: Integers, truth: float) -> float:
    return sum(_holds(method(draw, [REPS] * TASKS), truth) for draw in draws) / len(draws)


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
