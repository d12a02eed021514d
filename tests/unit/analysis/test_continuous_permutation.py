"""The stratified permutation test against every arrangement, written out, and its random arrangements."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_statistics.continuous import stratified_permutation
from trialfleet_statistics.continuous.permutation import Statistic
from trialfleet_statistics.estimates import Alternative

Task = tuple[list[int], list[int]]  # values of a, values of b
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "greater", "less")
tasks = st.lists(st.tuples(*[st.lists(st.integers(0, 5), min_size=1, max_size=3)] * 2), min_size=1, max_size=2)


def columns(given_tasks: list[Task]) -> tuple[list[float], list[int], list[str]]:
    rows = [
        (float(v), arm, f"task {t}")
        for t, (a, b) in enumerate(given_tasks)
        for arm, vs in ((1, a), (0, b))
        for v in vs
    ]
    return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]


def score(a: list[int], b: list[int], statistic: Statistic) -> Fraction:
    """One task's part, less its mean over arrangements."""
    if statistic == "mean":
        return Fraction(sum(a), len(a)) - Fraction(sum(b), len(b))
    pooled = a + b
    ranks = [Fraction(2 * sum(w < v for w in pooled) + sum(w == v for w in pooled) + 1, 2) for v in a]
    return sum(ranks, Fraction(0)) - Fraction(len(a) * (len(pooled) + 1), 2)


def arrangements(task: Task) -> Iterator[Task]:
    pooled = task[0] + task[1]
    for chosen in combinations(range(len(pooled)), len(task[0])):
        yield [pooled[i] for i in chosen], [v for i, v in enumerate(pooled) if i not in chosen]


def enumerated(given_tasks: list[Task], statistic: Statistic, alternative: Alternative) -> tuple[float, float]:
    """The p-value, and the least one over all arrangements."""
    null = [
        sum(parts)
        for parts in product(*([score(*way, statistic) for way in arrangements(t)] for t in given_tasks))
    ]
    observed = sum(score(*task, statistic) for task in given_tasks)
    size = {"two-sided": abs, "greater": lambda s: s, "less": lambda s: -s}[alternative]
    sizes = [size(s) for s in null]
    return sum(s >= size(observed) for s in sizes) / len(null), sum(s >= max(sizes) for s in sizes) / len(null)


@given(tasks, st.sampled_from(["rank", "mean"]), st.sampled_from(ALTERNATIVES))
@settings(max_examples=50, deadline=None)
def test_every_arrangement(given_tasks: list[Task], statistic: Statistic, alternative: Alternative) -> None:
    found = stratified_permutation(*columns(given_tasks), statistic=statistic, seed=1, alternative=alternative)
    p, least = enumerated(given_tasks, statistic, alternative)
    assert found.exact
    assert found.monte_carlo_se == 0
    assert found.p_value == pytest.approx(p, rel=1e-12)
    assert found.attainable_p == pytest.approx(least, rel=1e-12)


def test_published() -> None:
    # Hollander & Wolfe 1973, table 4.1: permeability of the chorioamnion; W = 30 for the second sample, one-sided
    # p = .1272 (R's example of wilcox.test gives W = 35, p-value = 0.1272).
    term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
    early = [1.15, 0.88, 0.90, 0.74, 1.21]
    found = stratified_permutation(term + early, [1] * 10 + [0] * 5, [0] * 15, seed=1, alternative="greater")
    assert found.statistic == 35 + 10 * 11 / 2
    assert found.p_value == pytest.approx(0.1272, abs=5e-5)


@pytest.mark.parametrize("statistic", ["rank", "mean"])
def test_drawn_arrangements_agree_with_all(statistic: Statistic) -> None:
    rng = np.random.default_rng(4)
    arm, task = np.tile([1, 1, 0, 1, 0, 0], 4), np.repeat(np.arange(4), 6)
    values = rng.integers(0, 9, 24) + arm
    for alternative in ALTERNATIVES:
        full = stratified_permutation(
            values, arm, task, statistic=statistic, resamples=160_000, seed=1, alternative=alternative
        )
        drawn = stratified_permutation(
            values, arm, task, statistic=statistic, resamples=40_000, seed=1, alternative=alternative
        )
        assert (full.exact, drawn.exact, full.resamples, drawn.resamples) == (True, False, 160_000, 40_000)
        assert abs(full.p_value - drawn.p_value) < 4 * drawn.monte_carlo_se
        assert drawn.monte_carlo_se == pytest.approx(np.sqrt(full.p_value * (1 - full.p_value) / 40_000), rel=0.1)
        assert (drawn.p_value * 40_001) == pytest.approx(round(drawn.p_value * 40_001))


def test_drawn_p_is_never_0_and_repeats_for_a_seed() -> None:
    values, arm, task = np.arange(100.0), np.repeat([0, 1], 50), np.zeros(100)
    found = stratified_permutation(values, arm, task, resamples=999, seed=5)
    assert found.p_value == found.attainable_p == 1 / 1000
    noise = np.random.default_rng(0).normal(size=100)
    first = stratified_permutation(noise, arm, task, resamples=999, seed=5)
    assert first == stratified_permutation(noise, arm, task, resamples=999, seed=5)
    assert first.p_value != stratified_permutation(noise, arm, task, resamples=999, seed=6).p_value
    order = np.random.default_rng(1).permutation(100)
    assert first == stratified_permutation(noise[order], arm[order], task[order], resamples=999, seed=5)


def test_what_carries_no_information() -> None:
    lonely = stratified_permutation([1, 2, 3], [1, 1, 1], ["x", "x", "y"], seed=1)
    assert (lonely.p_value, lonely.statistic, lonely.reason) == (1.0, None, "no stratum has both arms")
    equal = stratified_permutation([2, 2, 2, 2], [1, 0, 1, 0], ["x", "x", "y", "y"], statistic="mean", seed=1)
    assert (equal.p_value, equal.statistic, equal.n_informative) == (1.0, 0.0, 0)
    assert equal.reason == "all values within a stratum are equal"
    nothing = stratified_permutation([], [], [], seed=1)
    assert (nothing.p_value, nothing.reason) == (None, "nothing was measured")
    with_both = stratified_permutation([1, 2, 3, 4], [1, 1, 0, 0], ["x"] * 4, seed=1)
    with_more = stratified_permutation(
        [1, 2, 3, 4, 9, 7, 7], [1, 1, 0, 0, 1, 1, 0], [*"xxxx", "z", "y", "y"], seed=1
    )
    assert (with_more.p_value, with_more.n_informative) == (with_both.p_value, 1)


def test_means_that_differ_by_dust_tie() -> None:
    values = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1]
    found = stratified_permutation(values, [1, 1, 1, 0, 0, 0], [0] * 6, statistic="mean", seed=1)
    assert found.p_value == 1.0
    late = stratified_permutation(np.array(values) + 1.7e9, [1, 1, 1, 0, 0, 0], [0] * 6, statistic="mean", seed=1)
    assert late.p_value == 1.0
