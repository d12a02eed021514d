"""The exact group-sequential test: reference values, a second implementation, validity by enumeration,
properties."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.analysis.sequential_fixture import Row, rational_looks
from trialfleet_ledger.designs.looks import StopRule
from trialfleet_statistics.comparisons import stratified_exact
from trialfleet_statistics.sequential import (
    SequentialDesign,
    SequentialLook,
    SequentialStage,
    Spending,
    least_stagewise_p,
    monitor,
    sequential_p,
    spent,
    stage,
    stagewise_odds_ratio,
)
from trialfleet_statistics.sequential.exact import Rejections
from trialfleet_statistics.sequential.stages import common_divisor

R1: tuple[tuple[Row, ...], ...] = (
    ((4, 5, 1, 5), (3, 5, 3, 5), (2, 5, 0, 5)),
    ((4, 5, 2, 5), (4, 5, 3, 5), (1, 5, 0, 5)),
    ((5, 5, 1, 5), (3, 5, 2, 5), (2, 5, 1, 5)),
)
R4: tuple[tuple[Row, ...], ...] = (
    ((2, 5, 2, 5), (5, 5, 5, 5), (0, 5, 1, 5), (3, 5, 2, 5)),
    ((3, 5, 2, 5), (5, 5, 5, 5), (0, 5, 0, 5), (1, 5, 3, 5)),
)
R5: tuple[tuple[Row, ...], ...] = (((4, 5, 1, 4), (3, 4, 1, 5)), ((5, 5, 2, 5), (2, 3, 1, 5)))
PAIRS: tuple[tuple[Row, ...], ...] = (((1, 1, 0, 1),) * 6, ((1, 1, 0, 1),) * 5 + ((0, 1, 1, 1),) * 2)


def staged(rows: Sequence[Row], blocks: int = 5, weights: str = "mh") -> SequentialStage:
    a, of_a, b, of_b = zip(*rows, strict=True)
    return stage(a, of_a, b, of_b, blocks=blocks, weights=weights)  # type: ignore[arg-type]


def looks_at(
    data: Sequence[Sequence[Row]],
    planned: int,
    spending: Spending = "power_2",
    *,
    midp: bool = True,
    blocks: int = 5,
) -> tuple[SequentialLook, ...]:
    design = SequentialDesign(tuple(blocks * (k + 1) for k in range(planned)), spending, midp=midp)
    return monitor(design, [staged(rows, blocks) for rows in data])


@pytest.mark.parametrize(
    ("spending", "expected"),
    [
        ("power_2", [0.002, 0.008, 0.018, 0.032, 0.05]),
        ("obrien_fleming", [0.0000010777, 0.0007883035, 0.0076161266, 0.0244235807, 0.05]),
        ("pocock", [0.0147697265, 0.0261568582, 0.0354256533, 0.0432419863, 0.05]),
    ],
)
def test_what_may_be_spent(spending: Spending, expected: list[float]) -> None:
    assert SequentialDesign.of(25, spending=spending).levels() == pytest.approx(expected, abs=1e-9)
    if spending != "pocock":
        declared = StopRule(spending=spending).levels(25, 0.05)  # what `status` shows
        assert declared == pytest.approx(expected, abs=1e-9)
    assert spent("obrien_fleming", 0.5, 0.01) == pytest.approx(0.0001438990, abs=1e-10)


@pytest.mark.parametrize(
    ("spending", "midp", "expected", "crossed"),
    [
        (
            "obrien_fleming",
            True,
            [(0.074829932, 1, 12, 0.000020996), (0.014913342, 8, 19, 0.002380615), (0.005349799, 15, 26, None)],
            1,
        ),
        ("power_2", True, [(0.074829932, 2, 11, 0.000808348), (0.015700694, 9, 18, None)], 1),
        ("pocock", True, [(0.074829932, 3, 10, 0.010435038), (0.030656445, 9, 18, None)], 1),
        (
            "power_2",
            False,
            [(0.128789788, 2, 11, 0.000808348), (0.025601291, 8, 19, 0.002900049), (0.006840358, 15, 26, None)],
            1,
        ),
    ],
)
def test_three_tasks_at_three_looks(
    spending: Spending, midp: bool, expected: list[tuple[float, int, int, float | None]], crossed: int
) -> None:
    found = looks_at(R1, 3, spending, midp=midp)
    assert [look.crossed for look in found] == [0] * (len(expected) - 1) + [crossed]
    for look, (p, lower, upper, up) in zip(found, expected, strict=True):
        assert look.p_value == pytest.approx(p, abs=1e-6)
        assert (look.lower, look.upper) == (lower, upper)
        assert up is None or look.spent_up == pytest.approx(up, abs=1e-6)
    assert [(look.sum, look.mean) for look in found] == [(9, 6.5), (18, 13.5), (28, 20.5)][: len(found)]


def test_arms_exchanged() -> None:
    mirrored = [[(x_b, n_b, x_a, n_a) for x_a, n_a, x_b, n_b in rows] for rows in R1]
    found = looks_at(mirrored, 3)
    assert [look.p_value for look in found] == pytest.approx([0.074829932, 0.015700694], abs=1e-6)
    assert (found[-1].lower, found[-1].upper, found[-1].crossed) == (9, 18, -1)


def test_what_every_trial_passed_counts_and_tells_nothing() -> None:
    found = looks_at(R4, 2, "obrien_fleming")
    assert [(look.sum, look.lower, look.upper) for look in found] == [(10, 6, 14), (19, 16, 23)]
    assert [look.p_value for look in found] == pytest.approx([1, 0.779408556], abs=1e-6)
    assert [look.spent_up for look in found] == pytest.approx([0.001747921, 0.039059719], abs=1e-6)


def test_lost_trials() -> None:
    first, second = looks_at(R5, 3, "pocock")
    assert (first.p_value, first.p_up) == pytest.approx((0.037918871, 0.018959436), abs=1e-6)
    assert (first.lower, first.upper, second.lower, second.upper) == (1, 8, 5, 13)
    assert (first.spent_up, first.spent_down) == pytest.approx((0.002582514, 0.001574704), abs=1e-6)
    assert (second.p_value, second.crossed) == pytest.approx((0.006469784, 1), abs=1e-6)
    first, second = looks_at(R5, 3, "obrien_fleming")
    assert (first.lower, first.upper, first.spent_down) == (None, 9, 0)
    assert first.spent_up == pytest.approx(0.000062988, abs=1e-6)
    assert (second.lower, second.upper) == (5, 14)
    assert second.p_value == pytest.approx(0.002000624, abs=1e-6)


def test_pairs() -> None:
    first, second = looks_at(PAIRS, 2, blocks=1)
    assert (first.p_value, first.lower, first.upper, first.crossed) == (0.015625, None, None, 0)
    assert (second.lower, second.upper, second.crossed) == (2, 11, 1)
    assert second.p_value == pytest.approx(0.012939453, abs=1e-6)


@pytest.mark.parametrize(
    ("data", "planned", "spending", "expected"),
    [
        (R1, 3, "power_2", [0.673469320, 0.035326558, 0.001580911]),
        (R1, 3, "obrien_fleming", [0.459048381, 0.057818128, 0.001130997]),
        (R4, 2, "power_2", [1, 0.797639089]),
    ],
)
def test_sequential_p(
    data: tuple[tuple[Row, ...], ...], planned: int, spending: Spending, expected: list[float]
) -> None:
    design = SequentialDesign(tuple(5 * (k + 1) for k in range(planned)), spending)
    stages = [staged(rows) for rows in data]
    found = [sequential_p(design, stages[: k + 1]) for k in range(len(data))]
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("data", "weights"), [(R1, "mh"), (R4, "mh"), (R5, "equal")])
def test_what_one_alpha_stops_is_nothing_to_the_next(data: tuple[tuple[Row, ...], ...], weights: str) -> None:
    """Asked in any order, each alpha rejects as it does alone."""
    design = SequentialDesign(tuple(5 * (k + 1) for k in range(len(data))))
    stages = [staged(rows, weights=weights) for rows in data]
    asked = (design, stages, common_divisor(stages))
    alphas = [10 ** (-n / 40) for n in range(1, 200)]
    random.Random(5).shuffle(alphas)
    found = [*map(Rejections(*asked), alphas)]
    assert found == [Rejections(*asked)(alpha) for alpha in alphas]
    assert {*found} == {True, False}


@pytest.mark.parametrize(
    ("data", "planned", "spending", "expected"),
    [
        (R1[:2], 3, "power_2", (4.202686692, 1.299427952, 15.823819245)),
        (R1, 3, "obrien_fleming", (4.151308828, 1.534174028, 11.814814222)),
        (R4, 2, "obrien_fleming", (0.846286299, 0.259066183, 2.729131376)),
        (R5, 3, "pocock", (8.488750669, 1.824989599, 49.353763050)),
    ],
)
def test_odds_ratio_after_a_stop(
    data: tuple[tuple[Row, ...], ...], planned: int, spending: Spending, expected: tuple[float, float, float]
) -> None:
    design = SequentialDesign(tuple(5 * (k + 1) for k in range(planned)), spending)
    found = stagewise_odds_ratio(design, [staged(rows) for rows in data])
    assert (found.estimate, found.low, found.high) == pytest.approx(expected, rel=1e-6)


def test_one_look_is_the_test_of_a_campaign_without_looks() -> None:
    rng = random.Random(8)
    for _ in range(50):
        n = rng.randint(1, 8)
        rows = [(rng.randint(0, n), n, rng.randint(0, n), n) for _ in range(rng.randint(1, 6))]
        [look] = monitor(SequentialDesign((n,)), [staged(rows, n, "equal")])
        assert look.p_value == stratified_exact(*zip(*rows, strict=True)).p_value


def test_no_outcome_of_the_same_totals_has_a_smaller_p() -> None:
    """All outcomes of two tasks at two looks."""
    design, totals = SequentialDesign((2, 4), "pocock"), ((2, 2), (3, 1))
    seen = [
        monitor(
            design,
            [
                stage(at, [2, 2], [m - x for m, x in zip(of, at, strict=True)], [2, 2], blocks=2)
                for of, at in zip(totals, (first, second), strict=True)
            ],
        )[-1].p_value
        for first, second in product(*(product(*(_passes(total) for total in of)) for of in totals))
    ]
    stages = [stage([1, 1], [2, 2], [m - 1 for m in of], [2, 2], blocks=2) for of in totals]
    assert least_stagewise_p(design, stages) == min(seen)


def _passes(total: int) -> range:
    return range(max(0, total - 2), min(total, 2) + 1)


def test_two_implementations_agree_on_random_campaigns() -> None:
    rng = random.Random(20261124)
    spendings: list[Spending] = ["power_2", "obrien_fleming", "pocock"]
    for campaign in range(500):
        planned, midp = rng.randint(1, 4), rng.random() < 0.5
        data = [
            [
                (rng.randint(0, n), n, rng.randint(0, m), m)
                for n, m in ((rng.randint(0, 4), rng.randint(0, 4)) for _ in range(3))
            ]
            for _ in range(planned)
        ]
        design = SequentialDesign(tuple(range(4, 4 * planned + 1, 4)), spendings[campaign % 3], midp=midp)
        kept = [[row if row[1] and row[3] else (0, 0, 0, 0) for row in rows] for rows in data]
        expected = rational_looks(kept, (design.levels() / 2).tolist(), midp=midp)
        for look, right in zip(monitor(design, [staged(rows, 4) for rows in data]), expected, strict=False):
            assert (look.p_up, look.p_down) == pytest.approx((float(right.p_up), float(right.p_down)), abs=1e-12)
            assert (look.spent_up, look.spent_down) == pytest.approx(
                (float(right.spent_up), float(right.spent_down)), abs=1e-12
            )
            assert look.sum == right.total


@pytest.mark.parametrize("spending", ["power_2", "obrien_fleming"])
def test_without_mid_p_the_size_never_exceeds_alpha(spending: Spending) -> None:
    """All outcomes of 2 tasks × 4 reps × 2 looks at every margin. Outcomes of the same sums stop alike, and so do
    tasks in either order, which another test shows."""
    design = SequentialDesign((2, 4), spending, alpha=0.2, midp=False)
    largest = Fraction(0)
    each = combinations_with_replacement(range(5), 2)  # passes in both arms of the two tasks
    for first, then in product(list(each), repeat=2):
        margins = first + then
        sums: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
        rows: dict[tuple[int, int], list[Row]] = {}
        for passed in product(*(range(max(0, m - 2), min(2, m) + 1) for m in margins)):
            chance = Fraction(1)
            for x, m in zip(passed, margins, strict=True):
                chance *= Fraction(comb(2, x) * comb(2, m - x), comb(4, m))
            at = (passed[0] + passed[1], passed[2] + passed[3])
            sums[at] += chance
            rows[at] = [(x, 2, m - x, 2) for x, m in zip(passed, margins, strict=True)]
        rejects = {1: Fraction(0), -1: Fraction(0), 0: Fraction(0)}
        for at, chance in sums.items():
            stages = [staged(rows[at][:2], 2), staged(rows[at][2:], 2)]
            rejects[monitor(design, stages)[-1].crossed] += chance
        largest = max(largest, rejects[1], rejects[-1])
    assert Fraction(1, 20) < largest <= Fraction(1, 10)


counts = st.integers(1, 6).flatmap(
    lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(0, n), st.just(n))
)
campaigns = st.lists(st.lists(counts, min_size=1, max_size=4), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(campaigns, st.randoms(use_true_random=False))
def test_what_must_not_matter(data: list[list[Row]], rng: random.Random) -> None:
    design = SequentialDesign(tuple(6 * (k + 1) for k in range(len(data))))

    def found(rows: list[list[Row]]) -> tuple[SequentialLook, ...]:
        return monitor(design, [staged(one, 6, "equal") for one in rows])

    plain = found(data)
    swapped = found([[(x_b, n_b, x_a, n_a) for x_a, n_a, x_b, n_b in rows] for rows in data])
    shuffled = found([rng.sample(rows, len(rows)) for rows in data])
    idle = found([[*rows, (3, 3, 3, 3), (0, 4, 0, 2), (2, 5, 0, 0)] for rows in data])
    for one, two, three, four in zip(plain, swapped, shuffled, idle, strict=True):
        assert (one.p_up, one.p_down) == pytest.approx((two.p_down, two.p_up), abs=1e-12)
        assert one.crossed == -two.crossed == three.crossed == four.crossed
        assert one.p_value == pytest.approx(three.p_value, abs=1e-12) == pytest.approx(four.p_value, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(campaigns)
def test_looks_spend_what_they_may_and_later_ones_see_the_earlier(data: list[list[Row]]) -> None:
    design = SequentialDesign(tuple(6 * (k + 1) for k in range(len(data))), midp=False)
    stages = [staged(rows, 6, "equal") for rows in data]
    found = monitor(design, stages)
    for k, look in enumerate(found, start=1):
        alone = monitor(design, stages[:k])[-1]
        assert (look.p_value, look.spent_up) == pytest.approx((alone.p_value, alone.spent_up), abs=1e-12)
        assert (look.crossed, look.sum) == pytest.approx((alone.crossed, alone.sum))
        assert max(look.spent_up, look.spent_down) <= look.level * (1 + 1e-6)
        assert look.crossed == 0 or look.p_value <= 2 * look.level * (1 + 1e-6)


def test_weights_follow_the_mean_over_tasks_where_trials_were_lost() -> None:
    rows: list[Row] = [(25, 25, 3, 25), (9, 25, 4, 6), (9, 25, 4, 6), (9, 25, 4, 6)]
    [equal] = monitor(SequentialDesign((25,)), [staged(rows, 25, "equal")])
    [by_passes] = monitor(SequentialDesign((25,)), [staged(rows, 25, "mh")])
    assert equal.p_value == pytest.approx(0.930653548, abs=2e-3)  # weights of another scale round otherwise
    assert by_passes.p_value == pytest.approx(0.012008186, abs=1e-6)


def test_the_sum_follows_the_mean_difference_where_a_task_lost_a_stage() -> None:
    """A task that is halted, or of which one arm lost every trial of a stage, does not draw the mean towards 0."""
    first: list[Row] = [(4, 5, 1, 5), (3, 5, 0, 5)]
    second: list[Row] = [(5, 5, 2, 5), (0, 0, 1, 5)]
    stages = [staged(first, 5, "equal"), staged(second, 5, "equal")]
    found = monitor(SequentialDesign((5, 10), alpha=0.001), stages)[-1]
    assert found.task_blocks == 15
    assert 2 * (found.sum - found.mean) / found.task_blocks == pytest.approx((0.6 + 0.6 + 0.6) / 3)


def test_a_look_at_fifty_tasks_of_fifty_reps_with_losses() -> None:
    rng = np.random.default_rng(3)
    design = SequentialDesign.of(50)
    stages: list[SequentialStage] = []
    for _ in range(5):
        n = rng.integers(6, 11, (2, 50))
        x = rng.binomial(n, 0.5)
        stages.append(stage(x[0], n[0], x[1], n[1], blocks=10))
    found = monitor(design, stages)
    assert found[-1].spent_up == pytest.approx(0.025, abs=1e-4)
    assert 0 < found[-1].p_value <= 1


def test_refusals() -> None:
    with pytest.raises(ValueError, match="ascending"):
        SequentialDesign((5, 5))
    with pytest.raises(ValueError, match="2 stages for 1 looks"):
        monitor(SequentialDesign((5,)), [staged(R1[0]), staged(R1[1])])
    with pytest.raises(ValueError, match="passes above trials"):
        stage([3], [2], [1], [2], blocks=2)
    with pytest.raises(ValueError, match="blocks"):
        stage([1], [2], [1], [2], blocks=0)
    assert SequentialDesign.of(3).looks == (1, 2, 3)
