"""What a report says of a declared metric: the sentence, its sides, the looks, and what lost runs could change."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import ledgers
from tests.support.ledgers import Fate
from tests.unit.analysis.report_fixture import on_terminal
from trialfleet_analysis.commands.power import power
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.github import to_github
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_designs.protocol import SeenAtLook
from trialfleet_designs.registry import find_design
from trialfleet_ledger.designs.looks import Decision, StageCounts, StopRule
from trialfleet_ledger.designs.metric import MetricPrimary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict

NAMES = ("none", "intent_layer")
TASKS = tuple(f"task-{n}" for n in range(4))
REPS = 12
COST = MetricPrimary(metric="cost_usd", treatment="intent_layer", control="none")
MEANS = COST.model_copy(update={"scale": "difference"})
LOOKED = COST.model_copy(update={"stop": StopRule(looks=(4, 8, 12))})


def reported(
    folder: Path,
    declared: MetricPrimary,
    ratio: float,
    *,
    lost: int = 0,
    unknown: int = 0,
    spread: float = 0.2,
    cached: float | None = None,
    looks: int | None = None,
) -> Report:
    """The treatment costs `ratio` times the control. `lost`: first runs of the treatment in each task; `unknown`:
    runs of the control that left no cost; `cached`: what the control's cost is at uncached prices, times; the
    treatment's is the same; `looks`: after so many nothing more has run."""
    plan = ledgers.plan(TASKS, NAMES, reps=REPS).model_copy(update={"registered": declared})

    def fate(trial: Trial) -> Fate:
        if trial.condition == "intent_layer" and trial.block < lost:
            return Fate(verdict=None, losses=(ledgers.MID_RUN,) * 3)
        cost = cost_of(trial.task, trial.condition, trial.block)
        known = None if trial.condition == "none" and trial.block < unknown else cost
        share = cached if trial.condition == "none" or cached is None else 1.0
        uncached = None if known is None or share is None else known * share
        metrics = Metrics(cost_usd=known, uncached_cost_usd=uncached)
        return Fate(Verdict.PASSED if trial.block % 2 else Verdict.FAILED, metrics=metrics)

    def cost_of(task: str, condition: str, block: int) -> float:
        place = (
            5 * block + (3 if condition == "none" else 0)
        ) % REPS  # the same values in both arms, in another order
        draw = spread * NormalDist().inv_cdf((place + 0.5) / REPS)
        dear = 1 + int(task.removeprefix("task-"))
        return round(dear * (ratio if condition == "intent_layer" else 1) * math.exp(draw), 6)

    def counted(task: str, first: int, last: int) -> StageCounts:
        values = {name: tuple(cost_of(task, name, block) for block in range(first, last)) for name in NAMES}
        passes = sum(block % 2 for block in range(first, last))
        return StageCounts(
            task=task,
            treatment_passed=passes,
            treatment_valid=last - first,
            control_passed=passes,
            control_valid=last - first,
            treatment_values=values["intent_layer"],
            control_values=values["none"],
        )

    taken: list[Decision] = []
    for block in declared.schedule.blocks_at(REPS, REPS, ()) if declared.schedule is not None else ():
        stage = tuple(counted(task, taken[-1].blocks if taken else 0, block) for task in TASKS)
        result = find_design(declared).decide(declared, SeenAtLook(REPS, taken, stage, (), NAMES, plan.seed))
        taken.append(
            Decision(
                number=len(taken) + 1,
                at=1.0,
                epoch=1,
                blocks=block,
                stage=stage,
                outcomes="0" * 64,
                amendments=0,
                result=result,
            )
        )
        if taken[-1].stops or len(taken) == looks:
            break
    stop = taken[-1].blocks if taken and (taken[-1].stops or len(taken) == looks) else REPS
    store = ledgers.write(folder, plan, lambda trial: fate(trial) if trial.block < stop else None)
    for decision in taken:
        ledgers.put(store, f"{plan.campaign}/decisions/{decision.number}.json", decision)
    return ledgers.read(store)


def test_a_metric_that_is_lower(tmp_path: Path) -> None:
    report = reported(tmp_path, COST, 0.8)
    assert report.decision == "less"
    first, second, third = report.answer
    assert first.startswith(
        "On these 4 tasks, intent_layer cost less than none: ×0.80 in a typical task (95% interval ×0.7"
    )
    assert first.endswith("permutation test.")
    assert "50.0% against 50.0% passed." in second
    assert third.startswith("This answer took 96 trials and $")


def test_nothing_shown_is_no_claim_of_equal_cost(tmp_path: Path) -> None:
    report = reported(tmp_path, COST, 1.0, spread=0.6)
    assert report.decision == "not_shown"
    assert report.answer[0].startswith(
        "On these 4 tasks, no difference in cost was shown between intent_layer and none: ×"
    )


def test_a_look_decides_and_the_report_computes_the_same_p(tmp_path: Path) -> None:
    report = reported(tmp_path, LOOKED, 0.5)
    found = report.analysis.found
    assert (report.decision, report.state, found.taken[-1].number) == ("less", "decided", 1)
    assert found.p_value == found.taken[-1].result.p_value
    assert "at declared looks" in report.answer[0]
    assert "stopped at look 1 of 3; the plan would have taken 96 trials." in report.answer[-1]


