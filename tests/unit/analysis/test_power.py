"""Power: published designs, rational arithmetic, the analysis's own tests, and what must hold for every design."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from trialfleet_statistics.comparisons import (
    boschloo,
    fisher,
    fisher_rejects,
    paired_t_on_tasks,
    stratified_exact,
)
from trialfleet_statistics.power import (
    Population,
    balance_reps,
    best_reps,
    boschloo_power,
    calibrated,
    campaign_effect,
    campaign_power,
    drawn_rates,
    fisher_power,
    frontier,
    minimum_detectable_effect,
    reps_versus_tasks,
    required_reps,
    same_trials,
    stratified_power,
)
from trialfleet_statistics.power.campaigns import crossing
from trialfleet_statistics.power.cell import ceiling, rejected_from
from trialfleet_statistics.power.exact_campaigns import exact_p_values
from trialfleet_statistics.power.simulated import paired_t_p_values

rates = st.floats(0, 1)
reps = st.integers(1, 30)


# Enumerated once in R 4.2.2 and by rational arithmetic: first and stable n for 80 %, stable n for 90 %.
@pytest.mark.parametrize(
    ("pair", "first", "stable", "stable_90"),
    [
        ((0.4, 0.6), 102, 108, 141),
        ((0.5, 0.7), 102, 102, 133),
        ((0.3, 0.6), 48, 48, 61),
        ((0.35, 0.65), 49, 49, 65),
        ((0.5, 0.8), 44, 44, 58),
        ((0.3, 0.7), 29, 29, 37),
        ((0.4, 0.8), 27, 27, 33),
        ((0.1, 0.3), 69, 69, 89),
        ((0.8, 0.95), 82, 82, 106),
    ],
)
def test_required_reps(pair: tuple[float, float], first: int, stable: int, stable_90: int) -> None:
    found = required_reps(*pair, n_max=160)
    assert (found.first, found.stable) == (first, stable)
    assert found.power_first == fisher_power(*pair, first) >= 0.8
    assert required_reps(pair[1], pair[0], power=0.9, n_max=160).stable == stable_90


def test_required_reps_of_small_effects() -> None:
    assert required_reps(0.4, 0.5, n_max=420).stable == 404
    none = required_reps(0.6, 0.66, n_max=420)
    assert (none.first, none.stable, none.power_first) == (None, None, None)
    assert none.reason == "more than 420 reps per arm"


@pytest.mark.parametrize(("pair", "n"), [((0.4, 0.6), 102), ((0.2, 0.5), 40), ((0.4, 0.8), 23)])
def test_boschloo_needs_fewer(pair: tuple[float, float], n: int) -> None:
    found = required_reps(*pair, test="boschloo", n_max=120)
    assert found.stable == n
    every = boschloo_power(*pair, np.arange(1, n + 8))
    assert found.first == int(np.argmax(every >= 0.8)) + 1


@pytest.mark.parametrize(
    ("n", "effect"),
    [(5, 0.83), (10, 0.68), (15, 0.56), (25, 0.41), (35, 0.36), (50, 0.29), (70, 0.25), (100, 0.20), (175, 0.16)],
)
def test_detectable_effects(n: int, effect: float) -> None:
    found = minimum_detectable_effect(n)
    assert found == pytest.approx(effect, abs=0.005)
    assert fisher_power(0.5 + found / 2, 0.5 - found / 2, n) == pytest.approx(0.8, abs=1e-6)


def test_detectable_effects_over_a_control() -> None:
    assert minimum_detectable_effect(25, p_b=0.05) == pytest.approx(0.34, abs=0.005)
    assert minimum_detectable_effect(5, p_b=0.2) is None
    assert minimum_detectable_effect(3) is None
    assert minimum_detectable_effect(20, p_b=0.5, power=0.01) == 0.0  # below the test's size


@given(st.integers(1, 40), st.sampled_from([0.001, 0.01, 0.05, 0.1, 0.3, 0.9]))
@settings(max_examples=50, deadline=None)
def test_equal_arms_reject_the_very_tables_that_fisher_rejects(n: int, alpha: float) -> None:
    upward = np.arange(n + 1)[None, :] >= rejected_from(n, alpha)[:, None]
    assert np.array_equal(upward | upward.T, fisher_rejects(n, n, alpha=alpha))


@pytest.mark.parametrize("n", [97, 150])
def test_equal_arms_of_many_reps(n: int) -> None:
    upward = np.arange(n + 1)[None, :] >= rejected_from(n, 0.05)[:, None]
    assert np.array_equal(upward | upward.T, fisher_rejects(n, n, alpha=0.05))


@pytest.mark.parametrize(("n_a", "n_b"), [(5, 5), (6, 4), (3, 7)])
def test_power_by_rational_arithmetic(n_a: int, n_b: int) -> None:
    p_a, p_b = Fraction(7, 10), Fraction(1, 10)

    def chance(x: int, n: int, p: Fraction) -> Fraction:
        return comb(n, x) * p**x * (1 - p) ** (n - x)

    tables = [(a, b) for a in range(n_a + 1) for b in range(n_b + 1)]
    for power, test in ((fisher_power, fisher), (boschloo_power, boschloo)):
        rejected = [t for t in tables if (test(t[0], n_a, t[1], n_b).p_value or 1.0) <= 0.05]
        expected = float(sum(chance(a, n_a, p_a) * chance(b, n_b, p_b) for a, b in rejected))
        assert power(0.7, 0.1, n_a, n_b) == pytest.approx(expected, abs=1e-12)


@given(rates, rates, reps, reps)
@settings(max_examples=40, deadline=None)
def test_arms_and_outcomes_may_be_exchanged(p_a: float, p_b: float, n_a: int, n_b: int) -> None:
    power = fisher_power(p_a, p_b, n_a, n_b)
    assert 0 <= power <= 1
    assert fisher_power(p_b, p_a, n_b, n_a) == pytest.approx(power, abs=1e-9)
    assert fisher_power(1 - p_a, 1 - p_b, n_a, n_b) == pytest.approx(power, abs=1e-9)
    assert fisher_power(p_a, p_b, n_a, n_b, alternative="greater") == pytest.approx(
        fisher_power(p_b, p_a, n_b, n_a, alternative="less"), abs=1e-9
    )


@given(rates, reps)
@settings(max_examples=40, deadline=None)
def test_size_stays_below_alpha_and_boschloo_is_between(p: float, n: int) -> None:
    by_fisher, by_boschloo = fisher_power(p, p, n), boschloo_power(p, p, n)
    assert by_fisher <= by_boschloo + 1e-12
    assert by_boschloo <= 0.05 + 1e-6


@given(st.floats(0.02, 0.98), st.floats(0.02, 0.98), reps)
@settings(max_examples=40, deadline=None)
def test_no_test_is_above_the_ceiling(p_a: float, p_b: float, n: int) -> None:
    assert boschloo_power(p_a, p_b, n) <= ceiling(p_a, p_b, n, alpha=0.05) + 1e-9


def test_arrays_in_arrays_out() -> None:
    p = np.array([[0.2, 0.5], [0.9, 0.4]])
    found = fisher_power(p, 0.4, [10, 20])
    assert isinstance(found, np.ndarray)
    assert found.shape == (2, 2)
    assert found[1, 0] == pytest.approx(fisher_power(0.9, 0.4, 10))
    assert found[0, 1] == pytest.approx(fisher_power(0.5, 0.4, 20))
    assert fisher_power(0.9, 0.4, 12, 20) == pytest.approx(fisher_power(0.4, 0.9, 20, 12))


# Simulated once with 2,000 campaigns or more: effect 1.3 logits, tasks' rates Beta with mean .5 and ICC .4 (power)
# or .3 (size); tau is the SD of the interaction in logits.
@pytest.mark.parametrize(
    ("tasks", "trials", "analysis", "expected"),
    [
        (7, 5, "stratified_exact", 0.498),
        (7, 5, "paired_t", 0.352),
        (7, 5, "cochran_mantel_haenszel", 0.520),
        (7, 25, "paired_t", 0.840),
    ],
)
def test_simulated_power(tasks: int, trials: int, analysis: str, expected: float) -> None:
    simulations = 600
    base = np.random.default_rng(11).beta(0.75, 0.75, (simulations, tasks))
    treated = 1 / (1 + (1 - base) / base * math.exp(-1.3))
    found = stratified_power(
        treated,
        base,
        trials,
        analysis=analysis,  # type: ignore[arg-type]
        simulations=simulations,
        seed=12,
    )
    assert found.power == pytest.approx(expected, abs=0.008 * 2 + 3 * found.se)
    assert found.se == pytest.approx(math.sqrt(found.power * (1 - found.power) / simulations))
    assert found.low < found.power < found.high


def test_an_interaction_is_no_effect_on_tasks_like_these() -> None:
    """Size at 7 x 25 with tau 1: .276 for these tasks, .044 over tasks."""
    base = np.random.default_rng(3).beta(1.1667, 1.1667, (500, 7))
    exact = stratified_power(base, base, 25, sigma_int=1, simulations=500, seed=4)
    paired = stratified_power(base, base, 25, sigma_int=1, analysis="paired_t", simulations=500, seed=4)
    assert exact.power == pytest.approx(0.276, abs=0.07)
    assert paired.power == pytest.approx(0.044, abs=0.03)


def test_simulation_is_the_analysis_and_nothing_else() -> None:
    """The same draws, by hand."""
    a, b, n = np.array([0.6, 0.9]), np.array([0.3, 0.8]), np.array([6, 9])
    rng = np.random.default_rng(5)
    rng.normal(0, 0.0, (50, 2))
    passes_a, passes_b = rng.binomial(n, np.broadcast_to(a, (50, 2))), rng.binomial(n, np.broadcast_to(b, (50, 2)))
    rejected = [
        (stratified_exact(x, n, y, n).p_value or 1.0) <= 0.1 for x, y in zip(passes_a, passes_b, strict=True)
    ]
    found = stratified_power(a, b, n, simulations=50, seed=5, alpha=0.1)
    assert found.power == sum(rejected) / 50
    assert stratified_power(a, b, n, simulations=50, seed=5, alpha=0.1) == found
    assert stratified_power(a, b, n, simulations=50, seed=6, alpha=0.1) != found


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=7)
    | st.tuples(st.integers(1, 12), st.integers(1, 7)).map(lambda same: [same[0]] * same[1]),
    st.integers(0, 999),
)
def test_many_campaigns_at_once_have_the_p_values_of_each_alone(sizes: list[int], seed: int) -> None:
    n, rng = np.array(sizes), np.random.default_rng(seed)
    rate = rng.choice([0, 0.2, 0.5, 1], len(n))
    x, y = (rng.binomial(n, rate, (8, len(n))) for _ in range(2))
    exact = [stratified_exact(a, n, b, n).p_value for a, b in zip(x, y, strict=True)]
    assert exact_p_values(x, y, n) == pytest.approx(np.array(exact, float), rel=1e-12)
    paired = [paired_t_on_tasks(a / n, b / n).p_value for a, b in zip(x, y, strict=True)]
    assert paired_t_p_values(x / n, y / n) == pytest.approx(np.array(paired, float), rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("n", [[25] * 20, [25, 24] * 10], ids=["equal reps", "unequal reps"])
def test_campaigns_too_large_to_be_computed_together_have_those_p_values_too(n: list[int]) -> None:
    reps, rng = np.array(n), np.random.default_rng(1)
    x, y = (rng.binomial(reps, rate, (5, len(n))) for rate in (0.6, 0.5))
    exact = [stratified_exact(a, reps, b, reps).p_value for a, b in zip(x, y, strict=True)]
    assert exact_p_values(x, y, reps) == pytest.approx(np.array(exact, float), rel=1e-12)


def test_tasks_that_never_differ() -> None:
    certain = stratified_power([1.0, 0.0], [1.0, 0.0], 5, sigma_int=1, analysis="paired_t", simulations=20, seed=1)
    assert (certain.power, certain.undefined, certain.low) == (0, 20, 0)
    won = stratified_power([1.0] * 3, [0.0] * 3, 5, simulations=20, seed=1)
    assert (won.power, won.undefined, won.high) == (1, 0, 1)
    assert won.low < 0.9
    assert stratified_power([0.9], [0.1], 5, analysis="paired_t", simulations=20, seed=1).undefined == 20


@pytest.mark.parametrize(
    "population",
    [
        Population(0.4, 0.6, 0.4, 0.15),
        Population(0.1, 0.5, 0.7, 0.2),
        Population(0.7, 0.3, 0.0, 0.1),
        Population(0.6, 0.65, 1e-200, 0.0),
    ],
)
def test_a_population_keeps_its_means(population: Population) -> None:
    found = calibrated(population)
    a, b = drawn_rates(population, found, tasks=4, simulations=10_000, seed=1)
    half = np.random.default_rng(2).normal(0, found.sigma_logit / 2, a.shape)
    p_a, p_b = special.expit(special.logit(a) + half), special.expit(special.logit(b) - half)
    assert p_a.mean() == pytest.approx(population.treatment, abs=0.01)
    assert p_b.mean() == pytest.approx(population.control, abs=0.01)
    assert (p_a - p_b).std() == pytest.approx(found.sd_effect, abs=0.01)
    assert found.sd_effect >= population.sigma_int - 1e-4


def test_a_large_effect_spreads_by_itself() -> None:
    found = calibrated(Population(0.4, 0.8, 0.4, 0.1))
    assert found.sigma_logit == 0
    assert found.sd_effect > 0.2


def test_campaigns_of_a_population() -> None:
    population = Population(control=0.4, treatment=0.4, icc=0.4, sigma_int=0.1)
    for estimand in ("these_tasks", "tasks_like_these"):
        found = campaign_effect(population, tasks=8, reps=25, estimand=estimand, simulations=500, seed=1)
        assert found.se is not None
        there = Population(0.4, 0.4 + found.effect, 0.4, 0.1)
        power = campaign_power(there, tasks=8, reps=25, estimand=estimand, simulations=400, seed=9)
        assert power.power == pytest.approx(0.8, abs=0.09)


def test_campaigns_that_detect_nothing_say_why() -> None:
    population = Population(control=0.9, treatment=0.9, icc=0.4, sigma_int=0.1)
    few = campaign_effect(population, tasks=3, reps=5, estimand="these_tasks", simulations=200, seed=1)
    assert (few.effect, few.se) == (None, None)
    assert few.reason == "not even a gain of 10 points, the largest that there can be"
    one = campaign_effect(population, tasks=1, reps=50, estimand="tasks_like_these", seed=1)
    assert one.reason == "one task says nothing of other tasks"


def test_crossing_of_an_exact_line() -> None:
    effects = [0.1, 0.15, 0.2, 0.25, 0.3]
    power = [float(stats.norm.cdf(10 * effect - 1)) for effect in effects]
    at, se = crossing(effects, power, 100_000, 0.8)
    assert at == pytest.approx((stats.norm.ppf(0.8) + 1) / 10, abs=1e-4)
    assert 0 < se < 0.001
    assert crossing(effects, [1.0] * 5, 100, 0.8)[0] == 0
    assert crossing(effects, [0.05] * 5, 100, 0.8)[0] == math.inf


def test_reps_against_tasks() -> None:
    """7 x 5 at mean .5, ICC .4: SE .093, 26 points for these tasks; 7 x 25: 11.6 points."""
    by_tasks = {
        budget: {
            design.tasks: design
            for design in reps_versus_tasks(budget, cost_task=0, cost_rep=1, mean=0.5, icc=0.4, sigma_int=0.15)
        }
        for budget in (35, 175)
    }
    small, large = by_tasks[35][7], by_tasks[175][7]
    assert (small.reps, large.reps) == (5, 25)
    assert small.se_these_tasks == pytest.approx(0.093, abs=5e-4)
    assert small.mde_these_tasks == pytest.approx(0.26, abs=0.005)
    assert large.mde_these_tasks == pytest.approx(0.116, abs=5e-4)
    assert large.se == pytest.approx(math.sqrt((0.15**2 + 0.3 / 25) / 7))
    assert large.mde == pytest.approx((stats.t.ppf(0.975, 6) + stats.t.ppf(0.8, 6)) * large.se)
    lone = by_tasks[175][1]
    assert (lone.mde, lone.reason) == (None, "one task says nothing of the spread between tasks")


def test_tasks_before_reps_at_equal_trials() -> None:
    """7 × 25 at v = .3 and a spread of 15 points: both parts of the variance are equal at 13.3 reps."""
    balance = balance_reps(mean=0.5, icc=0.4, sigma_int=0.15)
    assert balance == pytest.approx(0.3 / 0.15**2)
    assert balance_reps(mean=0.5, icc=0.4, sigma_int=0) is None
    found = frontier(7, 25, mean=0.5, icc=0.4, sigma_int=0.15)
    assert [(d.tasks, d.reps) for d in found] == [(1, 175), (3, 58), (7, 25), (14, 12), (28, 6)]
    known = [d.mde for d in found if d.mde is not None]
    assert known == sorted(known, reverse=True)  # more tasks detect less, at every number of reps
    assert found[2].se == pytest.approx(math.sqrt((0.15**2 + 0.3 / 25) / 7))
    assert [d.mde_these_tasks for d in found] == pytest.approx([0.116] * 5, abs=0.003)
    assert same_trials(1, 1) == ((1, 1),)
    assert same_trials(3, 1) == ((1, 3), (3, 1))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 400), st.floats(0, 30), st.floats(0.1, 9), st.floats(0, 0.9), st.floats(0, 0.5))
def test_designs_spend_the_budget(tasks: int, cost_task: float, cost_rep: float, icc: float, sigma: float) -> None:
    budget = tasks * (cost_task + cost_rep)
    found = reps_versus_tasks(budget, cost_task=cost_task, cost_rep=cost_rep, mean=0.5, icc=icc, sigma_int=sigma)
    assert [d.tasks for d in found] == sorted({d.tasks for d in found})
    assert found[0].tasks == 1
    for design in found:
        assert design.cost <= budget * (1 + 1e-9)
        assert (design.tasks + 1) * (cost_task + design.reps * cost_rep) > budget * (1 - 1e-9)
        assert design.tasks * (cost_task + (design.reps + 1) * cost_rep) > budget * (1 - 1e-9)


def test_the_cheapest_reps() -> None:
    optimum = best_reps(cost_task=75, cost_rep=5, mean=0.5, icc=0.4, sigma_int=0.15)
    assert optimum == pytest.approx(math.sqrt(75 * 0.3 / 5) / 0.15)
    designs = reps_versus_tasks(100_000, cost_task=75, cost_rep=5, mean=0.5, icc=0.4, sigma_int=0.15)
    assert min(designs, key=lambda d: d.se).reps == pytest.approx(optimum, abs=1)
    assert best_reps(cost_task=75, cost_rep=5, mean=0.5, icc=0.4, sigma_int=0) is None
