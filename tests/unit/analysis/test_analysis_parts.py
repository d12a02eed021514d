"""Screens, subgroups, margins, sensitivity to losses, order, outlook, repeats: parts of the plan of analysis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.unit.analysis.columns_fixture import drawn, laid_out, scheme
from trialfleet_analysis.analysis_plan.analyse import Analysis, analyse
from trialfleet_analysis.analysis_plan.power_summary import apart, own_tasks, power_at
from trialfleet_analysis.analysis_plan.subgroups import interaction, interaction_like_these
from trialfleet_designs.comparison.columns import FourCounts
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_statistics.multiplicity import Attainability

PRIMARY = Primary(treatment="intent_layer", control="none")
NAN = np.nan


def split(
    treatment: list[int], control: list[int], *, reps: int
) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    """Passes of each task, first reps first."""
    found = np.zeros((len(treatment), 2, reps))
    for task, pair in enumerate(zip(treatment, control, strict=True)):
        for arm, passes in enumerate(pair):
            found[task, arm, :passes] = 1
    return found


# --- each task's own test ------------------------------------------------------------------------------


def screen(treatment: list[int], control: list[int], *, reps: int) -> Analysis:
    return analyse(scheme(len(treatment), reps=reps), laid_out(split(treatment, control, reps=reps)))


def test_three_reps_can_never_show_a_task() -> None:
    found = screen([3, 2, 1], [0, 0, 0], reps=3)
    assert {task.label for task in found.screens[0].tasks} == {Attainability.NOT_WITH_THESE_REPS}
    [family] = [family for family in found.families if family.id == found.screens[0].family]
    assert (family.size, family.dropped) == (0, ("task-0", "task-1", "task-2"))


def test_a_perfect_split_among_seven_needs_another() -> None:
    found = screen([5, 3, 3, 3, 3, 3, 3, 5], [0, 2, 2, 2, 2, 2, 2, 5], reps=5).screens[0].tasks
    assert (found[0].label, found[0].tasks_needed) == (Attainability.NOT_ALONE, 2)
    assert found[0].p_value == pytest.approx(2 / 252)
    assert not found[0].found
    assert found[7].label is Attainability.NOT_GIVEN_THESE_TOTALS
    assert (found[7].adjusted, found[7].attainable_p) == (None, 1.0)


def test_a_clear_task_is_found() -> None:
    found = screen([25, 12, 12], [2, 12, 11], reps=25).screens[0].tasks
    assert [task.found for task in found] == [True, False, False]
    assert found[0].label is Attainability.ALONE
    assert found[0].low < found[0].difference < found[0].high


# --- subgroups ------------------------------------------------------------------------------------------


def four(treatment: list[int], control: list[int], reps: int) -> FourCounts:
    n = np.full(len(treatment), reps)
    return np.array(treatment), n, np.array(control), n


def test_an_effect_in_one_subgroup_only_is_an_interaction() -> None:
    passed = split([18, 17, 19, 10, 9, 11], [5, 6, 4, 10, 10, 10], reps=20)
    levels = ["covered"] * 3 + ["not covered"] * 3
    found = analyse(scheme(6, reps=20, factors={"coverage of the anchor": levels}), laid_out(passed))
    [factor] = found.subgroups
    assert (factor.interaction.p_value or 1) < 0.001
    assert (factor.interaction_like_these.p_value or 1) < 0.01
    assert [(level.level, len(level.tasks)) for level in factor.levels] == [("covered", 3), ("not covered", 3)]
    assert (factor.levels[0].difference.estimate, factor.levels[1].difference.estimate) == pytest.approx(
        (0.65, 0.0)
    )
    assert {"interactions, these tasks", "interactions, tasks like these"} <= {f.id for f in found.families}


def test_the_interaction_test_is_exact() -> None:
    """Two tasks of 3 + 3: all splits of S, listed by hand. Margins 3 of 6 each, S = 4: S₁ is 1, 2 or 3 with
    weights C(3,1)²C(3,3)² = 9, C(3,2)⁴ = 81, 9."""
    found = interaction(four([3, 1], [0, 2], 3), [np.array([True, False]), np.array([False, True])])
    assert found.p_value == pytest.approx(9 / 99)
    assert found.attainable_p == pytest.approx(9 / 99)


@pytest.mark.parametrize("sizes", [(2, 2), (2, 9), (5, 3)])
def test_the_interaction_for_tasks_like_these_is_welch_s_t(sizes: tuple[int, int]) -> None:
    one, other = (np.random.default_rng(n).normal(n, 1 + n, n) for n in sizes)
    inside = np.arange(sum(sizes)) < sizes[0]
    found = interaction_like_these(np.concatenate([one, other]), [inside, ~inside])
    expected = stats.ttest_ind(one, other, equal_var=False)
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))


def test_interactions_err_at_alpha_whatever_the_common_effect() -> None:
    rng, rejected = np.random.default_rng(4), 0
    levels = [np.arange(8) < 4, np.arange(8) >= 4]
    for _ in range(400):
        logit = rng.normal(0, 1, 8)
        a, b = (rng.binomial(10, 1 / (1 + np.exp(-(logit + shift)))) for shift in (0.6, -0.6))
        n = np.full(8, 10)
        rejected += (interaction((a, n, b, n), levels).p_value or 1) <= 0.05
    assert 6 <= rejected <= 36  # 20 expected, .001 limits


def test_three_levels_are_each_set_against_the_others() -> None:
    levels = [np.array([0, 0, 1, 1, 2, 2]) == level for level in range(3)]
    counts = four([9, 9, 5, 5, 5, 5], [1, 1, 5, 5, 5, 5], 10)
    whole, one = interaction(counts, levels), interaction(counts, [levels[0], ~levels[0]])
    assert whole.p_value == pytest.approx(3 * (one.p_value or 0))
    assert "each level against the others" in whole.method


def test_a_level_without_information_has_a_reason() -> None:
    levels = [np.array([True, False]), np.array([False, True])]
    assert interaction(four([5, 3], [5, 1], 5), levels).reason == "a level has no informative task"
    assert interaction_like_these(np.array([0.1, 0.2]), levels).reason == "a level has fewer than two tasks"


def test_factors_that_say_nothing_say_why() -> None:
    factors = {"category": ["a", None, "a"], "difficulty": ["easy"] * 3}
    found = analyse(scheme(3, factors=factors), drawn(np.full((3, 2), 0.5), 5, seed=1)).subgroups
    assert [factor.reason for factor in found] == ["not in the plan for 1 of 3 tasks", "all tasks are easy"]


# --- margins --------------------------------------------------------------------------------------------


def test_equal_arms_are_equivalent_within_a_wide_margin() -> None:
    rates = np.repeat(np.linspace(0.2, 0.8, 10)[:, None], 2, axis=1)
    wide = Primary(treatment="intent_layer", control="none", margin=0.2)
    on_these, like_these = analyse(scheme(10, reps=40, primary=wide), drawn(rates, 40, seed=5)).equivalence
    assert (on_these.equivalent, like_these.equivalent) == (True, True)
    assert (on_these.interval.level, like_these.interval.level) == (0.9, 0.9)
    narrow = wide.model_copy(update={"margin": 0.01})
    on_these, _ = analyse(scheme(10, reps=40, primary=narrow), drawn(rates, 40, seed=5)).equivalence
    assert (on_these.equivalent, on_these.non_inferior) == (False, False)


def test_a_better_treatment_is_non_inferior_and_not_equivalent() -> None:
    wide = Primary(treatment="intent_layer", control="none", margin=0.1)
    columns = drawn(np.tile([0.8, 0.4], (8, 1)), 30, seed=1)
    for found in analyse(scheme(8, reps=30, primary=wide), columns).equivalence:
        assert (found.equivalent, found.non_inferior) == (False, True)


# --- losses ---------------------------------------------------------------------------------------------


def test_retries_do_not_hide_what_was_lost() -> None:
    """All trials measured in the end; half of the control's first runs were lost, and passed on retry."""
    passed = np.concatenate([np.ones((4, 1, 10)), np.zeros((4, 1, 10))], axis=1)
    passed[:, 1, 5:] = 1
    lost = np.zeros(passed.shape)
    lost[:, 1, 5:] = 1
    found = analyse(scheme(4, reps=10), laid_out(passed, first_missing=lost))
    on_these, like_these = found.robustness
    assert (on_these.missing_treatment, on_these.missing_control) == (0, 20)
    assert {scenario.name: scenario.difference for scenario in on_these.scenarios} == {
        "as_measured": 0.5,
        "complete_case": 1.0,
        "lost_as_failed": 1.0,
        "worst": 0.5,
        "best": 1.0,
    }
    assert on_these.robust
    assert like_these.scenarios[0].p_value is None  # every task has the same difference
    assert found.loss_test.lost == (0, 20)
    assert (found.loss_test.test.p_value or 1) < 1e-4


