"""Bounds, estimates after a stop, futility, bets and planning: values of R's rpact, or computed twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from trialfleet_designs.monitoring import design_of, look_result
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import LookResult, Reestimation, StageCounts, StopRule
from trialfleet_statistics.estimates import Floats, floats
from trialfleet_statistics.power import exact_campaigns, shifted
from trialfleet_statistics.sequential import (
    Bets,
    Futility,
    Pairs,
    SequentialDesign,
    SequentialLook,
    SequentialPower,
    SequentialStage,
    Spending,
    anytime_p,
    conditional_power,
    confidence_sequence,
    crossing_probabilities,
    drift_estimate,
    futile,
    futility_power,
    log_evidence,
    log_evidence_at,
    monitor,
    normal_bounds,
    planned_stake,
    predictive_power,
    reestimated_reps,
    sequential_power,
    simulated_looks,
    stage,
    stagewise_difference,
    stopping_probabilities,
    upper_tail,
)
from trialfleet_statistics.sequential.simulated_looks import simulated_stops

BOUNDS: dict[tuple[int, Spending], list[float]] = {
    (2, "obrien_fleming"): [2.962588, 1.968596],
    (3, "obrien_fleming"): [3.710303, 2.511427, 1.993048],
    (4, "obrien_fleming"): [4.332634, 2.963131, 2.359044, 2.014090],
    (5, "obrien_fleming"): [4.876885, 3.357011, 2.680280, 2.289817, 2.031032],
    (2, "power_2"): [2.497705, 2.018310],
    (3, "power_2"): [2.772921, 2.347272, 2.061914],
    (4, "power_2"): [2.955167, 2.559350, 2.300855, 2.091966],
    (5, "power_2"): [3.090232, 2.714112, 2.472777, 2.279863, 2.114028],
    (2, "pocock"): [2.156999, 2.200977],
    (3, "pocock"): [2.279428, 2.294911, 2.295938],
    (5, "pocock"): [2.437977, 2.426814, 2.410194, 2.396645, 2.385985],
}


@pytest.mark.parametrize(("looks", "spending"), BOUNDS)
def test_bounds_of_equal_looks(looks: int, spending: Spending) -> None:
    found = normal_bounds(SequentialDesign.of(20 * looks, looks, spending=spending))
    assert found == pytest.approx(BOUNDS[looks, spending], abs=1e-6)


def test_where_campaigns_stop() -> None:
    design = SequentialDesign.of(25, spending="obrien_fleming")
    found = crossing_probabilities(normal_bounds(design), design.times(), 2.8016)
    assert found == pytest.approx([0.000145057, 0.056332183, 0.250604970, 0.286473671, 0.196741401], abs=1e-7)
    assert found.sum() == pytest.approx(0.790297282, abs=1e-7)  # rpact: .7902991


@pytest.mark.parametrize("drift", [0.0, 1.0, 2.8016, -2.8016])
def test_where_campaigns_are_given_up(drift: float) -> None:
    """N = 100,000 paths: a standard error of at most .0016."""
    design, rule = SequentialDesign.of(25), [0.0, 0.0629, 0.5972, 1.1552]
    bounds, times = normal_bounds(design), design.times()
    found = stopping_probabilities(bounds, times, drift, futile_below=rule)
    steps = np.random.default_rng(1).normal(drift / 5, math.sqrt(0.2), (100_000, 5))
    z, going = np.cumsum(steps, axis=1) / np.sqrt(times), np.ones(100_000, dtype=np.bool_)
    for look, (bound, low) in enumerate(zip(bounds, [*rule, 0.0], strict=True)):
        ends = z[:, look] >= bound, z[:, look] <= -bound, np.abs(z[:, look]) < low
        seen = [float(np.mean(going & one)) for one in ends]
        of = found.upwards[look], found.downwards[look], found.given_up[look]
        assert of == pytest.approx(seen, abs=0.005)
        going &= ~(ends[0] | ends[1] | ends[2])


@pytest.mark.parametrize(
    ("looks", "spending", "power", "inflation", "share"),
    [
        (5, "obrien_fleming", 0.8, 1.0247, 0.8237),
        (5, "obrien_fleming", 0.9, 1.0231, 0.7587),
        (5, "power_2", 0.8, 1.0634, 0.7876),
        (5, "power_2", 0.9, 1.0583, 0.7047),
        (5, "pocock", 0.8, 1.2124, 0.7956),
        (5, "pocock", 0.9, 1.1922, 0.6840),
        (3, "power_2", 0.8, 1.0449, 0.8231),
        (3, "power_2", 0.9, 1.0411, 0.7498),
        (2, "power_2", 0.8, 1.0276, 0.8671),
        (2, "power_2", 0.9, 1.0251, 0.8048),
    ],
)
def test_what_looks_cost_and_save_at_equal_power(
    looks: int, spending: Spending, power: float, inflation: float, share: float
) -> None:
    """Reps, and mean trials at the effect, as multiples of the fixed design's."""
    design = SequentialDesign.of(20 * looks, looks, spending=spending)
    bounds, times = normal_bounds(design), design.times()

    def crossed(drift: float) -> Floats:
        both = crossing_probabilities(bounds, times, drift) + crossing_probabilities(bounds, times, -drift)
        return floats(both)

    fixed = special.ndtri(0.975) + special.ndtri(power)
    drift = optimize.brentq(lambda one: float(crossed(one).sum()) - power, 1.0, 5.0)
    found = (drift / fixed) ** 2
    stops = crossed(drift)
    mean_time = float((stops * times).sum() + (1 - stops.sum()))
    assert (found, found * mean_time) == pytest.approx((inflation, share), abs=1e-4)


