"""What a comparison is made of: its own arms alone, without tasks that losses made thin; and what is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support import ledgers
from tests.support.ledgers import Fate
from tests.support.random_campaigns import report_of
from tests.unit.analysis.columns_fixture import laid_out, scheme
from trialfleet_analysis.analysis_plan.analyse import analyse
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.comparison.compared import compare_tasks
from trialfleet_designs.monitoring import look_result
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import Decision, StageCounts, StopRule
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.trend import stratified_trend

NAN = float("nan")
NAMES = ("intent_layer", "none", "placebo")


def outcomes(*arms: list[int], reps: int) -> Floats:
    """Passes of each task, an arm each; the first reps pass. Shape (tasks, arms, reps)."""
    return (np.arange(reps) < np.array(arms).T[:, :, None]).astype(np.float64)


def test_a_third_arm_takes_no_task_out_of_the_declared_contrast() -> None:
    """It lost four of five tasks: p < .0001 became .038, of the one task that was left."""
    passed = outcomes([9] * 5, [4] * 5, [5] * 5, reps=10)
    passed[1:, 2] = NAN
    alone = report_of(scheme(5, NAMES[:2], reps=10), laid_out(passed[:, :2]))
    found = report_of(scheme(5, NAMES, reps=10), laid_out(passed))
    assert found.headline is not None
    assert alone.headline is not None
    assert found.headline.these_tasks == alone.headline.these_tasks
    assert found.answer[0].startswith("On these 5 tasks, intent_layer passed more often than none: 90.0% against")
    assert found.answer[0].endswith("p < 0.0001.")
    assert [(one.condition, one.tasks) for one in found.conditions] == [
        (NAMES[0], 5),
        (NAMES[1], 5),
        (NAMES[2], 1),
    ]
    assert found.analysis.contrasts[1].tasks == 1  # placebo against none


def test_a_thin_task_leaves_both_arms_and_is_named_with_the_interval_that_includes_it() -> None:
    passed = outcomes([8] * 8, [4] * 8, reps=10)
    passed[3, 0, 1:] = NAN
    report = report_of(scheme(8, NAMES[:2], reps=10), laid_out(passed))
    assert report.headline is not None
    compared, with_it = report.headline.compared, report.headline.with_thin
    assert (len(compared.tasks), compared.thin) == (7, ("task-3",))
    assert report.headline.these_tasks.difference.estimate == pytest.approx(0.4)
    assert with_it is not None
    assert with_it.these_tasks.estimate == pytest.approx((7 * 0.4 + 0.6) / 8)
    assert "On these 7 tasks" in report.answer[0]
    assert (
        "Left out, since losses left too few valid trials: task-3; with it the difference is +42.5"
        in report.answer[0]
    )
    assert [one.tasks for one in report.conditions] == [7, 7]


@pytest.mark.parametrize(
    ("valid", "trials", "thin"),
    [
        ((2, 5), (5, 5), True),
        ((3, 5), (5, 5), False),
        ((4, 25), (25, 25), True),  # below a fifth of them
        ((5, 25), (25, 25), False),
        ((1, 2), (2, 2), False),  # without losses it would not have three either
        ((2, 2), (2, 2), False),
        ((5, 25), (5, 25), False),  # fewer by design: nothing was lost
        ((9, 2), (9, 9), True),
    ],
)
def test_losses_alone_make_a_task_thin(valid: tuple[int, int], trials: tuple[int, int], *, thin: bool) -> None:
    whole = (trials[1], trials[1])
    found = compare_tasks(["whole", "lossy"], np.array([whole, valid]), np.array([whole, trials]))
    assert (found.thin == ("lossy",)) is thin


def test_where_every_task_is_thin_none_leaves() -> None:
    found = compare_tasks(["a", "b"], np.full((2, 2), 2), np.full((2, 2), 9))
    assert (found.tasks, found.thin) == (("a", "b"), ())


def test_an_answer_counts_the_tasks_and_trials_of_its_decisions(tmp_path: Path) -> None:
    """The bundles of the third arm, and of the treatment since the decision, are gone: "on these 0 tasks … this
    answer took 0 trials" was printed. A halted task's trials were run for the answer too, and are not in it."""
    primary = Primary(treatment="intent_layer", control="none", stop=StopRule(looks=2))
    plan = ledgers.plan([f"task-{n}" for n in range(4)], NAMES, reps=8, primary=primary)

    def fate(trial: Trial) -> Fate | None:
        if trial.block >= 4:
            return None
        passed = Verdict.PASSED if trial.condition == "intent_layer" else Verdict.FAILED
        return Fate(passed if trial.condition != "placebo" else None, losses=(ledgers.MID_RUN,) * 3)

    store = ledgers.write(tmp_path, plan, fate)
    stage = tuple(
        StageCounts(task=f"task-{n}", treatment_passed=4, treatment_valid=4, control_passed=0, control_valid=4)
        for n in range(4)
    )
    result = look_result(primary, 8, [], stage)
    assert result.verdict == "benefit"
    decision = Decision(
        number=1, at=1.0, epoch=1, blocks=4, stage=stage, outcomes="0" * 64, amendments=0, result=result
    )
    ledgers.put(store, "demo/decisions/1.json", decision)
    for tasks in (4, 3):
        if tasks == 3:
            ledgers.put(store, "demo/halts/1.json", Halt(number=1, at=2.0, task="task-3", reason="set-up"))
        report = ledgers.read(store)
        assert report.answer[0].startswith(
            f"On these {tasks} tasks, intent_layer passed more often than none: 100.0%"
        )
        assert ("(decided at look 1 on data since withdrawn)" in report.answer[0]) is (tasks == 3)
        assert any(
            "this answer took 48 trials; the fixed plan would have taken 96" in one for one in report.answer
        )