def test_a_narrow_result_tips() -> None:
    passed = split([6, 6], [3, 3], reps=12)
    passed[:, 0, 10:] = NAN
    found = analyse(scheme(2, reps=12), laid_out(passed)).robustness[0]
    assert not found.robust
    assert 1 <= found.tipping_point <= 4
    assert found.tipping_exhaustive


def test_a_decision_that_only_retries_made_is_not_robust() -> None:
    """As measured the arms differ; among the first runs, all of which failed where they were not lost, they do
    not."""
    passed = split([10, 10], [2, 2], reps=10)
    lost = np.zeros(passed.shape)
    lost[:, 0] = 1
    lost[:, 1, :2] = 1
    found = analyse(scheme(2, reps=10), laid_out(passed, first_missing=lost)).robustness[0]
    assert [scenario.rejects for scenario in found.scenarios[:2]] == [True, False]
    assert not found.robust


def test_a_forged_pass_counts_as_failed_and_as_missing_where_losses_are_varied() -> None:
    """Six of ten passes of one arm were forged: the contrast has them as failed, robustness as anything."""
    passed = split([4, 4], [4, 4], reps=10)
    forged = np.zeros(passed.shape)
    forged[:, 0, 4:] = 1
    found = analyse(scheme(2, reps=10), laid_out(passed, forged=forged))
    robust = found.robustness[0]
    assert found.contrasts[0].these_tasks.difference.estimate == 0
    assert (robust.missing_treatment, robust.missing_control, robust.forged) == (12, 0, 12)
    assert [one.rejects for one in robust.scenarios] == [False, True, False, False, True]
    assert not robust.robust