@pytest.mark.parametrize(
    ("spending", "look", "z", "expected"),
    [
        ("power_2", 3, 2.6, (0.007249445, 3.2788788, 0.6685089, 5.8377714)),
        ("power_2", 1, 3.3, (0.000483424, 7.3790243, 2.9964116, 11.7616370)),
        ("power_2", 5, 1.2, (0.116493388, 1.1951873, -0.7705921, 3.1569256)),
        ("power_2", 2, -0.4, (0.655418670, -0.6324436, -3.7314228, 2.4665372)),
        ("obrien_fleming", 3, 2.9, (0.002050708, 3.7285541, 1.1867032, 6.2637864)),
        ("obrien_fleming", 5, 2.5, (0.014200559, 2.3197170, 0.2502950, 4.3360654)),
    ],
)
def test_estimates_by_stage_wise_ordering(
    spending: Spending, look: int, z: float, expected: tuple[float, float, float, float]
) -> None:
    design = SequentialDesign.of(25, spending=spending)
    found = drift_estimate(design, look, z)
    tail = upper_tail(normal_bounds(design), design.times(), look, z, 0.0)
    assert (tail, found.median, found.low, found.high) == pytest.approx(expected, abs=1e-6)


def test_the_difference_after_an_early_stop_is_drawn_towards_0() -> None:
    counts = [9, 8, 9, 7, 10, 9, 8], [10] * 7, [3, 4, 5, 2, 4, 3, 4], [10] * 7
    stages = [
        stage([4, 4, 5, 3, 5, 4, 4], [5] * 7, [2, 2, 2, 1, 2, 2, 2], [5] * 7, blocks=5),
        stage([5, 4, 4, 4, 5, 5, 4], [5] * 7, [1, 2, 3, 1, 2, 1, 2], [5] * 7, blocks=5),
    ]
    design = SequentialDesign((5, 10, 15, 20, 25))
    looks = monitor(design, stages)
    found = stagewise_difference(looks, *counts)
    raw = sum(counts[0]) / 70 - sum(counts[2]) / 70
    assert looks[-1].crossed == 1
    assert None not in (found.estimate, found.low, found.high)
    assert 0 < (found.low or 0) < (found.estimate or 0) < raw < (found.high or 0)
    once = SequentialDesign((10,))
    only = monitor(once, [stage(*counts, blocks=10)])
    assert stagewise_difference(only, *counts).estimate == pytest.approx(raw, abs=1e-12)
    nothing = monitor(once, [stage([0], [10], [0], [10], blocks=10)])
    undefined = stagewise_difference(nothing, [0], [10], [0], [10])
    assert (undefined.estimate, undefined.reason) == (None, "no task could tell the conditions apart")


