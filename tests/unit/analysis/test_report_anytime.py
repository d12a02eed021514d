"""What a report says of a campaign without a fixed end."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import ledgers
from tests.support.ledgers import Fate
from tests.unit.analysis.report_fixture import on_terminal
from trialfleet_analysis.report.assemble import worded
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_designs.monitoring import look_result
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import AnytimeRule, Decision, StageCounts
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.directives import Amendment
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_statistics.sequential import Bets, Pairs, confidence_sequence

TASKS = tuple(f"task-{i}" for i in range(7))
CLEAR = {"none": 0.1, "intent_layer": 0.95}
SAME = {"none": 0.5, "intent_layer": 0.5}
ZERO = "0" * 64
Outcome = Callable[[Trial], Fate | None]


def campaign(
    folder: Path, passes: Mapping[str, float], *, blocks: int, looks: int, reps: int = 6, lost: int = 0
) -> DirectoryStore:
    """`blocks` are over, `looks` of them were looked at; `lost`: control trials of block 0 without a verdict."""
    primary = Primary(treatment="intent_layer", control="none", effect=0.3, stop=AnytimeRule(anytime="half"))
    plan = ledgers.plan(TASKS, tuple(passes), reps=6, primary=primary)
    gone = {f"task-{i}" for i in range(lost)}

    def fate(trial: Trial) -> Fate | None:
        if trial.block >= blocks:
            return None
        if trial.block == 0 and trial.condition == "none" and trial.task in gone:
            return Fate(None, losses=(ledgers.MID_RUN,))
        passed = random.Random(f"{trial.condition}/{trial.task}/{trial.block}").random() < passes[trial.condition]
        return Fate(Verdict.PASSED if passed else Verdict.FAILED, metrics=Metrics(cost_usd=0.5))

    store = ledgers.write(folder, plan, fate, reps=reps)
    _decide(store, plan, fate, looks)
    return store


def _decide(store: DirectoryStore, plan: Plan, fate: Outcome, looks: int) -> None:
    assert plan.primary is not None
    taken: list[Decision] = []
    for block in range(looks):
        stage = tuple(_counts(plan, fate, task, block) for task in TASKS)
        result = look_result(plan.primary, plan.reps, taken, stage)
        decision = Decision(
            number=block + 1,
            at=1.0,
            epoch=1,
            blocks=block + 1,
            stage=stage,
            outcomes=ZERO,
            amendments=0,
            result=result,
        )
        ledgers.put(store, f"{plan.campaign}/decisions/{block + 1}.json", decision)
        taken.append(decision)


def _counts(plan: Plan, fate: Outcome, task: str, block: int) -> StageCounts:
    of: dict[str, list[bool]] = {"intent_layer": [], "none": []}
    for trial in ledgers.trials(plan):
        found = fate(trial) if (trial.task, trial.block) == (task, block) and trial.condition in of else None
        if found is not None and found.verdict is not None:
            of[trial.condition].append(found.verdict is Verdict.PASSED)
    treated, control = of["intent_layer"], of["none"]
    return StageCounts(
        task=task,
        treatment_passed=sum(treated),
        treatment_valid=len(treated),
        control_passed=sum(control),
        control_valid=len(control),
    )


def test_a_campaign_that_its_bets_ended(tmp_path: Path) -> None:
    """Three blocks were over when the second one's look decided: the third is in no number of the answer."""
    report = ledgers.read(campaign(tmp_path, CLEAR, blocks=3, looks=2))
    anytime = report.analysis.found
    assert anytime is not None
    assert report.headline is not None
    assert report.decision == "more"
    assert report.answer[0].startswith("On these 7 tasks, intent_layer passed more often than none")
    assert "not valid under monitoring" not in report.answer[0]
    assert report.answer[-1] == "Stopped for benefit after 2 blocks: this answer took 28 trials and $14.00."
    assert report.progress.after_decision == 14
    last = anytime.taken[-1]
    pairs, bets = Pairs(last.won, last.lost, last.equal), Bets.half(0.3)
    assert last.won + last.lost + last.equal == 14
    test, difference = report.headline.these_tasks.test, report.headline.these_tasks.difference
    assert test.p_value == anytime.p_value == pytest.approx(math.exp(-bets.log_evidence(pairs)))
    alone = confidence_sequence(pairs, bets)
    assert difference.estimate == alone.estimate == (last.won - last.lost) / 14
    assert alone.low is not None
    assert difference.low is not None
    assert difference.low >= alone.low > 0
    rates = (report.headline.treatment_rate or 0) - (report.headline.control_rate or 0)
    assert rates == pytest.approx(difference.estimate)
    assert report.headline.these_tasks.agrees
    assert report.headline.these_tasks.odds_ratio.low is None
    assert {one.estimand for one in report.analysis.robustness} <= {"tasks_like_these"}
    assert report.cautions[0].startswith("A block's bets ended the campaign")