def test_a_task_lost_in_one_arm_still_counts_against_robustness() -> None:
    """Three tasks are compared; a fourth lost all of the control's trials, and could undo the difference."""
    passed = split([6, 6, 6, 0], [2, 2, 2, 0], reps=8)
    passed[3, 1] = NAN
    compared = analyse(scheme(3, reps=8), laid_out(passed[:3]))
    assert compared.robustness[0].robust
    found = analyse(scheme(4, reps=8), laid_out(passed))
    assert not found.robustness[0].robust
    assert found.robustness[0].missing_control == 8
    assert (found.compared.tasks, found.compared.empty) == (compared.compared.tasks, ("task-3",))
    assert found.contrasts[0].these_tasks == compared.contrasts[0].these_tasks


def test_as_measured_is_the_contrast_itself() -> None:
    """A third condition lost all of a task that both arms measured: it takes nothing out of the contrast, nor of
    the line that repeats its decision."""
    names = ("intent_layer", "none", "placebo")
    passed = np.concatenate([split([8, 7, 6, 8], [2, 2, 1, 1], reps=10), np.ones((4, 1, 10))], axis=1)
    passed[3, 2] = NAN
    found = analyse(scheme(4, names, reps=10), laid_out(passed))
    alone = analyse(scheme(4, names[:2], reps=10), laid_out(passed[:, :2]))
    assert found.contrasts[0].these_tasks == alone.contrasts[0].these_tasks
    assert found.compared.tasks == ("task-0", "task-1", "task-2", "task-3")
    on_these, like_these = (one.scenarios for one in found.robustness)
    headline = found.contrasts[0]
    assert (on_these[0].name, on_these[0].p_value) == ("as_measured", headline.these_tasks.test.p_value)
    assert on_these[0].difference == headline.these_tasks.difference.estimate
    assert like_these[0].p_value == headline.tasks_like_these.test.p_value
    assert on_these[1].difference == pytest.approx((0.6 + 0.5 + 0.5 + 0.7) / 4)


