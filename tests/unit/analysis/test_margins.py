"""The score at a margin over tasks: against its scalar form, its size at the margin, and what looks make of it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_statistics.comparisons import paired_t_on_tasks
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.intervals import stratified_score_z
from trialfleet_statistics.sequential import (
    SequentialDesign,
    margin_bounds,
    margin_power,
    margin_scores,
    normal_bounds,
    paired_margin_power,
)

CONTROL: Floats = np.array([0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9])


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.1, 0.4]))
def test_many_campaigns_at_once_are_each_the_scalar_score(seed: int, margin: float) -> None:
    rng = np.random.default_rng(seed)
    n_a, n_b = rng.integers(1, 9, (2, 3, rng.integers(1, 6)))
    x_a, x_b = rng.binomial(n_a, 0.8), rng.binomial(n_b, 0.8)
    found = margin_scores(x_a, n_a, x_b, n_b, margin)
    for row in range(3):
        four = x_a[row], n_a[row], x_b[row], n_b[row]
        assert float(found.z_lower[row]) == pytest.approx(stratified_score_z(*four, -margin), abs=1e-9)
        assert float(found.z_upper[row]) == pytest.approx(-stratified_score_z(*four, margin), abs=1e-9)


def test_one_look_is_the_fixed_one_sided_bound() -> None:
    assert margin_bounds(SequentialDesign((20,), alpha=0.05))[0] == pytest.approx(1.644854, abs=1e-5)
    looked = SequentialDesign((5, 10, 20), alpha=0.05)
    assert margin_bounds(looked).tolist() == normal_bounds(SequentialDesign((5, 10, 20), alpha=0.1)).tolist()


@pytest.mark.parametrize("looks", [(25,), (5, 10, 15, 20, 25)])
@pytest.mark.parametrize("question", ["not_worse", "equivalent"])
def test_the_size_at_the_margin(looks: tuple[int, ...], question: str) -> None:
    """At a true difference of −margin a yes is wrong. N = 4,000: a standard error of .0034."""
    asked = "not_worse" if question == "not_worse" else "equivalent"
    found = margin_power(
        CONTROL - 0.1, CONTROL, SequentialDesign(looks, alpha=0.05), question=asked, margin=0.1, seed=3
    )
    assert found.power <= 0.055 + 2 * found.se


def test_looks_and_giving_up_cost_little_power_and_save_trials() -> None:
    fixed, looked, given_up = (
        margin_power(
            CONTROL,
            CONTROL,
            SequentialDesign(looks, alpha=0.05),
            question="not_worse",
            margin=0.12,
            futility=futility,
            seed=4,
        )
        for looks, futility in (((25,), None), ((5, 10, 15, 20, 25), None), ((5, 10, 15, 20, 25), 0.05))
    )
    assert looked.power >= fixed.power - 0.05
    assert given_up.power >= 0.96 * looked.power
    assert given_up.share < looked.share < 0.8
    assert given_up.futile > 0


@given(st.integers(0, 10_000), st.sampled_from([0.2, 0.5, 0.8]))
def test_the_prediction_is_a_chance_that_rises_with_the_difference(seed: int, time: float) -> None:
    rng = np.random.default_rng(seed)
    n = np.full((2, 4), 10)
    passed = rng.binomial(10, 0.5, (1, 4))
    better = np.minimum(10, passed + 1)
    found = margin_scores(np.concatenate((passed, better)), n, np.concatenate((passed, passed)), n, 0.2)
    lower, higher = found.predict("not_worse", 1.7, time)
    assert 0 <= lower <= higher <= 1
    both = found.predict("equivalent", 1.7, time)
    assert np.all((both >= 0) & (both <= found.predict("not_worse", 1.7, time)))


@pytest.mark.parametrize("question", ["not_worse", "equivalent"])
def test_power_for_tasks_like_these_is_that_of_the_paired_tests(
    question: Literal["not_worse", "equivalent"],
) -> None:
    rng = np.random.default_rng(4)
    rates = rng.uniform(0.3, 0.7, (2, 200, 5))
    found = paired_margin_power(
        rates[0], rates[1], 4, question=question, margin=0.3, alpha=0.1, simulations=200, seed=6
    )
    passed = np.random.default_rng(6).binomial(4, rates, rates.shape) / 4
    shown = 0
    for a, b in zip(*passed, strict=True):
        above = paired_t_on_tasks(a, b, null=-0.3, alternative="greater").p_value
        below = paired_t_on_tasks(a, b, null=0.3, alternative="less").p_value
        both = above if question == "not_worse" else None if above is None or below is None else max(above, below)
        shown += both is not None and both <= 0.1
    assert 0.05 < found.power == shown / 200