# --- doses -----------------------------------------------------------------------------------------


def dosed(passed: Floats, doses: tuple[int, ...] = (0, 1, 2)) -> Report:
    fixed = replace(scheme(len(passed), NAMES, reps=passed.shape[2], declared=False), seed=1)
    return report_of(replace(fixed, in_place=TrendPrimary(trend=NAMES, doses=doses)), laid_out(passed))


def test_a_trend_has_the_direction_of_the_mean_rates() -> None:
    """Weighed by trials, passes rise with p = .019, while the mean rates fall: 65 % → 51 % → 39 %."""
    x, n = np.array([[14, 22, 32], *[[3, 20, 1]] * 3]), np.array([[40, 40, 40], *[[4, 40, 4]] * 3])
    by_trials = stratified_trend(x, n, [0, 1, 2])
    assert (round(by_trials.p_value or 0, 3), by_trials.direction) == (0.019, 1)
    alike = stratified_trend(x, n, [0, 1, 2], weights="equal")
    assert alike.direction == -1
    assert alike.mean == pytest.approx(0, abs=0.02 * alike.variance**0.5)  # whole numbers, not exact fractions
    with pytest.raises(ValueError, match="trials at every dose"):
        stratified_trend(x * [1, 1, 0], n * [1, 1, 0], [0, 1, 2], weights="equal")


@pytest.mark.parametrize("doses", [(0, 1, 2), (0, 1, 3), (2, 5, 11)])
def test_with_as_many_trials_everywhere_both_weights_are_one_test(doses: tuple[int, ...]) -> None:
    x, n = [[1, 2, 4], [0, 3, 3], [5, 5, 5], [2, 1, 4]], [[5] * 3] * 4
    one, other = stratified_trend(x, n, doses), stratified_trend(x, n, doses, weights="equal")
    assert (one.p_value, one.attainable_p, one.direction) == (other.p_value, other.attainable_p, other.direction)


def test_a_task_without_one_of_the_doses_leaves_and_a_dose_without_data_is_said() -> None:
    passed = outcomes([2, 2, 2, 9], [5, 5, 5, 9], [9, 9, 9, 9], reps=10)
    passed[3, 1] = NAN
    report = dosed(passed)
    assert "On these 3 tasks" in report.answer[0]
    passed[:, 1] = NAN
    report = dosed(passed)
    assert "On these 4 tasks" in report.answer[0]
    assert "with the dose (0, 2)" in report.answer[0]
    assert "Dose 1 (none) has no valid trial and is in no number." in report.answer[0]


def test_a_rise_that_is_not_steady_is_said_so() -> None:
    passed = outcomes([2] * 4, [1] * 4, [9] * 4, reps=10)
    assert "rose with the dose (0, 1, 2), not steadily: 20.0%" in dosed(passed).answer[0]


def test_lost_runs_that_could_undo_a_trend_are_said() -> None:
    passed = outcomes([4] * 3, [5] * 3, [6] * 3, reps=10)
    passed[:, 2, 6:] = NAN
    report = dosed(passed)
    trend = report.analysis.found
    assert trend is not None
    assert trend.scenarios[0].name == "as_measured"
    assert not trend.robust
    assert "Careful: 12 trials lost their first run. If those had gone the other way" in report.answer[0]


def test_a_forged_pass_counts_as_lost_where_a_trend_s_losses_are_varied() -> None:
    passed = outcomes([4] * 3, [5] * 3, [6] * 3, reps=10)
    forged = np.zeros_like(passed)
    forged[:, 2, 6:] = 1
    fixed = replace(
        scheme(3, NAMES, reps=10, declared=False), seed=1, in_place=TrendPrimary(trend=NAMES, doses=(0, 1, 2))
    )
    report = report_of(fixed, laid_out(passed, forged=forged))
    trend = report.analysis.found
    assert trend is not None
    assert [(one.lost, one.forged) for one in trend.doses] == [(0, 0), (0, 0), (12, 12)]
    assert (
        "Careful: 12 trials lost their first run or were forged. If those had gone the other way"
        in report.answer[0]
    )


def test_the_money_of_a_contrast_is_of_its_own_tasks() -> None:
    """The control lost the dear task: what the treatment spent there is in no ratio."""
    passed = outcomes([8, 8], [4, 4], reps=10)
    cost = np.ones_like(passed)
    cost[1] = 100.0
    passed[1, 1] = NAN
    found = analyse(scheme(2, NAMES[:2], reps=10), laid_out(passed, measures={"cost_usd": cost}))
    assert [one.cost for one in found.costs] == [10.0, 10.0]
    assert found.cost_ratios[0].these_tasks.estimate == pytest.approx(0.5)
