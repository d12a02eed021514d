"""One population of tasks for every figure of an answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.task_rates import control_rates
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.power import DrawnTasks, KnownTasks, Population, TaskRates, campaign_power
from trialfleet_statistics.sequential import (
    Bets,
    SequentialDesign,
    SequentialPower,
    betting_power,
    margin_power,
    sequential_power,
)

DRAWN = DrawnTasks(Population(0.5, 0.5, icc=0.4, sigma_int=0.1), 8, 4_000, seed=2)
LOOKS = SequentialDesign.of(10)


def test_drawn_tasks_have_the_means_of_their_population_and_effects_that_differ() -> None:
    treated, control = DRAWN.compare(0.15)
    assert treated.shape == control.shape == (4_000, 8)
    assert [treated.mean(), control.mean()] == pytest.approx([0.65, 0.5], abs=5 * math.sqrt(0.1 / control.size))
    assert np.std(treated - control) == pytest.approx(0.1, abs=0.01)
    assert np.array_equal(*DRAWN.compare(0.0, none_differs=True))
    assert np.array_equal(DRAWN.compare(0.15)[0], treated)
    assert np.std(np.subtract(*DRAWN.compare(0.0))) == pytest.approx(0.1, abs=0.01), "effects that cancel"


def test_an_effect_may_reach_all_of_the_room_and_no_more() -> None:
    treated, _ = DRAWN.compare(0.5)
    assert treated.mean() == pytest.approx(1, abs=0.01)
    with pytest.raises(ValueError, match="between 0 and 1"):
        DRAWN.compare(0.51)


def _test_once(of: TaskRates) -> SequentialPower:
    return sequential_power(*of.compare(0.15), SequentialDesign((10,)), simulations=4_000, seed=3)


def test_one_test_at_the_end_has_the_power_of_the_whole_campaign() -> None:
    whole = campaign_power(
        replace(DRAWN.population, treatment=0.65),
        tasks=8,
        reps=10,
        estimand="these_tasks",
        simulations=4_000,
        seed=4,
    )
    once = _test_once(DRAWN)
    assert once.power == pytest.approx(whole.power, abs=4 * math.hypot(once.se, whole.se))
    assert _test_once(KnownTasks(control_rates(8, 0.5, 0.4))).power > once.power + 0.02, (
        "at quantiles none is unlucky"
    )


def _look(a: Floats, b: Floats) -> float:
    return sequential_power(a, b, LOOKS, simulations=500, seed=3).power


def _bet(a: Floats, b: Floats) -> float:
    return betting_power(a, b, Bets(), 10, simulations=500, seed=3).power


def _ask(a: Floats, b: Floats) -> float:
    return margin_power(a, b, LOOKS, question="not_worse", margin=0.1, simulations=500, seed=3).power


@pytest.mark.parametrize("simulate", [_look, _bet, _ask])
def test_rows_of_the_same_rates_are_the_rates(simulate: Callable[[Floats, Floats], float]) -> None:
    a, b = (np.full((500, 4), rate) for rate in (0.7, 0.4))
    assert simulate(a, b) == simulate(a[0], b[0])
    with pytest.raises(ValueError, match="expected shape"):
        simulate(a[:400], b[:400])