def test_before_the_first_block_there_is_no_p(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, CLEAR, blocks=1, looks=0))
    assert report.decision == "undefined"
    assert report.answer[0].endswith("no complete block has been looked at yet.")
    assert (report.next_step or "").startswith("Wait ")
    finished = worded(replace(report, progress=replace(report.progress, interim=False)))
    assert finished.next_step is None, "all its trials are over, and no bet was settled"


def test_tasks_that_always_passed_or_failed_did_so_in_what_was_looked_at(tmp_path: Path) -> None:
    rare = {"none": 0.05, "intent_layer": 0.2}
    looked, later = (
        ledgers.read(campaign(tmp_path / str(blocks), rare, blocks=blocks, looks=2)) for blocks in (2, 5)
    )
    assert looked.headline is not None
    assert later.headline is not None
    then, now = looked.headline.these_tasks, later.headline.these_tasks
    assert (now.strata, now.informative, now.test.n_informative) == (
        then.strata,
        then.informative,
        then.informative,
    )


def test_while_nothing_is_decided_p_and_limits_hold_as_they_stand(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, {**SAME, "flat_llm": 0.5}, blocks=4, looks=4))
    assert report.headline is not None
    assert report.decision == "not_shown"
    assert report.answer[0].startswith("No difference was shown so far between intent_layer and none")
    assert "notice a true difference" not in " ".join(report.answer)  # that is of another test
    assert not any(one.startswith("Stopped") for one in report.answer)
    assert any("no p-value but those of contrasts on these tasks is valid" in one for one in report.cautions)
    second = next(one for one in report.analysis.contrasts if one.role == "secondary").these_tasks
    assert second.test.method == "bets on discordant pairs, valid at any look"
    assert second.difference.method == "confidence_sequence"
    assert second.test.p_value is not None
    assert 0 < second.test.p_value <= 1


def test_reps_that_were_added_are_valid_and_said(tmp_path: Path) -> None:
    store = campaign(tmp_path, SAME, blocks=8, looks=8, reps=8)
    ledgers.put(store, "demo/amendments/1.json", Amendment(number=1, at=2.0, reps=8, after_look=True))
    report = ledgers.read(store)
    assert report.analysis.found is not None
    assert report.analysis.found.taken[-1].blocks == 8
    assert any("except for those of contrasts on these tasks" in caution for caution in report.cautions)


def test_a_pair_with_a_lost_trial_is_left_out_and_said(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, SAME, blocks=2, looks=2, lost=2))
    anytime = report.analysis.found
    assert anytime is not None
    assert anytime.broken == 2
    assert "2 pairs lost a trial: blocks are then settled together" in to_markdown(report)
    assert report.answer[0].endswith("since trials were lost, that takes a complete pair of every task.")


@pytest.mark.parametrize("render", [to_html, to_markdown, on_terminal])
def test_every_format_shows_the_bets(tmp_path: Path, render: Callable[[Report], str]) -> None:
    shown = render(ledgers.read(campaign(tmp_path, CLEAR, blocks=3, looks=2))).replace("\n", " ")
    assert "Stopped for benefit after 2 blocks" in shown
    if render is not on_terminal:
        assert "Treatment alone passed" in shown
        assert "14 trials of later blocks ended after the decision" in shown
    if render is to_html:
        assert "what the bets have won after each of 2 blocks" in shown
