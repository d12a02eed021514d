"""pass@k and pass^k: every choice of k tries counted, the notes' values, and what must always hold."""

from __future__ import annotations

import itertools
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from trialfleet_statistics.intervals import wilson
from trialfleet_statistics.repeats import pass_at_k, pass_hat_k

limits = attrgetter("low", "high")

METHODS = [pass_at_k, pass_hat_k]
CELLS = [
    (passes, trials, k) for trials in range(1, 10) for passes in range(trials + 1) for k in range(1, trials + 1)
]


def test_every_choice_of_k_tries() -> None:
    for passes, trials, k in CELLS:
        outcomes = [True] * passes + [False] * (trials - passes)
        choices = list(itertools.combinations(outcomes, k))
        assert pass_at_k(passes, trials, k).estimate == pytest.approx(sum(map(any, choices)) / len(choices))
        assert pass_hat_k(passes, trials, k).estimate == pytest.approx(sum(map(all, choices)) / len(choices))


@settings(max_examples=40)
@given(st.integers(1, 12), st.floats(0.01, 0.99), st.data())
def test_unbiased(trials: int, rate: float, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, trials))
    chance = stats.binom.pmf(np.arange(trials + 1), trials, rate)
    any_of = [pass_at_k(x, trials, k).estimate for x in range(trials + 1)]
    all_of = [pass_hat_k(x, trials, k).estimate for x in range(trials + 1)]
    assert float(chance @ np.array(any_of)) == pytest.approx(1 - (1 - rate) ** k)
    assert float(chance @ np.array(all_of)) == pytest.approx(rate**k)


@settings(max_examples=50)
@given(st.sampled_from(CELLS))
def test_properties(cell: tuple[int, int, int]) -> None:
    passes, trials, k = cell
    for method, other in ((pass_at_k, pass_hat_k), (pass_hat_k, pass_at_k)):
        found = method(passes, trials, k)
        low, high = limits(found)
        assert 0 <= low <= found.estimate <= high <= 1
        mirrored = limits(other(trials - passes, trials, k))
        assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-12)
        assert (found.warning is not None) == (2 * k > trials)
    assert (pass_at_k(passes, trials, k).estimate or 0) >= (pass_hat_k(passes, trials, k).estimate or 0)


@settings(max_examples=50)
@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_one_try_is_the_rate(cell: tuple[int, int]) -> None:
    expected = wilson(*cell)
    for method in METHODS:
        found = method(*cell, 1)
        assert found.estimate == pytest.approx(expected.estimate)
        assert limits(found) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_over_tasks_is_a_t_interval_of_their_values() -> None:
    passes, trials = [5, 3, 2, 0], [5, 5, 4, 6]
    values = [pass_hat_k(x, n, 2).estimate for x, n in zip(passes, trials, strict=True)]
    found = pass_hat_k(passes, trials, 2)
    expected = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert found.estimate == pytest.approx(np.mean(values))
    assert limits(found) == pytest.approx((max(0, expected[0]), min(1, expected[1])))
    assert (found.n, found.estimand, found.warning) == (20, "tasks_like_these", None)
    narrow = limits(pass_hat_k(passes, trials, 2, level=0.5))
    assert narrow == pytest.approx(stats.t.interval(0.5, 3, np.mean(values), stats.sem(values)))


@pytest.mark.parametrize(
    ("passes", "trials", "estimate", "reason"),
    [
        ([], [], None, "no tasks"),
        ([3], [5], 0.3, "one task says nothing about others"),
        ([5, 5], [5, 5], 1.0, "all tasks have the same value: their spread is unknown"),
    ],
)
def test_without_a_spread_there_are_no_limits(
    passes: list[int], trials: list[int], estimate: float | None, reason: str
) -> None:
    found = pass_hat_k(passes, trials, 2)
    assert found.estimate == (None if estimate is None else pytest.approx(estimate))
    assert (found.low, found.high, found.reason) == (None, None, reason)


def test_large_counts_do_not_overflow() -> None:
    assert pass_at_k(1000, 4000, 1500).estimate == pytest.approx(1.0)
    assert 0 < (pass_hat_k(3999, 4000, 2000).estimate or 0) == pytest.approx(0.5)
