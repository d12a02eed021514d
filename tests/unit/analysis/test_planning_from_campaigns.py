"""Difficulty of tasks, and the power of bets: reference values and second ways to the same numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from tests.support.task_rates import control_rates
from trialfleet_statistics.difficulty import TaskDifficulty, task_difficulty
from trialfleet_statistics.power import shifted
from trialfleet_statistics.sequential import Bets, Pairs
from trialfleet_statistics.sequential.betting_power import betting_power, log_evidences

PASSES = np.array([0, 2, 5, 7, 9, 10, 10, 1, 4, 8, 0, 10])
TRIALS = np.full(12, 10)


def test_the_reference() -> None:
    found = task_difficulty(PASSES, TRIALS)
    assert (found.alpha, found.beta) == pytest.approx((0.448241, 0.366787), abs=1e-5)
    assert (found.mean, found.icc) == pytest.approx((0.549970, 0.550956), abs=1e-5)
    rates = found.shrunk(PASSES, TRIALS)
    expected = [0.041446, 0.226374, 0.503766, 0.688694, 0.873621, 0.966085]
    assert rates[:6].tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("passes", "trials"), [(PASSES, TRIALS), ([3, 0, 9, 2], [9, 4, 9, 30])])
def test_the_slopes_of_the_likelihood_are_zero(passes: list[int], trials: list[int]) -> None:
    """By the derivatives, which the fit does not use."""
    x, n = np.asarray(passes), np.asarray(trials)

    def slopes(at: np.ndarray) -> list[float]:
        a, b = np.exp(at)
        both = special.digamma(a + b) - special.digamma(n + a + b)
        return [
            float(np.sum(special.digamma(x + a) - special.digamma(a) + both)),
            float(np.sum(special.digamma(n - x + b) - special.digamma(b) + both)),
        ]

    found = task_difficulty(x, n)
    assert slopes(np.log([found.alpha, found.beta])) == pytest.approx([0, 0], abs=1e-4)
    root = optimize.root(slopes, np.log([found.alpha, found.beta]), tol=1e-9)
    assert (found.alpha, found.beta) == pytest.approx(tuple(np.exp(root.x)), rel=1e-5)


def test_saturation_is_that_of_the_beta_binomial() -> None:
    found = TaskDifficulty(0.4, 0.9)
    for x, n, more in [(0, 10, 5), (3, 10, 10), (10, 10, 50), (0, 0, 2)]:
        own = stats.betabinom(more, 0.4 + x, 0.9 + n - x)
        assert found.saturated([x], [n], more)[0] == pytest.approx(own.pmf(0) + own.pmf(more), rel=1e-9)


def test_tasks_that_are_alike_have_one_rate() -> None:
    found = task_difficulty([5, 5, 5, 5], [10, 10, 10, 10])
    assert found.icc < 1e-3
    assert found.shrunk([5, 0], [10, 0]).tolist() == pytest.approx([0.5, 0.5], abs=1e-3)


@pytest.mark.parametrize(
    ("passes", "trials", "said"),
    [([3], [5], "two tasks"), ([0, 0], [5, 5], "no rate"), ([5, 5], [5, 5], "no rate"), ([6], [5], "at most")],
)
def test_nothing_to_plan_with(passes: list[int], trials: list[int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        task_difficulty(passes, trials)


# --- bets -------------------------------------------------------------------------------------------


def test_many_evidences_are_each_that_of_one() -> None:
    won, lost = np.array([0, 3, 40]), np.array([2, 3, 12])
    for bets in (Bets(3.0), Bets.half(0.2)):
        found = log_evidences(won, lost, bets)
        one_by_one = [bets.log_evidence(Pairs(int(w), int(n), 1)) for w, n in zip(won, lost, strict=True)]
        assert found.tolist() == pytest.approx(one_by_one, rel=1e-12)


@pytest.mark.parametrize(("factor", "power", "blocks"), [(1, 0.53, 0.78), (1.5, 0.75, 0.95)])
def test_power_agrees_with_the_tables_of_the_method(factor: float, power: float, blocks: float) -> None:
    """12 × 25, all rates .5, the effect of 80 % power of one test at the end: half bets."""
    base = control_rates(12, 0.5, 0.0)
    found = betting_power(
        shifted(base, 0.113), base, Bets.half(0.113), math.floor(25 * factor), simulations=2_000, seed=4
    )
    assert found.power == pytest.approx(power, abs=0.04)
    assert found.share * math.floor(25 * factor) / 25 == pytest.approx(blocks, abs=0.03)


def test_a_small_design_is_enumerated() -> None:
    """One task, three blocks: the chance of three pairs for the same side, at a level that only they reach."""
    level = 1 / math.exp(Bets(1.0).log_evidence(Pairs(3, 0, 0)))
    found = betting_power([0.9], [0.2], Bets(1.0), 3, alpha=level, simulations=40_000, seed=2)
    exact = (0.9 * 0.8) ** 3 + (0.1 * 0.2) ** 3
    assert found.power == pytest.approx(exact, abs=4 * found.se)
    assert found.share == 1
