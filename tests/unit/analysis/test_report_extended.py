"""The answer of a campaign that was given more reps after results were seen."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support import ledgers
from tests.support.ledgers import Fate
from tests.unit.analysis.columns_fixture import laid_out, scheme
from trialfleet_analysis.analysis_plan.analyse import Analysis, analyse
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_designs.trend.answer import trend_answer
from trialfleet_ledger.conditions import Condition, ConditionDoses, InlineDoses
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_ledger.records.directives import Amendment
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_statistics.estimates import Estimand, Floats

NOT_VALID = "its p is not valid: reps were added after results were seen"
TASKS = tuple(f"task-{n}" for n in range(6))


def extended(
    folder: Path, rates: dict[str, float], *, estimand: Estimand = "these_tasks", after_look: bool = True
) -> Report:
    """Four reps were planned, and three added."""
    primary = Primary(treatment="intent_layer", control="none", estimand=estimand)
    plan = ledgers.plan(TASKS, tuple(rates), reps=4, primary=primary)

    def fate(trial: Trial) -> Fate:
        passed = random.Random(f"{trial.condition}/{trial.task}/{trial.block}").random() < rates[trial.condition]
        return Fate(Verdict.PASSED if passed else Verdict.FAILED)

    store = ledgers.write(folder, plan, fate, reps=7)
    ledgers.put(store, "demo/amendments/1.json", Amendment(number=1, at=2.0, reps=7, after_look=after_look))
    return ledgers.read(store)


@pytest.mark.parametrize("rates", [{"none": 0.1, "intent_layer": 0.9}, {"none": 0.5, "intent_layer": 0.5}])
def test_the_first_sentence_says_that_its_p_is_not_valid_and_gives_one_that_is(
    rates: dict[str, float], tmp_path: Path
) -> None:
    report = extended(tmp_path, rates)
    assert report.headline is not None
    found, test = report.analysis.extended, report.headline.these_tasks.test
    assert found is not None
    assert found.p_value is not None
    assert test.p_value is not None
    assert found.p_value > test.p_value
    assert f"({NOT_VALID}; valid at any look: p " in report.answer[0]
    assert report.answer[0].endswith(", by bets on pairs).")
    assert "not valid: reps were added after results were seen" in to_markdown(report)


def analysis_of(passed: Floats) -> Analysis:
    """Of two arms, shape (tasks, 2, reps): four reps were planned."""
    tasks, _, reps = passed.shape
    return analyse(replace(scheme(tasks, reps=reps), planned_reps=4), laid_out(passed))


def test_bets_weigh_every_task_alike_whatever_it_lost() -> None:
    """Half of the tasks gain, half lose as much. The treatment lost most runs of the former: pooled pairs favour
    the control with p < .0001."""
    passed = np.zeros((8, 2, 14))
    passed[:4, 0], passed[4:, 1] = 1, 1
    passed[:4, 0, 4:] = np.nan
    found = analysis_of(passed)
    assert found.extended is not None
    assert found.extended.p_value == 1.0
    assert found.extended.difference.estimate == 0


def test_a_task_that_is_not_compared_keeps_no_bet_open() -> None:
    passed = np.zeros((6, 2, 8))
    passed[:, 0] = 1
    without = analysis_of(passed[:5])
    passed[5, 1] = np.nan
    found = analysis_of(passed)
    assert without.extended is not None
    assert without.extended.p_value is not None
    assert without.extended.p_value < 0.01
    assert found.extended == without.extended


def test_tasks_like_these_have_no_such_answer(tmp_path: Path) -> None:
    report = extended(tmp_path, {"none": 0.1, "intent_layer": 0.9}, estimand="tasks_like_these")
    assert report.answer[0].endswith(f"({NOT_VALID}).")


def test_reps_that_were_added_before_any_result_was_seen_change_nothing(tmp_path: Path) -> None:
    report = extended(tmp_path, {"none": 0.1, "intent_layer": 0.9}, after_look=False)
    assert "not valid" not in " ".join(report.answer)


def test_a_trend_says_it_too(tmp_path: Path) -> None:
    doses = ConditionDoses(inline=InlineDoses(source="nearest", max_tokens=(300, 700))).named("preamble")
    plan = ledgers.plan(TASKS, {"none": Condition(), **doses}, reps=2)
    names = ("none", "preamble_300", "preamble_700")
    plan = plan.model_copy(update={"trend": TrendPrimary(trend=names, doses=(0, 1, 2))})
    store = ledgers.write(
        tmp_path, plan, lambda t: Fate(Verdict.PASSED if t.condition != "none" else Verdict.FAILED), reps=3
    )
    ledgers.put(store, "demo/amendments/1.json", Amendment(number=1, at=2.0, reps=3, after_look=True))
    first = ledgers.read(store).answer[0]
    assert first.endswith(f"({NOT_VALID}).")
    assert first.count(". ") == 0


def test_the_sentence_of_a_trend_s_decision_says_it_and_not_the_one_on_losses() -> None:
    passed = np.zeros((3, 3, 10))
    passed[:, 0, :4], passed[:, 1, :5], passed[:, 2, :6], passed[:, 2, 6:] = 1, 1, 1, np.nan
    fixed = replace(scheme(3, ("none", "low", "high"), reps=10, declared=False), seed=1)
    fixed = replace(fixed, in_place=TrendPrimary(trend=fixed.conditions, doses=(0, 1, 2)))
    trend = analyse(fixed, laid_out(passed)).found
    assert trend is not None
    assert not trend.robust
    first = trend_answer(trend, NOT_VALID)[0]
    assert first.partition(". ")[0].endswith(f"({NOT_VALID})")
    assert "Careful: 12 trials lost their first run. If those had gone the other way" in first
