"""Contrasts of the plan of analysis: planted effects, nulls, symmetry, every edge."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import TypeAdapter
from scipy import stats

from tests.unit.analysis.columns_fixture import drawn, laid_out, scheme
from trialfleet_analysis.analysis_plan import sensitivity
from trialfleet_analysis.analysis_plan.analyse import Analysis, analyse
from trialfleet_designs.comparison.columns import Columns, Scheme, counted
from trialfleet_designs.comparison.contrast import Contrast, Sides, all_contrasts, contrasted, sides
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_statistics.comparisons import stratified_exact

Passed = NDArray[np.float64]
ANALYSIS = TypeAdapter(Analysis)


def primary(columns: Columns, fixed: Scheme) -> Contrast:
    return all_contrasts(fixed, columns, counted(columns, fixed), sides(fixed)).found[0]


def tables(tasks: int = 4, reps: int = 4, conditions: int = 2) -> st.SearchStrategy[Passed]:
    """Passes, failures and some missing trials; the first trial of every cell is there."""
    size = tasks * conditions * reps
    cells = st.lists(st.sampled_from([0.0, 1.0, 1.0, 0.0, np.nan]), min_size=size, max_size=size)

    def shaped(values: list[float]) -> Passed:
        found = np.array(values).reshape(tasks, conditions, reps)
        found[:, :, 0] = np.nan_to_num(found[:, :, 0])
        return found

    return cells.map(shaped)


def test_a_planted_effect_is_found_and_measured() -> None:
    rates = np.array([[0.8, 0.5], [0.7, 0.4], [0.9, 0.6], [0.6, 0.3], [0.7, 0.4], [0.8, 0.5]])
    found = primary(drawn(rates, 40, seed=3), scheme(6, reps=40))
    assert found.these_tasks.test.p_value < 1e-6
    assert found.these_tasks.difference.low < 0.3 < (found.these_tasks.difference.high or 0)
    assert found.tasks_like_these.test.p_value < 0.01
    assert (found.these_tasks.agrees, found.these_tasks.strata, found.these_tasks.informative) == (True, 6, 6)
    assert found.these_tasks.odds_ratio.estimate > 2


def test_without_an_effect_the_decision_errs_at_alpha() -> None:
    """A/A: 200 campaigns of 7 × 5 with the same rates in both arms, tasks differing widely."""
    fixed, on_these, like_these = scheme(7), 0, 0
    for seed in range(200):
        rates = np.random.default_rng(1000 + seed).beta(1.2, 0.8, (7, 1)) * np.ones((7, 2))
        found = primary(drawn(rates, 5, seed=seed), fixed)
        on_these += (found.these_tasks.test.p_value or 1) <= fixed.alpha
        like_these += (found.tasks_like_these.test.p_value or 1) <= fixed.alpha
    low, high = stats.binom.interval(0.999, 200, 0.05)
    assert max(1, low) <= on_these <= high
    assert max(1, low) <= like_these <= high


@settings(max_examples=30, deadline=None)
@given(tables())
def test_swapping_treatment_and_control_mirrors_everything(passed: Passed) -> None:
    there = primary(laid_out(passed), scheme(4))
    back = primary(laid_out(passed[:, ::-1]), scheme(4))
    assert there.these_tasks.test.p_value == pytest.approx(back.these_tasks.test.p_value)
    assert there.tasks_like_these.test.p_value == pytest.approx(back.tasks_like_these.test.p_value)
    assert there.these_tasks.by_block.test.p_value == pytest.approx(back.these_tasks.by_block.test.p_value)
    for one, other in (
        (there.these_tasks.difference, back.these_tasks.difference),
        (there.tasks_like_these.difference, back.tasks_like_these.difference),
    ):
        assert (one.estimate is None) == (other.estimate is None)
        if one.low is not None and one.high is not None and other.low is not None and other.high is not None:
            assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-9)
    assert there.heterogeneity.homogeneity.p_value == pytest.approx(
        back.heterogeneity.homogeneity.p_value, nan_ok=True
    )


@settings(max_examples=30, deadline=None)
@given(tables(), st.permutations(range(4)))
def test_the_order_of_tasks_does_not_matter(passed: Passed, order: list[int]) -> None:
    one, other = (primary(laid_out(values), scheme(4)) for values in (passed, passed[order]))
    assert one.these_tasks.test.p_value == pytest.approx(other.these_tasks.test.p_value)
    assert one.these_tasks.difference.low == pytest.approx(other.these_tasks.difference.low, abs=1e-9)
    assert one.tasks_like_these.test.p_value == pytest.approx(other.tasks_like_these.test.p_value)
    assert one.these_tasks.by_block == other.these_tasks.by_block
    assert one.heterogeneity.sigma_int == pytest.approx(other.heterogeneity.sigma_int, abs=1e-6)


def test_the_companion_is_the_exact_test_with_one_trial_per_arm() -> None:
    """Pairs that lost a trial are dropped, and counted."""
    passed = np.array([[[1, 1, 0, 1, np.nan], [0, 1, 0, 0, 1]], [[1, 0, 1, 1, 1], [0, 0, 1, 0, np.nan]]])
    found = primary(laid_out(passed), scheme(2)).these_tasks.by_block
    assert (found.pairs, found.only_treatment, found.only_control, found.broken) == (8, 4, 0, 2)
    ones = np.ones(8)
    pairs = [(a, b) for a, b in zip(passed[:, 0].ravel(), passed[:, 1].ravel(), strict=True) if a == a and b == b]
    exact = stratified_exact([a for a, _ in pairs], ones, [b for _, b in pairs], ones)
    assert found.test.p_value == pytest.approx(exact.p_value)


def test_a_task_with_broken_pairs_weighs_as_much_as_the_others_in_the_companion() -> None:
    """Eight pairs of one task favour the treatment in four, three of another all the control: (4/8 − 1)/2."""
    passed = np.zeros((2, 2, 8))
    passed[0, 0, :4] = passed[1, 1, :3] = 1
    passed[1, 0, 3:] = np.nan
    found = primary(laid_out(passed), scheme(2)).these_tasks.by_block
    assert (found.pairs, found.only_treatment, found.only_control, found.broken) == (11, 4, 3, 5)
    # weights 1/8 and 1/3, as 38 and 100 without their divisor: 19 × 4 passes of up to 19 × 4 + 50 × 3
    assert (found.test.statistic, found.test.direction) == (76, -1)
    sums = [19 * i + 50 * j for i in range(5) for j in range(4) for _ in range(math.comb(4, i) * math.comb(3, j))]
    below = sum(total < 76 for total in sums) + sum(total == 76 for total in sums) / 2
    assert found.test.p_value == pytest.approx(2 * min(below, 128 - below) / 128)


@pytest.mark.parametrize("declared", [True, False])
def test_a_ceiling_costs_the_other_contrasts_nothing(declared: bool) -> None:
    """The same p-values, corrected as without it."""
    names = ("predicted_targets", "none", "placebo", "oracle_targets")
    with_it, without = scheme(5, names, declared=declared), scheme(5, names[:3], declared=declared)
    passed = np.random.default_rng(1).integers(0, 2, (5, 4, 10)).astype(np.float64)
    columns, small = laid_out(passed), laid_out(passed[:, :3])
    more = all_contrasts(with_it, columns, counted(columns, with_it), sides(with_it))
    less = all_contrasts(without, small, counted(small, without), sides(without))
    assert more.found[: len(less.found)] == less.found
    ceilings = more.found[len(less.found) :]
    assert {(one.treatment, one.role) for one in ceilings} == {("oracle_targets", "ceiling")}
    assert [one.control for one in ceilings] == (["none"] if declared else list(names[:3]))
    families = [family for family in more.families if not family.id.startswith("ceilings")]
    assert families == list(less.families)
    assert [family.size for family in more.families if family not in families] == [len(ceilings)] * 2


def test_the_primary_stands_alone_and_every_other_test_has_a_family() -> None:
    names = ("intent_layer_preamble", "intent_layer", "none", "placebo")
    rates = np.full((5, 4), 0.5)
    fixed = scheme(5, names, reps=10)
    columns = drawn(rates, 10, seed=1)
    found = all_contrasts(fixed, columns, counted(columns, fixed), sides(fixed, [("none", "placebo")]))
    roles = [(one.treatment, one.control, one.role) for one in found.found]
    assert roles == [
        ("intent_layer_preamble", "intent_layer", "primary"),
        ("none", "intent_layer", "secondary"),
        ("placebo", "intent_layer", "secondary"),
        ("none", "placebo", "asked"),
    ]
    head, *others = found.found
    assert head.these_tasks.adjusted is None
    assert head.tasks_like_these.adjusted is not None
    assert [(family.id, family.method, family.size) for family in found.families] == [
        ("contrasts other than the primary, these tasks", "holm", 3),
        ("contrasts other than the primary, tasks like these", "holm", 4),
    ]
    for one in others:
        assert one.these_tasks.adjusted.p_value >= one.these_tasks.test.p_value


def test_without_a_primary_all_pairs_are_unplanned() -> None:
    fixed = scheme(4, ("none", "placebo", "flat_llm"), declared=False)
    found = analyse(fixed, drawn(np.full((4, 3), 0.5), 5, seed=2))
    assert [one.name for one in found.contrasts] == ["placebo − none", "flat_llm − none", "flat_llm − placebo"]
    assert {one.role for one in found.contrasts} == {"unplanned"}
    assert [family.size for family in found.families[:1]] == [3]
    assert (found.declared, found.equivalence, found.subgroups, found.robustness, found.screens) == (
        None, (), (), (), (),
    )  # fmt: skip


def test_the_estimands_may_disagree() -> None:
    """Every task a little better: the paired t rejects, the exact test does not."""
    passed = np.zeros((8, 2, 6))
    passed[:, 0, :4] = 1
    passed[:, 1, :3] = 1
    passed[0, 0, 4] = 1
    found = primary(laid_out(passed), scheme(8, reps=6))
    assert found.tasks_like_these.test.p_value < 0.001
    assert found.these_tasks.test.p_value > 0.05


def test_one_task_carries_the_effect() -> None:
    passed = np.zeros((5, 2, 10))
    passed[0, 0] = 1
    passed[1, 0, 0] = 1
    found = primary(laid_out(passed), scheme(5, reps=10)).tasks_like_these
    assert (found.largest_task, found.largest_share) == ("task-0", pytest.approx(1 / 1.1))
    assert found.leave_one_out.low == pytest.approx(0.1 / 4)
    assert found.caveat


NAN = np.nan
EDGES: dict[str, Passed] = {
    "no trials": np.zeros((0, 2, 5)),
    "nothing valid": np.full((3, 2, 4), NAN),
    "all pass": np.ones((3, 2, 4)),
    "all fail": np.zeros((3, 2, 4)),
    "one task": np.array([[[1, 1, 1, 0], [0, 0, 1, 0]]], dtype=float),
    "one rep": np.array([[[1], [0]], [[0], [1]], [[1], [1]]], dtype=float),
    "one task, one rep": np.array([[[1], [0]]], dtype=float),
    "a missing cell": np.array([[[1, 0], [NAN, NAN]], [[1, 1], [0, 1]]], dtype=float),
    "no discordant pair": np.array([[[1, 0, 1], [1, 0, 1]], [[0, 1, 1], [0, 1, 1]]], dtype=float),
    "arms apart": np.concatenate([np.ones((4, 1, 5)), np.zeros((4, 1, 5))], axis=1),
    "30 % lost": np.where(np.random.default_rng(5).random((5, 2, 10)) < 0.3, NAN, 1.0),
}


@pytest.mark.parametrize("passed", EDGES.values(), ids=EDGES.keys())
def test_every_edge_has_an_answer_or_a_reason(passed: Passed) -> None:
    tasks = passed.shape[0]
    fixed = scheme(
        tasks,
        reps=passed.shape[2],
        primary=Primary(treatment="intent_layer", control="none", margin=0.1),
        factors={"category": ["a", "b", "a", "b", "a"][:tasks]},
    )
    found = analyse(fixed, laid_out(passed, measures={"turns": np.full(passed.shape, 7.0)}))
    text = json.dumps(ANALYSIS.dump_python(found, mode="json"), allow_nan=False)
    assert '"estimand"' in text
    [head] = found.contrasts
    for part in (head.these_tasks, head.tasks_like_these):
        assert part.test.p_value is not None or part.test.reason
        assert part.difference.estimate is not None or part.difference.reason
        assert part.difference.low is not None or part.difference.reason
    assert all(found.low is not None or found.reason for found in (one.interval for one in found.equivalence))


def test_the_same_columns_and_seed_give_the_same_bytes_whatever_their_order() -> None:
    passed = (np.random.default_rng(1).random((4, 2, 6)) < 0.5).astype(float)
    turns = np.random.default_rng(2).integers(3, 30, (4, 2, 6))
    fixed, columns = scheme(4, reps=6), laid_out(passed, measures={"turns": turns})
    one, two, other = (
        analyse(fixed, columns),
        analyse(fixed, columns),
        analyse(scheme(4, reps=6, seed=8), columns),
    )
    assert ANALYSIS.dump_json(one) == ANALYSIS.dump_json(two)
    assert one.measures[0].permutation.p_value != other.measures[0].permutation.p_value


def test_a_contrast_without_any_shared_task_has_reasons() -> None:
    passed = np.full((2, 2, 3), NAN)
    passed[0, 0] = passed[1, 1] = 1
    columns, fixed = laid_out(passed), scheme(2, reps=3)
    found = contrasted(Sides("intent_layer", "none", "primary"), fixed, columns, counted(columns, fixed))
    assert (found.tasks, found.treatment_rate, found.these_tasks.agrees) == (0, None, None)
    assert found.tasks_like_these.test.reason == "no tasks"


@pytest.mark.parametrize("seed", range(12))
def test_tasks_that_are_exchanged_are_judged_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And as if each had been judged by itself."""
    rng = np.random.default_rng(seed)
    passed = (rng.random((4, 2, 6)) < np.array([0.8, 0.4])[:, None]).astype(float)
    passed[:, 0, : rng.integers(1, 4)] = np.nan
    passed[rng.integers(4), 1, 0] = np.nan
    fixed, columns = scheme(4, reps=6), laid_out(passed)
    found = analyse(fixed, columns).robustness

    def ask_each(decide: Callable[..., int], _: object) -> Callable[..., int]:
        return decide

    monkeypatch.setattr(sensitivity, "_remember", ask_each)
    assert analyse(fixed, columns).robustness == found