def seen(total: float) -> SequentialLook:
    return SequentialLook(2, 10, total, 28.5, 9.2, 1, 1, 1, 0.004, None, None, 0, 0, 0, 7, 35)


def test_futility() -> None:
    bound = 2.114027514
    ahead = conditional_power(seen(30), tasks=7, effect=0.109, blocks=25, bound=bound)
    behind = conditional_power(seen(26.5), tasks=7, effect=0.109, blocks=25, bound=bound)
    assert (ahead, behind) == pytest.approx((0.216236710, 0.042071758), abs=1e-8)
    assert predictive_power(seen(30), blocks=25, bound=bound) == pytest.approx(0.138373977, abs=1e-8)
    mirrored = conditional_power(seen(27), tasks=7, effect=-0.109, blocks=25, bound=bound)
    assert mirrored == pytest.approx(ahead, abs=1e-12)
    design = SequentialDesign.of(25)
    for_a_gain = Futility(conditional=0.2, effect=0.109, side="gain")
    assert not futile(design, for_a_gain, seen(30), tasks=7)
    assert futile(design, for_a_gain, seen(26.5), tasks=7)
    assert not futile(design, Futility(conditional=0.2, effect=0.109), seen(26.5), tasks=7), "a harm is likely"
    assert futile(design, Futility(conditional=0.2, effect=0.109), seen(28.5), tasks=7)
    assert not futile(design, None, seen(20), tasks=7)


LEAST_Z = [(1, -0.526), (2, 0.063), (3, 0.597), (4, 1.155)]


def at_z(number: int, z: float) -> SequentialLook:
    return SequentialLook(number, 5 * number, z, 0, 1, 1, 1, 1, 0, None, None, 0, 0, 0, 7, 35)


@pytest.mark.parametrize(("number", "least_z"), LEAST_Z)
def test_the_default_futility_rule_wants_neither_direction(number: int, least_z: float) -> None:
    """It stops between −z and z only, and where the power of one direction is never small, nowhere."""
    design, rule = SequentialDesign.of(25), Futility(predictive=0.05)
    for sign in (1, -1):
        assert futile(design, rule, at_z(number, sign * (least_z - 0.001)), tasks=7) == (least_z > 0)
        assert not futile(design, rule, at_z(number, sign * (abs(least_z) + 0.001)), tasks=7)
        assert not futile(design, rule, at_z(number, 9 * sign), tasks=7)
    assert not futile(design, rule, at_z(5, 0), tasks=7)


@pytest.mark.parametrize(
    "both", [Futility(predictive=0.05), Futility(predictive=0.1), Futility(conditional=0.2, effect=0.1)]
)
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_both_sides_are_given_up_where_each_alone_is(both: Futility, number: int) -> None:
    """The rule for both is the one for a gain, in the data and in the data with the arms exchanged."""
    design, gain = SequentialDesign.of(25), replace(both, side="gain")
    stops = set[bool]()
    for z in np.linspace(-4, 4, 81).tolist():
        here, exchanged = at_z(number, z), at_z(number, -z)
        stops.add(stop := futile(design, both, here, tasks=7))
        assert stop == (futile(design, gain, here, tasks=7) and futile(design, gain, exchanged, tasks=7))
        assert futility_power(design, both, here, tasks=7) == futility_power(design, both, exchanged, tasks=7)
    assert False in stops


