"""Turns, time, tokens and money: per contrast, per condition, over time; and what resampling may spend."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.analysis.columns_fixture import laid_out, scheme
from trialfleet_analysis.analysis_plan.analyse import analyse
from trialfleet_analysis.analysis_plan.measures import BUDGET, LEAST, MOST, costs, shared_out

NAN = np.nan
RNG = np.random.default_rng(11)
TASKS, REPS = 8, 6
PASSED = (RNG.random((TASKS, 2, REPS)) < 0.5).astype(float)
DIFFICULTY = np.arange(TASKS)[:, None, None] * 10.0
NOISE = RNG.normal(0, 1, (TASKS, 2, REPS))
SAVED = np.array([5.0, 0.0])[None, :, None]  # the treatment takes five turns fewer
TURNS = 40 + DIFFICULTY + NOISE - SAVED


def test_a_planted_saving_is_found_in_both_estimands() -> None:
    found = analyse(scheme(TASKS, reps=REPS), laid_out(PASSED, measures={"turns": TURNS}))
    [turns] = found.measures
    assert turns.mean_difference.estimate == pytest.approx(-5.0, abs=0.6)
    assert turns.mean_difference.low < -5 < (turns.mean_difference.high or 0) < 0
    assert turns.mean_difference.monte_carlo_se is not None
    assert (turns.permutation.p_value or 1) < 0.001
    assert turns.permutation.monte_carlo_se < 0.001
    assert turns.signed_rank.p_value == pytest.approx(2 / 2**TASKS)
    assert turns.shift.estimate == pytest.approx(-5.0, abs=0.6)
    assert (turns.tasks, turns.trials_treatment, turns.trials_control) == (TASKS, TASKS * REPS, TASKS * REPS)
    assert turns.permutation_adjusted.family == "metrics, these tasks"
    assert {"metrics, these tasks", "metrics, tasks like these"} <= {family.id for family in found.families}


def test_what_was_not_measured_is_left_out_and_counted() -> None:
    turns = TURNS.copy()
    turns[0, 0] = NAN  # a task without any value under the treatment
    turns[1, 1, 0] = NAN
    lost = PASSED.copy()
    lost[2, 0, 0] = NAN
    cut = np.zeros(PASSED.shape)
    cut[3, 1, :2] = 1
    [found] = analyse(scheme(TASKS, reps=REPS), laid_out(lost, measures={"turns": turns}, cut_off=cut)).measures
    assert found.tasks == TASKS - 1
    assert (found.trials_treatment, found.trials_control) == (7 * REPS - 1, 7 * REPS - 1)
    assert (found.cut_off_treatment, found.cut_off_control) == (0, 2)


def test_few_tasks_cannot_reach_alpha_and_are_named() -> None:
    found = analyse(scheme(3, reps=REPS), laid_out(PASSED[:3], measures={"turns": TURNS[:3]}))
    [turns] = found.measures
    assert turns.signed_rank.attainable_p == 0.25
    assert turns.signed_rank_adjusted.p_value is None
    [family] = [family for family in found.families if family.id == "metrics, tasks like these"]
    assert (family.size, family.dropped) == (0, ("turns, intent_layer − none",))


def test_resampling_keeps_to_its_budget() -> None:
    assert shared_out([(True, 100), (False, 100)], uses=2) == [MOST, MOST]
    small = shared_out([(n == 0, 2_000) for n in range(20)], uses=2)
    assert small == [BUDGET // 80_000] * 20
    assert shared_out([(True, 20_000), (False, 20_000), (False, 2_000_000)], uses=2) == [2_500, None, None]
    assert shared_out([(True, 10**7)], uses=2) == [LEAST]


def test_what_was_not_resampled_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trialfleet_analysis.analysis_plan.measures.BUDGET", 1)
    fixed = scheme(TASKS, ("a", "b", "c"), reps=REPS)
    three = np.concatenate([PASSED, PASSED[:, :1]], axis=1)
    turns = np.concatenate([TURNS, TURNS[:, :1]], axis=1)
    first, second = analyse(fixed, laid_out(three, measures={"turns": turns})).measures
    assert (first.permutation.p_value or 1) < 0.05
    assert (second.permutation.p_value, second.mean_difference.low) == (None, None)
    assert "so many trials" in (second.permutation.reason or "")
    assert second.mean_difference.estimate is not None
    assert second.signed_rank.p_value is not None


def test_cost_per_pass_with_and_without_losses() -> None:
    passed = np.array([[[1, 1, 0, 0], [1, 0, 0, 0]], [[1, 1, 1, 0], [1, 1, 0, 0]]], dtype=float)
    columns = laid_out(passed, measures={"cost_usd": np.full(passed.shape, 0.5)})
    fixed = scheme(2, reps=4)
    cheap, dear = costs(fixed, columns, [0, 3])
    assert (cheap.passes, cheap.cost, cheap.without_losses, cheap.with_losses) == (5, 4.0, 0.8, 0.8)
    assert (dear.without_losses, dear.with_losses, dear.unknown) == (pytest.approx(4 / 3), None, 3)
    assert (cheap.with_losses_at_most, dear.with_losses_at_most) == (0.8, None)
    capped = replace(fixed, cap_usd=2.0)
    cheap, dear = costs(capped, columns, [0, 3])
    assert (cheap.with_losses_at_most, dear.with_losses) == (0.8, None)
    assert dear.with_losses_at_most == pytest.approx((4.0 + 3 * 2.0) / 3)
    [ratio] = analyse(fixed, columns).cost_ratios
    assert ratio.these_tasks.estimate == pytest.approx(0.6)
    assert ratio.tasks_like_these.estimate == pytest.approx(0.6)


def test_cost_per_pass_without_a_pass_has_a_reason() -> None:
    columns = laid_out(np.zeros((2, 2, 3)), measures={"cost_usd": np.ones((2, 2, 3))})
    found = analyse(scheme(2, reps=3), columns)
    assert [(cost.without_losses, cost.reason) for cost in found.costs] == [(None, "no trial passed")] * 2
    assert found.cost_ratios[0].these_tasks.reason


def test_time_to_a_pass_counts_failures_at_the_limit() -> None:
    """The treatment passes all at 20 s, the control half at 20 s and fails half early, of 100 s."""
    passed = np.ones((2, 2, 4))
    passed[:, 1, 2:] = 0
    seconds = np.where(passed == 1, 20.0, 5.0)
    found = analyse(scheme(2, reps=4), laid_out(passed, measures={"agent_s": seconds}))
    assert found.time_to_pass[0].difference.estimate == pytest.approx(20 - (20 + 100) / 2)
    treatment, control = found.incidence
    assert (treatment.passed[-1], control.passed[-1]) == (1.0, 0.5)
    assert all(0 <= one <= other for one, other in zip(control.passed, treatment.passed, strict=True))


def test_throttled_time_is_not_the_agents() -> None:
    passed = np.ones((1, 2, 3))
    measures = {"agent_s": np.full(passed.shape, 50.0), "throttled_s": np.array([30.0, 0.0])[None, :, None]}
    full = {key: np.broadcast_to(of, passed.shape) for key, of in measures.items()}
    found = analyse(scheme(1, reps=3), laid_out(passed, measures=full)).time_to_pass[0].difference
    assert found.estimate == pytest.approx(-30.0)


def test_distributions_share_their_bins_and_lose_nobody() -> None:
    turns = np.arange(PASSED.size).reshape(PASSED.shape)
    found = analyse(scheme(TASKS, reps=REPS), laid_out(PASSED, measures={"turns": turns})).distributions
    assert [one.condition for one in found] == ["intent_layer", "none"]
    assert found[0].edges == found[1].edges
    assert [sum(one.counts) for one in found] == [TASKS * REPS] * 2
    assert found[0].quartiles == tuple(np.quantile(turns[:, 0], (0.25, 0.5, 0.75)))


def test_no_bin_of_whole_numbers_holds_more_of_them_than_another() -> None:
    turns = np.arange(PASSED.size).reshape(PASSED.shape)
    one, other = analyse(scheme(TASKS, reps=REPS), laid_out(PASSED, measures={"turns": turns})).distributions
    together = [a + b for a, b in zip(one.counts, other.counts, strict=True)]
    assert len(together) > 5
    assert len(set(together[:-1])) == 1