def test_a_look_that_did_not_stop_shows_nothing(tmp_path: Path) -> None:
    """Its stage-wise p is one only where the campaign ends there; at every look the sequential one holds."""
    near = 0
    for number, ratio in enumerate((0.86, 0.88, 0.9, 0.92, 1.0)):
        report = reported(tmp_path / str(number), LOOKED, ratio, looks=1)
        found = report.analysis.found
        at_look = found.taken[0].result
        assert (at_look.verdict, found.ended) == ("continue", None), ratio
        near += at_look.p_value < 0.05
        assert found.p_value > 0.05
        assert not found.shown
        assert found.size.low < 1 < found.size.high
        assert report.decision == "not_shown"
        assert "no difference in cost was shown" in report.answer[0]
    assert near, "the case that was reported as shown"


def test_a_look_gives_up_with_repeated_limits(tmp_path: Path) -> None:
    looked = COST.model_copy(update={"stop": StopRule(looks=(4, 8, 12), futility={"predictive": 0.9})})
    report = reported(tmp_path, looked, 1.0, spread=0.6)
    assert (report.decision, report.state) == ("not_shown", "decided")
    assert "stopped: to show a difference by the end had become improbable" in report.answer[0]
    found = report.analysis.found
    assert found.size.low < 1 < found.size.high


def test_a_difference_of_means_is_in_dollars_and_asymptotic(tmp_path: Path) -> None:
    report = reported(tmp_path, MEANS, 0.8, unknown=2)
    found = report.analysis.found
    assert report.decision == "less"
    assert report.answer[0].startswith(
        "On these 4 tasks, intent_layer cost less than none: −$0.45 a trial on average (95% interval −$0."
    ), report.answer[0]
    assert report.answer[0].endswith("studentised permutation test, asymptotic.")
    assert found.treatment.mean - found.control.mean == pytest.approx(found.size.estimate)
    assert (found.treatment.trials, found.control.trials) == (40, 40), "pairs of a block, or none"
    assert "16 valid trials left no value, or have none to compare with in their block" in report.answer[1]


@pytest.mark.parametrize("declared", [COST, LOOKED, MEANS])
def test_what_the_cache_saves_does_not_pass_for_the_condition_s(tmp_path: Path, declared: MetricPrimary) -> None:
    """The treatment paid for what the control then read: at uncached prices it is the cheaper one."""
    report = reported(tmp_path, declared, 1.5, cached=2.0)
    uncached = report.analysis.found.uncached
    assert report.decision == "more"
    said = next(one for one in report.answer if one.startswith("At uncached prices: "))
    if declared.scale == "ratio":
        assert uncached.estimate == pytest.approx(0.75, rel=0.02)
        assert said.startswith("At uncached prices: ×0.7")
    else:
        assert uncached.high < 0
        assert said.startswith("At uncached prices: −$1.")


def test_without_a_cache_nothing_is_said_of_one(tmp_path: Path) -> None:
    for name, cached in (("unknown", None), ("unused", 1.0)):
        report = reported(tmp_path / name, COST, 0.8, cached=cached)
        assert report.analysis.found.uncached is None
        assert "uncached" not in " ".join(report.answer)


def test_what_left_no_cost_is_counted_and_lost_runs_are_bounded(tmp_path: Path) -> None:
    report = reported(tmp_path, COST, 0.85, lost=3, unknown=2)
    assert "8 valid trials left no value" in report.answer[1]
    found = report.analysis.found
    assert [one.name for one in found.scenarios] == [
        "as_measured",
        "complete_case",
        "treatment_low",
        "treatment_high",
    ]
    ratios = {one.name: one.size for one in found.scenarios}
    assert ratios["treatment_low"] < ratios["complete_case"] < ratios["treatment_high"]
    assert "Careful: 12 trials lost their first run. If those had gone the other way" in report.answer[0]


@pytest.mark.parametrize("declared", [COST, LOOKED, MEANS])
def test_every_format_says_the_same(tmp_path: Path, declared: MetricPrimary) -> None:
    report = reported(tmp_path, declared, 0.9)
    assert json.loads(to_json(report))["answer"] == list(report.answer)
    for text in (to_markdown(report), to_github(report), on_terminal(report)):
        said = " ".join(text.split()).replace("\\_", "_").replace("\\<", "<").replace("&lt;", "<")
        assert report.answer[0] in said
    assert "The test of the metric" in to_html(report)


def test_a_pilot_gives_the_spread_that_another_campaign_plans_with(tmp_path: Path) -> None:
    """The pilot's own report prints the same; what the operator states stands above it."""
    report = reported(tmp_path, COST, 0.8)
    pilot = str(tmp_path / "demo")

    def told(*more: str) -> dict[str, Any]:
        asked = [pilot, "--pilot", pilot, "--from", "0.5", "--simulations", "100", *more, "--json"]
        ran = CliRunner().invoke(power, asked, catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        found: dict[str, Any] = json.loads(ran.output)
        return found

    found, spread = told(), report.analysis.found.control.spread
    assert (found["origin"], found["cv"]) == ("pilot", found["pilot"]["variation"]["cost_usd"])
    assert found["cv"] == pytest.approx(spread, rel=1e-3), "both sides have the same"
    stated = told("--cv", "0.9")
    assert (stated["origin"], stated["cv"]) == ("given", 0.9)


def test_a_variation_that_nothing_depends_on_is_refused(tmp_path: Path) -> None:
    ledgers.write(tmp_path, ledgers.plan(TASKS, NAMES, reps=2), lambda _: Fate())
    with pytest.raises(OperatorError, match="has no effect on a plan for a campaign"):
        CliRunner().invoke(power, [str(tmp_path / "demo"), "--cv", "0.9"], catch_exceptions=False)