@pytest.mark.parametrize(("number", "least_z"), LEAST_Z)
def test_futility_for_a_gain_alone_in_units_of_z(number: int, least_z: float) -> None:
    design = SequentialDesign.of(25)

    rule = Futility(predictive=0.05, side="gain")
    assert futile(design, rule, at_z(number, least_z - 0.001), tasks=7)
    assert not futile(design, rule, at_z(number, least_z + 0.001), tasks=7)
    assert not futile(design, rule, at_z(5, -9), tasks=7)


def test_a_rule_of_futility_is_one_of_two() -> None:
    for wrong in ({}, {"predictive": 0.1, "conditional": 0.1}, {"predictive": 1.5}, {"conditional": 0.2}):
        with pytest.raises(ValueError, match="futility"):
            Futility(wrong.get("predictive"), wrong.get("conditional"))


@pytest.mark.parametrize(
    ("won", "lost", "kappa", "expected"),
    [
        (10, 0, 1, 4.533576533),
        (6, 0, 1, 2.212972934),
        (12, 2, 1, 2.485150820),
        (15, 5, 1, 1.169567839),
        (15, 5, 3, 1.290770581),
        (30, 14, 3, 1.563748942),
        (40, 20, 10, 1.856745323),
        (0, 0, 1, 0),
    ],
)
def test_evidence_of_bets(won: int, lost: int, kappa: float, expected: float) -> None:
    assert log_evidence(Pairs(won, lost, 9), kappa=kappa) == pytest.approx(expected, abs=1e-8)
    assert log_evidence(Pairs(lost, won, 0), kappa=kappa) == pytest.approx(expected, abs=1e-8)


def test_evidence_at_one_stake_and_its_p() -> None:
    assert math.exp(log_evidence_at(Pairs(15, 5, 0), 0.35)) == pytest.approx(5.234003493, abs=1e-8)
    both = Bets(1.0, 0.35).log_evidence(Pairs(15, 5, 0))
    assert math.exp(both) == pytest.approx((5.234003493 + math.exp(1.169567839)) / 2, abs=1e-7)
    assert (anytime_p(math.log(50)), anytime_p(-1.0)) == pytest.approx((0.02, 1))
    assert planned_stake(np.array([0.6]), np.array([0.4])) == pytest.approx((0.36 - 0.16) / (0.36 + 0.16))


@pytest.mark.parametrize(
    ("counts", "kappa", "expected"),
    [
        ((15, 5, 60), 1, (-0.043974978, 0.303706212)),
        ((15, 5, 60), 3, (-0.046891212, 0.299076433)),
        ((40, 20, 115), 1, (-0.024163695, 0.255114812)),
        ((0, 0, 35), 1, (-0.140779020, 0.140779020)),
        ((12, 2, 20), 1, (-0.023000432, 0.588643677)),
    ],
)
def test_confidence_sequences(counts: tuple[int, int, int], kappa: float, expected: tuple[float, float]) -> None:
    found = confidence_sequence(Pairs(*counts), Bets(kappa))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-7)
    extreme = confidence_sequence(Pairs(40, 0, 0))
    assert (extreme.estimate, extreme.high) == (1, 1)
    assert confidence_sequence(Pairs(0, 0, 0)).reason == "no complete pair"


def test_bets_win_too_seldom_where_nothing_is_there() -> None:
    """Looking after each of 200 pairs: at most alpha of the campaigns ever reach 1 / alpha."""

    @cache
    def evidence(won: int, lost: int) -> float:
        return log_evidence(Pairs(won, lost, 0), kappa=1)

    rng, ever = np.random.default_rng(5), 0
    for _ in range(400):
        wins = np.cumsum(rng.random(200) < 0.5)
        largest = max(evidence(w, k - w) for k, w in enumerate(wins.tolist(), start=1))
        ever += anytime_p(largest) <= 0.05
    assert ever / 400 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


