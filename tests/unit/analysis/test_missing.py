"""What missing trials could do: by hand, against every resolution tried in turn, and against other exact tests."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from trialfleet_statistics.comparisons import stratified_exact
from trialfleet_statistics.estimates import Integers
from trialfleet_statistics.missing import (
    ArmCounts,
    FourCounts,
    bounds,
    complete_case,
    loss_by_condition,
    lost_as_failed,
    robustness,
)
from trialfleet_statistics.missing.scenarios import Tipping, tipping

ALPHA = 0.05 * (1 + 1e-7)  # 0 of 3 against 3 of 3 has p = .05, a rejection however the sum was rounded
arm = st.integers(0, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(0, 3)))
cells = st.lists(st.tuples(arm, arm).map(lambda two: (*two[0], *two[1])), min_size=1, max_size=2)


def test_counts_under_an_assumption() -> None:
    assert complete_case(20, 25, 5) == ArmCounts(20, 25)
    assert lost_as_failed(20, 25, 5) == ArmCounts(20, 30)
    many = lost_as_failed([20, 1], [25, 2], [5, 0])
    assert [many.passes.tolist(), many.trials.tolist()] == [[20, 1], [30, 2]]
    assert isinstance(complete_case(20, 25, 5).passes, int)


def test_bounds_by_hand_decide_either_way() -> None:
    """20/25 (+5 lost) against 12/25 (+2): Fisher .038, between .290 and .003."""
    found = bounds(20, 25, 5, 12, 25, 2)
    assert found.worst == FourCounts(20, 30, 14, 27)
    assert found.best == FourCounts(25, 30, 12, 27)
    for (x_a, n_a, x_b, n_b), expected in (
        (found.worst, 0.290),
        (found.best, 0.003),
        (FourCounts(20, 25, 12, 25), 0.038),
    ):
        p = stats.fisher_exact([[x_a, n_a - x_a], [x_b, n_b - x_b]]).pvalue
        assert p == pytest.approx(expected, abs=5e-4)
    verdict = robustness(20, 25, 5, 12, 25, 2)
    assert verdict.verdict == "not robust"
    assert [scenario.name for scenario in verdict.scenarios] == [
        "complete case",
        "lost as failed",
        "worst",
        "best",
    ]
    assert [scenario.decision for scenario in verdict.scenarios] == [1, 0, 0, 1]
    assert [scenario.sign for scenario in verdict.scenarios] == [1, 1, 1, 1]
    assert (verdict.missing, verdict.tipping_exhaustive) == (7, True)


def test_bounds_of_strata() -> None:
    found = bounds([1, 2], [3, 4], [1, 0], [0, 1], [3, 4], [2, 1])
    assert [values.tolist() for values in found.worst] == [[1, 2], [4, 4], [2, 2], [5, 5]]
    assert [values.tolist() for values in found.best] == [[2, 2], [4, 4], [0, 1], [5, 5]]


def _tried_one_by_one(cell: tuple[tuple[int, ...], ...]) -> int | None:
    """The fewest trials, over every choice and both directions, that change the complete case's decision."""
    x_a, n_a, lost_a, x_b, n_b, lost_b = (np.array(column) for column in zip(*cell, strict=True))

    def decided(*counts: np.ndarray) -> int:
        p = stratified_exact(*counts).p_value
        one, two, three, four = counts
        lean = np.sum((one * four - three * two) / np.maximum(two + four, 1))
        return 0 if p is None or p > ALPHA else int(np.sign(lean))

    base, fewest = decided(x_a, n_a, x_b, n_b), math.inf
    for choice in itertools.product(*(range(most + 1) for most in (*lost_a, *lost_b))):
        a, b = np.array(choice[: len(cell)]), np.array(choice[len(cell) :])
        against, towards = (x_a, n_a + a, x_b + b, n_b + b), (x_a + a, n_a + a, x_b, n_b + b)
        for side, counts in ((1, against), (-1, towards)):
            if base in (0, side) and decided(*counts) != base:
                fewest = min(fewest, sum(choice))
    return None if math.isinf(fewest) else int(fewest)


@settings(max_examples=12, deadline=None)
@given(cells)
def test_no_fewer_trials_tip_it(cell: list[tuple[int, ...]]) -> None:
    found = robustness(*(list(column) for column in zip(*cell, strict=True)))
    assert found.tipping_point == _tried_one_by_one(tuple(cell))
    assert found.tipping_exhaustive
    decisions = {scenario.decision for scenario in found.scenarios}
    assert (found.verdict == "robust") == (len(decisions) == 1 and found.tipping_point is None)


def test_many_strata_are_searched_along_one_path() -> None:
    """Eight tasks with 30 % loss: too many choices to try; the point is one at which the decision does change."""
    x_a, x_b = [15, 12, 16, 9, 14, 17, 10, 13], [9, 6, 11, 5, 8, 12, 5, 7]
    found = robustness(x_a, [18] * 8, [7] * 8, x_b, [18] * 8, [7] * 8)
    assert found.scenarios[0].decision == 1
    assert found.verdict == "not robust"
    assert not found.tipping_exhaustive
    assert 1 < found.tipping_point < found.missing == 112
    turned = robustness(x_a[::-1], [18] * 8, [7] * 8, x_b[::-1], [18] * 8, [7] * 8)
    assert turned.tipping_point == found.tipping_point