def test_forty_tasks_with_two_lost_trials_have_a_tipping_point_or_none() -> None:
    """More cells than an array has dimensions; all but two choices of lost trials are empty."""
    passed = drawn(np.full((40, 2), 0.5), 3, seed=4)
    lost = np.zeros(passed.task.shape, dtype=np.bool_)
    lost[:2] = True
    for found in analyse(scheme(40, reps=3), passed.without(lost)).robustness:
        assert found.tipping_exhaustive


def test_own_memory_and_undelivered_trials_are_sensitivities() -> None:
    passed = split([3, 3], [2, 2], reps=4)
    memory, undelivered = np.zeros(passed.shape), np.zeros(passed.shape)
    memory[0, 1, 3] = 1
    undelivered[:, 0, 3] = 1
    found = analyse(scheme(2, reps=4), laid_out(passed, own_memory=memory, undelivered=undelivered)).sensitivities
    assert [(one.name, one.excluded_treatment, one.excluded_control) for one in found] == [
        ("own_memory_as_lost", 0, 1),
        ("per_protocol", 2, 0),
    ]
    assert found[1].difference.estimate == pytest.approx(1.0 - 0.5)


# --- order, outlook, repeats ----------------------------------------------------------------------------


def test_drift_is_seen_and_named() -> None:
    passed = np.zeros((4, 2, 12))
    passed[:, :, 6:] = 1
    checks = {check.name: check for check in analyse(scheme(4, reps=12), laid_out(passed)).drift}
    assert (checks["order_effect"].test.p_value or 1) < 1e-6
    assert checks["order_effect"].difference == 1.0
    assert (checks["autocorrelation"].test.p_value or 1) < 0.01
    assert (checks["balance"].test.p_value or 0) > 0.3
    assert [check.blinded for check in checks.values()] == [True, False, True, True]


def test_more_reps_and_more_tasks_buy_what_the_formula_says() -> None:
    rates = np.repeat(np.linspace(0.1, 0.9, 7)[:, None], 2, axis=1)
    found = analyse(scheme(7, reps=5), drawn(rates, 5, seed=2)).outlook
    assert [(more.tasks, more.reps) for more in found.more] == [(7, 5), (7, 10), (7, 20), (14, 5), (28, 5)]
    on_these = [more.mde_these_tasks or 1 for more in found.more]
    assert on_these[1] == pytest.approx(on_these[0] / np.sqrt(2))
    assert on_these[3] == pytest.approx(on_these[1])
    assert [one.estimand for one in found.detectable] == ["these_tasks", "tasks_like_these"]
    assert found.detectable[0].mde == on_these[0]
    assert found.declared == ()


def test_a_single_loss_costs_what_a_single_trial_is_worth() -> None:
    """Cells of 5, one of them of 4: the harmonic mean is 14 / (13/5 + 1/4) = 4.91, not 4."""
    passed = split([4, 3, 2, 4, 1, 3, 2], [2, 1, 2, 3, 0, 1, 3], reps=5)
    whole = analyse(scheme(7, reps=5), laid_out(passed)).outlook
    passed[0, 0, 4] = NAN
    found = analyse(scheme(7, reps=5), laid_out(passed)).outlook
    reps = 14 / (13 / 5 + 1 / 4)
    within = 2 * found.mean * (1 - found.mean) * (1 - found.icc.estimate) / (7 * reps)
    quantiles = stats.t.ppf(0.975, 6) + stats.t.ppf(0.8, 6)
    assert found.detectable[1].mde == pytest.approx(quantiles * np.sqrt(within + found.sigma_int**2 / 7))
    assert found.detectable[0].reps == whole.detectable[0].reps == 5
    assert [(more.tasks, more.reps) for more in found.more] == [(more.tasks, more.reps) for more in whole.more]