def test_planning_agrees_with_the_tables_of_the_method() -> None:
    """7 tasks × 25 reps, rates of Beta(.6, .6), the effect of 80 % power: α t² .765 / .76; with PP < .05 for a
    gain .74 / .70."""
    control = stats.beta.ppf((np.arange(7) + 0.5) / 7, 0.6, 0.6)

    treated = shifted(floats(control), 0.109)
    design = SequentialDesign.of(25)
    plain = sequential_power(treated, control, design, simulations=600, seed=4)
    rule = Futility(predictive=0.05, side="gain")
    giving_up = sequential_power(treated, control, design, futility=rule, simulations=600, seed=4)
    nothing = sequential_power(control, control, design, futility=rule, simulations=600, seed=4)
    assert (plain.power, plain.share) == pytest.approx((0.765, 0.76), abs=0.04)
    assert (giving_up.power, giving_up.share) == pytest.approx((0.74, 0.70), abs=0.04)
    assert nothing.power <= 0.045
    assert nothing.share == pytest.approx(0.50, abs=0.04)
    assert float(plain.gained.sum() + plain.harmed.sum()) == pytest.approx(plain.power)
    dropped = sequential_power(treated, control, design, futility=rule, drop_saturated=5, simulations=600, seed=4)
    assert dropped.share < giving_up.share - 0.08
    again = sequential_power(treated, control, design, simulations=600, seed=4)
    assert (again.power, again.share) == (plain.power, plain.share)


def test_a_harm_is_found_and_not_given_up() -> None:
    """7 × 10 at a true difference of −20 points, and what looking for it costs where there is no difference."""
    control = floats(stats.beta.ppf((np.arange(7) + 0.5) / 7, 0.6, 0.6))
    harmed, design = shifted(control, -0.2), SequentialDesign.of(10)

    def ended(rates: Floats, rule: Futility | None) -> SequentialPower:
        return sequential_power(rates, control, design, futility=rule, simulations=400, seed=3)

    both, gain = Futility(predictive=0.05), Futility(predictive=0.05, side="gain")
    found, missed, ignored = ended(harmed, both), ended(harmed, gain), ended(harmed, None)
    assert float(found.harmed.sum()) >= 0.97 * float(ignored.harmed.sum()) > 0.8
    assert float(found.futile.sum()) < 0.1
    assert float(missed.futile.sum()) > 0.9, "the rule for a gain alone never sees it"
    nothing = ended(control, both)
    assert nothing.power <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)
    assert ended(control, gain).share + 0.1 < nothing.share <= 0.76 + 0.03


def test_tasks_are_left_out_at_a_look_before_the_last() -> None:
    control = np.array([0.0, 0.5, 1.0, 0.5])
    design = SequentialDesign((4, 8))
    found = sequential_power(control, control, design, drop_saturated=4, simulations=60, seed=2)
    assert found.share == pytest.approx(0.75, abs=0.02)  # two of four tasks for half of the blocks
    for nowhere in (3, 8):
        with pytest.raises(ValueError, match="is no look before the last"):
            sequential_power(control, control, design, drop_saturated=nowhere, simulations=60, seed=2)


def test_the_simulation_counts_stages_as_the_test_does() -> None:
    """Passes of a whole campaign, in which the first task is saturated after the first look."""
    design, rng = SequentialDesign((4, 8)), np.random.default_rng(5)
    every_a, every_b = (rng.binomial(4, [[0.0, 0.5, 0.6], [0.5, 0.5, 0.6]], (50, 2, 3)) for _ in range(2))
    found = simulated_stops(design, every_a, every_b, None, 4)
    for place, (a, b) in enumerate(zip(every_a, every_b, strict=True)):
        both = a[0] + b[0]
        going = (both > 0) & (both < 8)
        n = np.where(going, 4, 0)
        stages = [
            stage(a[0], [4] * 3, b[0], [4] * 3, blocks=4),
            stage(a[1] * going, n, b[1] * going, n, blocks=4, dropped=int((~going).sum())),
        ]
        looks = monitor(design, stages)
        assert (found.look[place], found.crossed[place]) == (looks[-1].number, looks[-1].crossed)
        if found.look[place] == 2:
            assert found.trials[place] == 24 + 8 * int(going.sum())
            assert looks[-1].task_blocks == 24


