"""What a report says of a declared question within a margin: the sentence, its tests, and the looks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import ledgers
from tests.support.ledgers import Fate
from tests.unit.analysis.report_fixture import on_terminal
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.github import to_github
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_designs.protocol import SeenAtLook
from trialfleet_designs.registry import find_design
from trialfleet_ledger.designs.looks import Decision, StageCounts, StopRule
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict

NAMES = ("none", "intent_layer")
TASKS = tuple(f"task-{n}" for n in range(4))
REPS = 20
NOT_WORSE = QuestionPrimary(question="not_worse", treatment="intent_layer", control="none", margin=0.1)
EQUIVALENT = NOT_WORSE.model_copy(update={"question": "equivalent", "margin": 0.2})
LOOKED = NOT_WORSE.model_copy(update={"stop": StopRule(looks=(5, 10, 20))})


def reported(
    folder: Path,
    declared: QuestionPrimary,
    passes: Mapping[str, float],
    *,
    blocks: int = REPS,
    lost: int = 0,
) -> Report:
    """Conditions pass at these rates, evenly over the blocks and alike in each task. `lost`: first runs of the
    treatment in each task."""
    plan = ledgers.plan(TASKS, NAMES, reps=REPS).model_copy(update={"registered": declared})
    store = ledgers.write(folder, plan, lambda trial: _fate(trial, passes, blocks, lost))
    if declared.schedule is None:
        return ledgers.read(store)
    taken: list[Decision] = []
    for block in declared.schedule.blocks_at(REPS, REPS, ()):
        if block > blocks:
            break
        first = taken[-1].blocks if taken else 0
        stage = tuple(_counted(task, passes, first, block, lost) for task in TASKS)
        result = find_design(declared).decide(declared, SeenAtLook(REPS, taken, stage, (), NAMES))
        decision = Decision(
            number=len(taken) + 1,
            at=1.0,
            epoch=1,
            blocks=block,
            stage=stage,
            outcomes="0" * 64,
            amendments=0,
            result=result,
        )
        ledgers.put(store, f"{plan.campaign}/decisions/{decision.number}.json", decision)
        taken.append(decision)
        if decision.stops:
            break
    return ledgers.read(store)


def _fate(trial: Trial, passes: Mapping[str, float], blocks: int, lost: int) -> Fate | None:
    if trial.block >= blocks:
        return None
    if trial.condition == "intent_layer" and trial.block < lost:
        return Fate(verdict=None, losses=(ledgers.MID_RUN,) * 3)
    return Fate(Verdict.PASSED if _passed(passes[trial.condition], trial.block) else Verdict.FAILED)


def _passed(rate: float, block: int) -> bool:
    return int((block + 1) * rate + 1e-9) > int(block * rate + 1e-9)


def _counted(task: str, passes: Mapping[str, float], first: int, last: int, lost: int) -> StageCounts:
    """What `_fate` gives in the blocks from `first` to before `last`."""
    begins = {"none": first, "intent_layer": max(first, lost)}
    of = {name: [_passed(passes[name], block) for block in range(begins[name], last)] for name in NAMES}
    return StageCounts(
        task=task,
        treatment_passed=sum(of["intent_layer"]),
        treatment_valid=len(of["intent_layer"]),
        control_passed=sum(of["none"]),
        control_valid=len(of["none"]),
    )


def test_not_worse(tmp_path: Path) -> None:
    report = reported(tmp_path, NOT_WORSE, {"none": 0.9, "intent_layer": 0.95})
    assert report.decision == "shown"
    assert report.answer == (
        "On these 4 tasks, the pass rate of intent_layer is at most 10 points below that of none: 95.0% against "
        "90.0%, a difference of +5.0 points (90% interval −2.1 to +12.7), p = 0.0011, one-sided test at 5%.",
        "This answer took 160 trials.",
    )


def test_a_harm_is_said_although_it_was_not_asked_for(tmp_path: Path) -> None:
    report = reported(tmp_path, NOT_WORSE, {"none": 0.8, "intent_layer": 0.5})
    assert report.decision == "not_shown"
    assert report.answer[0].startswith("On these 4 tasks, it was not shown that the pass rate of intent_layer is")
    assert report.answer[1] == "By its interval, the pass rate of intent_layer is lower by more than the margin."


def test_equivalent_needs_both_sides(tmp_path: Path) -> None:
    within = reported(tmp_path / "a", EQUIVALENT, {"none": 0.8, "intent_layer": 0.8})
    assert within.decision == "shown"
    assert "two one-sided tests, each at 5%" in within.answer[0]
    above = reported(tmp_path / "b", EQUIVALENT, {"none": 0.5, "intent_layer": 0.8})
    assert above.decision == "not_shown"
    assert above.analysis.found.p_lower < 0.001 < above.analysis.found.p_upper


def test_a_look_ends_the_campaign_where_it_is_shown(tmp_path: Path) -> None:
    report = reported(tmp_path, LOOKED, {"none": 0.7, "intent_layer": 1.0}, blocks=5)
    assert (report.decision, report.state) == ("shown", "decided")
    assert report.answer[-1] == (
        "This answer took 40 trials, stopped at look 1 of 3; the plan would have taken 160 trials."
    )
    assert "at declared looks" in report.answer[0]


def test_a_look_gives_up_what_has_become_improbable(tmp_path: Path) -> None:
    report = reported(tmp_path, LOOKED, {"none": 0.9, "intent_layer": 0.4}, blocks=5)
    assert (report.decision, report.state) == ("not_shown", "decided")
    assert "stopped: to show it by the end had become improbable" in report.answer[0]
    assert "so far" not in report.answer[0]


def test_before_a_look_there_is_no_answer(tmp_path: Path) -> None:
    report = reported(tmp_path, LOOKED, {"none": 0.9, "intent_layer": 0.9}, blocks=3)
    assert report.decision == "undefined"
    assert report.answer[0] == ("The declared question has no answer yet: no declared look has been taken yet.")


def test_lost_runs_can_undo_it(tmp_path: Path) -> None:
    report = reported(tmp_path, NOT_WORSE, {"none": 0.9, "intent_layer": 0.95}, lost=6)
    assert report.decision == "shown"
    assert "Not robust to the 24 lost first runs." in report.answer[0]


@pytest.mark.parametrize("declared", [NOT_WORSE, EQUIVALENT, LOOKED])
def test_every_format_says_the_same(tmp_path: Path, declared: QuestionPrimary) -> None:
    report = reported(tmp_path, declared, {"none": 0.9, "intent_layer": 0.95}, lost=1)
    document = json.loads(to_json(report))
    assert document["answer"] == list(report.answer)
    for text in (to_markdown(report), to_github(report), on_terminal(report)):
        said = " ".join(text.split()).replace("\\_", "_").replace("\\<", "<").replace("&lt;", "<")
        assert report.answer[0] in said
    page = to_html(report)
    assert "The tests within the margin" in page
    assert "The question on first runs" in page