def beta(a: float, tasks: int, reps: int) -> list[int]:
    """Passes in both arms of tasks whose rates are the quantiles of Beta(a, a)."""
    found = stats.beta(a, a).ppf((np.arange(tasks) + 0.5) / tasks)
    return [int(passes) for passes in np.rint(2 * reps * found)]


@pytest.mark.parametrize(
    ("passes", "reps", "detectable", "too_small", "its_power"),
    [
        ([0, 10, 3, 0], 5, 0.307, 0.213, 0.47),
        ([0] * 5 + [50] * 5 + [25, 25], 25, 0.050, 0.036, 0.52),
        (beta(0.6, 12, 25), 25, 0.086, 0.082, 0.76),
        (beta(0.3, 20, 10), 10, 0.095, 0.087, 0.73),
    ],
    ids=["4 x 5", "12 x 25, ten saturated", "12 x 25, mixed", "20 x 10"],
)
def test_the_detectable_effect_has_its_power_also_where_tasks_are_saturated(
    passes: list[int], reps: int, detectable: float, too_small: float, its_power: float
) -> None:
    """`too_small`: what the mean rate and the ICC give; its power on the tasks' own rates is far from .80."""
    shown = split([m // 2 for m in passes], [m - m // 2 for m in passes], reps=reps)
    on_these = analyse(scheme(len(passes), reps=reps), laid_out(shown)).outlook.detectable[0]
    assert on_these.mde == pytest.approx(detectable, rel=0.06)
    assert 0 < (on_these.monte_carlo_se or 1) < 0.02 * on_these.mde
    halves = np.array(passes) // 2
    each = np.full(len(passes), reps)
    own = own_tasks((halves, each, np.array(passes) - halves, each))
    for effect, power in ((on_these.mde, 0.8), (too_small, its_power)):
        found = power_at(effect, own, alpha=0.05, simulations=4_000, seed=11)
        assert found.power == pytest.approx(power, abs=0.035)


def test_what_no_effect_can_show_has_no_detectable_effect() -> None:
    found = analyse(scheme(1, reps=1), laid_out(split([1], [0], reps=1))).outlook
    assert found.detectable[0].mde is None
    assert found.detectable[0].reason == "not even a gain of 100 points, the largest that there can be"
    assert [more.mde_these_tasks for more in found.more] == [None] * 5


def test_one_task_says_why_it_detects_nothing_elsewhere() -> None:
    found = analyse(scheme(1, reps=9), laid_out(split([8], [4], reps=9))).outlook
    assert found.detectable[0].mde is not None
    assert (found.detectable[1].mde, found.detectable[1].reason) == (
        None,
        "one task says nothing of the spread between tasks",
    )
    assert [more.mde_tasks_like_these for more in found.more] == [None] * 5


def test_power_is_given_at_the_declared_effect_alone() -> None:
    declared = Primary(treatment="intent_layer", control="none", effect=0.3)
    columns = drawn(np.full((6, 2), 0.5), 20, seed=1)
    on_these, like_these = analyse(scheme(6, reps=20, primary=declared), columns).outlook.declared
    assert on_these.power > 0.95
    assert like_these.effect == 0.3


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.02, 0.98), min_size=1, max_size=6), st.floats(0.01, 0.9))
def test_rates_are_moved_apart_by_the_effect(rates: list[float], effect: float) -> None:
    found = apart(np.array(rates), effect)
    assert float(np.mean(found[0] - found[1])) == pytest.approx(effect, abs=1e-9)
    assert apart(np.array(rates), 1.0) is None


def test_repeats_as_far_as_the_reps_go() -> None:
    passed = split([4, 2], [1, 0], reps=4)
    passed[1, 1, 3] = NAN
    found = analyse(scheme(2, reps=4), laid_out(passed)).repeats
    assert [(one.condition, one.k) for one in found] == [
        ("intent_layer", 1), ("intent_layer", 3), ("none", 1), ("none", 3),
    ]  # fmt: skip
    assert found[1].pass_at_k.estimate == pytest.approx(1.0)
    assert found[1].pass_hat_k.estimate == pytest.approx(0.5)
