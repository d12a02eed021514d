"""A declared metric in a campaign file, what is refused, and its power."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.unit.controller.test_question_spec import declared
from trialfleet_designs.metric.looks import design_of_metric, find_futile_scores, predict_metric
from trialfleet_designs.metric.planning import MetricPlan, plan_metric
from trialfleet_designs.power.effort import Effort
from trialfleet_designs.protocol import PowerQuestion
from trialfleet_ledger.designs.looks import StopRule
from trialfleet_ledger.designs.metric import MetricPrimary, measure_trial
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_statistics.power import KnownTasks
from trialfleet_statistics.sequential import MeanLook

COST = MetricPrimary(metric="cost_usd", treatment="short", control="none")
MEANS = COST.model_copy(update={"scale": "difference"})


@pytest.mark.parametrize("metric", ["cost_usd", "tokens", "output_tokens", "turns", "agent_s"])
def test_a_metric_is_declared_by_name(tmp_path: Path, metric: str) -> None:
    found = declared(tmp_path, f"metric: {metric}, stop: {{looks: 2}}")
    assert isinstance(found, MetricPrimary)
    assert (found.metric, found.design) == (metric, "metric")


@pytest.mark.parametrize(
    ("primary", "words"),
    [
        ("metric: first_edit_turn", "a trial without an edit has none"),
        ("metric: wall_s", "agent_s is the agent's"),
        ("metric: price", "cost_usd"),
        ("metric: cost_usd, over: passed", "passes more hard tasks looks dearer"),
        ("metric: cost_usd, margin: 10", "margin"),
        ("metric: cost_usd, effect: 1", "no effect"),
        ("metric: cost_usd, stop: {reestimate: {after: 2, cap: 20}}", "reestimate"),
        ("metric: cost_usd, scale: difference, stop: {looks: 2}", "its test is asymptotic"),
        ("metric: cost_usd, scale: log", "scale"),
        ("metric: cost_usd, estimand: tasks_like_these", "these_tasks"),
    ],
)
def test_what_cannot_be_declared_is_refused_by_name(tmp_path: Path, primary: str, words: str) -> None:
    with pytest.raises(OperatorError) as error:
        declared(tmp_path, primary)
    assert words in f"{error.value.where}: {error.value.message}\n{error.value.hint}"


def test_what_is_not_reported_is_missing_and_never_0() -> None:
    full = Metrics(input_tokens=5, output_tokens=2, cache_read_tokens=3)
    assert measure_trial("tokens", full) == 10
    assert measure_trial("tokens", Metrics(output_tokens=2)) is None
    assert measure_trial("cost_usd", Metrics()) is None
    assert measure_trial("turns", Metrics(turns=0)) is None


def planned(cv: float, *, reps: int = 10, declared_as: MetricPrimary = COST) -> MetricPlan:
    question = PowerQuestion(
        "c", KnownTasks(np.full(8, 0.5)), "alike", (reps,), None, Effort(0.8, 0.05, 100, 1), cv
    )
    return plan_metric(declared_as, question)


@pytest.mark.parametrize(("cv", "power"), [(0.6, 0.7), (1.0, 0.4)])
def test_power_by_normal_bounds_is_near_what_simulations_gave(cv: float, power: float) -> None:
    """8 tasks × 10 reps, ratio .8: permutation tests of simulated campaigns found .72 (N = 300) and .43."""
    at = {one.ratio: one.power for one in planned(cv).rows[0].scenarios}
    assert at[0.8] == pytest.approx(power, abs=0.06)


@pytest.mark.parametrize(("cv", "power"), [(0.68, 0.57), (1.13, 0.27)])
def test_power_of_a_difference_of_means(cv: float, power: float) -> None:
    """8 tasks × 10 reps, ratio .8, tasks whose means differ (SD of logs .5), variation .6 and 1 within tasks:
    studentised tests found .573 (N = 1,500) and .271 (N = 1,000)."""
    at = {one.ratio: one for one in planned(cv, declared_as=MEANS).rows[0].scenarios}
    assert at[0.8].power == pytest.approx(power, abs=0.06)


def test_a_plan_with_looks_counts_what_futility_stops() -> None:
    """Without an effect .73 of the trials, as simulated campaigns take; a look gives most of them up."""
    looked = COST.model_copy(update={"stop": StopRule(looks=5), "effect": 0.999})
    plan = planned(0.6, reps=25, declared_as=looked)
    none = plan.rows[0].scenarios[0]
    assert (none.ratio, none.share) == (0.999, pytest.approx(0.73, abs=0.003))
    assert none.futile == pytest.approx(0.774, abs=0.003)
    assert "stops early, not shown" in plan.describe().table.columns
    obstinate = looked.model_copy(update={"stop": StopRule(looks=5, futility="none")})
    never = planned(0.6, reps=25, declared_as=obstinate).rows[0].scenarios
    assert [one.futile for one in never] == [0.0] * len(never)
    assert never[0].share > 0.98
    for with_rule, without in zip(plan.rows[0].scenarios, never, strict=True):
        assert 0.96 * without.power <= with_rule.power <= without.power


def test_the_scores_that_are_given_up_are_those_of_the_rule() -> None:
    looked = COST.model_copy(update={"stop": StopRule(looks=5)})
    design = design_of_metric(looked, 25)
    for number, score in enumerate(find_futile_scores(looked, design), start=1):
        for z, below in ((score - 0.01, True), (score + 0.01, False)):
            look = MeanLook(number, z, 1.0, 0.5, 0.5, 0.0, None, None, 1.0, 0)
            chance = predict_metric(look, design)
            assert z < 0 or chance is None or (chance < 0.05) == below


def test_needed_reps_reach_the_power() -> None:
    found = planned(0.6)
    assert found.needed is not None
    assert planned(0.6, reps=found.needed).rows[0].scenarios[1].power >= 0.8
    assert planned(0.6, reps=found.needed - 1).rows[0].scenarios[1].power < 0.8
    with pytest.raises(ValueError, match="above 0"):
        planned(0.0)