@pytest.mark.parametrize("tips", [1, 49, 50, 51, 100, 101, 333, 480, None])
def test_a_long_path_is_followed_as_far_as_it_tips(tips: int | None) -> None:
    """480 lost trials, and a decision that falls with the `tips`-th of them."""
    x_a, n_a, lost, x_b = (np.full(8, value) for value in (20, 40, 30, 15))
    asked: list[int] = []

    def decide(counts: FourCounts[Integers]) -> int:
        asked.append(int(counts.trials_a.sum() + counts.trials_b.sum()) - 640)
        return 1 if tips is None or asked[-1] < tips else 0

    assert tipping((x_a, n_a, lost, x_b, n_a, lost), 1, decide).point == tips
    assert len(asked) < 70
    assert all(step == 480 or step <= max(50, 2 * (tips or 0)) for step in asked)


def test_nothing_missing_is_robust() -> None:
    found = robustness([5, 4], [5, 5], [0, 0], [1, 0], [5, 5], [0, 0])
    assert (found.verdict, found.tipping_point, found.missing) == ("robust", None, 0)
    assert found.reason == "no trial is missing"
    assert len({scenario.p_value for scenario in found.scenarios}) == 1


def test_a_p_of_alpha_is_a_rejection() -> None:
    """Three lost in each empty arm: only all six, resolved one way, give 0 of 3 against 3 of 3 and p = .05."""
    found = robustness(0, 0, 3, 0, 0, 3)
    assert [scenario.decision for scenario in found.scenarios] == [0, 0, -1, 1]
    assert found.tipping_point == 6


# --- losses by condition ------------------------------------------------------------------------------------


def _every_table(lost: list[int], attempts: list[int]) -> float:
    """The exact p with integers: each table weighs the product of its binomial coefficients."""

    def weight(table: tuple[int, ...]) -> int:
        return math.prod(math.comb(n, m) for n, m in zip(attempts, table, strict=True))

    tables = [t for t in itertools.product(*(range(n + 1) for n in attempts)) if sum(t) == sum(lost)]
    mine = weight(tuple(lost))
    return sum(w for w in map(weight, tables) if w <= mine) / sum(map(weight, tables))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=4)
)
def test_the_exact_test_is_every_table_summed(conditions: list[tuple[int, int]]) -> None:
    lost, attempts = [m for m, _ in conditions], [n for _, n in conditions]
    found = loss_by_condition(lost, attempts)
    assert found.p_value == pytest.approx(_every_table(lost, attempts), rel=1e-9)
    assert 0 < found.attainable_p <= found.p_value * (1 + 1e-9)
    assert loss_by_condition(lost[::-1], attempts[::-1]).p_value == pytest.approx(found.p_value, rel=1e-9)


def test_two_conditions_are_fisher() -> None:
    found = loss_by_condition([9, 2], [30, 27])
    expected = stats.fisher_exact([[9, 21], [2, 25]]).pvalue
    assert found.p_value == pytest.approx(expected, rel=1e-9)
    assert (found.method, found.standard_error, found.n_informative) == ("freeman_halton", None, 57)
    chi_squared = stats.chi2_contingency([[9, 21], [2, 25]], correction=False).statistic
    assert found.statistic == pytest.approx(chi_squared)


def test_a_large_table_is_sampled_with_its_error() -> None:
    lost, attempts = [30, 22, 35, 41, 18, 29], [250] * 6
    found = loss_by_condition(lost, attempts, resamples=20_000, seed=3)
    assert found.method == "freeman_halton_sampled"
    assert found.standard_error == pytest.approx(math.sqrt(found.p_value * (1 - found.p_value) / 20_000))
    assert found == loss_by_condition(lost, attempts, resamples=20_000, seed=3)
    approximate = stats.chi2_contingency([lost, [250 - m for m in lost]]).pvalue
    assert found.p_value == pytest.approx(approximate, abs=0.01)


def test_sampling_agrees_with_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from trialfleet_statistics.missing import by_condition

    whole = loss_by_condition([5, 2, 0], [30, 27, 28])
    monkeypatch.setattr(by_condition, "ENUMERABLE", 0)
    drawn = loss_by_condition([5, 2, 0], [30, 27, 28], seed=1)
    assert whole.p_value is not None
    assert drawn.p_value == pytest.approx(whole.p_value, abs=4 * drawn.standard_error)


@pytest.mark.parametrize(
    ("lost", "attempts", "p", "reason"),
    [
        ([0, 0], [5, 5], 1.0, "no attempt was lost"),
        ([5, 5], [5, 5], 1.0, "every attempt was lost"),
        ([1], [5], None, "fewer than two conditions with attempts"),
        ([1, 0], [5, 0], None, "fewer than two conditions with attempts"),
        ([], [], None, "fewer than two conditions with attempts"),
    ],
)
def test_without_a_comparison(lost: list[int], attempts: list[int], p: float | None, reason: str) -> None:
    found = loss_by_condition(lost, attempts)
    assert (found.p_value, found.reason) == (p, reason)


def test_none_is_fewer_than_one() -> None:
    """One way a single trial changes it, the other way nothing that was tried does."""
    x_a, n, x_b = (np.array(one) for one in ([5, 5], [9, 9], [1, 1]))

    def decide(counts: FourCounts[Integers]) -> int:
        return int(counts[0].sum() > 10)

    six = (x_a, n, np.array([3, 3]), x_b, n, np.array([0, 0]))
    assert tipping(six, 0, decide, choices=1) == Tipping(1, exhaustive=True)