@pytest.mark.parametrize(
    ("spending", "midp", "rule", "together"),
    [
        ("power_2", True, Futility(predictive=0.2), True),
        ("power_2", True, Futility(predictive=0.2, side="gain"), True),
        ("obrien_fleming", False, Futility(conditional=0.3, effect=-0.2), True),
        ("pocock", True, None, False),
    ],
)
def test_simulated_campaigns_end_where_the_test_ends_them(
    spending: Spending, midp: bool, rule: Futility | None, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirteen are taken together, of rates from 0 to 1, half of them without an effect. `together`: their stages'
    sums too, which in large campaigns are computed one by one."""
    monkeypatch.setattr(exact_campaigns, "EQUAL_WORK", 20_000 if together else 0)
    monkeypatch.setattr(simulated_looks, "POINTS", 13 * 6 * 12)
    design = SequentialDesign((3, 5, 11, 12), spending, alpha=0.2, midp=midp)
    rng, lengths = np.random.default_rng(5), np.diff(design.looks, prepend=0)
    rates = np.array([0.0, 0.1, 0.4, 0.5, 0.9, 1.0])
    every_a, every_b = (rng.binomial(lengths[:, None], rates[::side], (60, 4, 6)) for side in (1, -1))
    every_a[:30] = rng.binomial(lengths[:, None], rates[::-1], (30, 4, 6))
    found = simulated_stops(design, every_a, every_b, rule, 0)
    for place, (a, b) in enumerate(zip(every_a, every_b, strict=True)):
        counts = zip(a, b, lengths.tolist(), strict=True)
        looks = monitor(design, [stage(x, [n] * 6, y, [n] * 6, blocks=n) for x, y, n in counts])
        given_up = (look.number for look in looks if not look.crossed and futile(design, rule, look, tasks=6))
        last = next(given_up, None)
        assert found.look[place] == (last or looks[-1].number)
        assert found.futile[place] == (last is not None)
        assert found.crossed[place] == (0 if last else looks[-1].crossed)
        assert found.trials[place] == 12 * design.looks[found.look[place] - 1]


# --- reps that are re-estimated ---------------------------------------------------------------------

REVISING = StopRule(reestimate=Reestimation(after=10, cap=60))


@pytest.mark.parametrize(
    ("revised", "looks", "levels"),
    [
        (40, (5, 10, 20, 30, 40), (0.002, 0.003125, 0.0125, 0.028125, 0.05)),
        (60, (5, 10, 27, 43, 60), (0.002, 0.002, 0.010125, 0.0256806, 0.05)),  # what was spent stays spent
        (12, (5, 10, 11, 12), (0.002, 0.0347222, 0.0420139, 0.05)),
        (10, (5, 10), (0.002, 0.05)),
    ],
)
def test_levels_of_a_revised_plan(revised: int, looks: tuple[int, ...], levels: tuple[float, ...]) -> None:
    primary = Primary(treatment="a", control="b", effect=0.1, stop=REVISING)
    design = design_of(primary, 25, revised)
    assert design.looks == REVISING.blocks(25, revised) == looks
    assert design.levels().tolist() == pytest.approx(levels, abs=1e-7)
    assert REVISING.levels(25, 0.05, revised) == pytest.approx(levels, abs=1e-7)
    crossed = crossing_probabilities(normal_bounds(design), design.times(), 0.0)
    assert crossed.sum() == pytest.approx(0.025, abs=1e-9)
    assert np.cumsum(crossed).tolist() == pytest.approx([one / 2 for one in levels], abs=1e-7)


def test_re_estimated_reps_are_those_of_the_formula() -> None:
    """7 tasks, an effect of .116: v = .30 asks for the 25 reps that were planned; all rates .5, for 42."""
    halves = reestimated_reps([10] * 7, [20] * 7, effect=0.116, alpha=0.05, after=10, cap=60)
    assert halves == math.ceil((1.959964 + 0.841621) ** 2 * 0.5 * 20 / 19 / (7 * 0.116**2)) == 44
    assert reestimated_reps([0, 20] * 3, [20] * 6, effect=0.1, alpha=0.05, after=10, cap=60) == 10
    assert reestimated_reps([10] * 7, [20] * 7, effect=0.01, alpha=0.05, after=10, cap=60) == 60
    assert reestimated_reps([0], [1], effect=0.1, alpha=0.05, after=10, cap=60) == 10
    with pytest.raises(ValueError, match="not 0"):
        reestimated_reps([1], [2], effect=0.0, alpha=0.05, after=10, cap=60)


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=6), st.randoms())
def test_reps_are_re_estimated_blind(passes: list[tuple[int, int]], chance: Random) -> None:
    """Whichever side passed: the sum over both alone decides."""

    def reps(pairs: Sequence[tuple[int, int]]) -> int | None:
        counts = [
            StageCounts(task=f"t{at}", treatment_passed=a, treatment_valid=10, control_passed=b, control_valid=10)
            for at, (a, b) in enumerate(pairs)
        ]
        stop = StopRule(looks=(10, 25), reestimate=Reestimation(after=10, cap=60))
        found = look_result(Primary(treatment="a", control="b", effect=0.2, stop=stop), 25, (), counts)
        assert isinstance(found, LookResult)
        return found.reps

    other = [(b, a) if chance.random() < 0.5 else (a, b) for a, b in passes]
    assert reps(other) == reps(passes)


def test_without_mid_p_the_size_of_a_campaign_that_re_estimates_never_exceeds_alpha() -> None:
    """Every outcome of 2 tasks × 2 blocks and one look, then of the 1 to 3 blocks that its totals ask for.
    Outcomes of the same sums and margins, tasks in either order, end alike."""
    alpha, two = 0.2, range(3)
    chances = [0.25, 0.5, 0.25]
    total = 0.0
    for first in product(two, repeat=4):
        likely = math.prod(chances[passes] for passes in first)
        more = 1 + (sum(first) % 3)  # any function of totals
        if crosses(alpha, more, alike(first), None):
            total += likely
            continue
        for then in product(range(more + 1), repeat=4):
            again = math.prod(math.comb(more, passes) / 2**more for passes in then)
            total += likely * again * crosses(alpha, more, alike(first), alike(then))
    assert 0.01 < total <= alpha


Stage = tuple[int, tuple[int, ...]]  # passes in arm a over both tasks, and of each task in both arms


def alike(passes: tuple[int, ...]) -> Stage:
    a, b = passes[:2], passes[2:]
    return sum(a), tuple(sorted(x + y for x, y in zip(a, b, strict=True)))


@cache
def crosses(alpha: float, more: int, first: Stage, then: Stage | None) -> bool:
    design = SequentialDesign((2, 2 + more), alpha=alpha, midp=False, revised=(1, 4))
    stages = [some(first, 2)] + ([some(then, more)] if then else [])
    return monitor(design, stages)[-1].crossed != 0


def some(of: Stage, n: int) -> SequentialStage:
    """One of the outcomes that are alike."""
    total, margins = of
    a = next(
        a
        for a in product(range(n + 1), repeat=2)
        if sum(a) == total and all(0 <= m - x <= n for x, m in zip(a, margins, strict=True))
    )
    return stage(a, [n, n], [m - x for x, m in zip(a, margins, strict=True)], [n, n], blocks=n)
