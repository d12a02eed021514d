"""What a report says of a declared question within a margin: the sentence, its tests, and the looks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import ledgers
from tests.support.ledgers import Fate
from tests.support.random_campaigns import report_of
from tests.unit.analysis.columns_fixture import laid_out, scheme
from tests.unit.analysis.report_fixture import on_terminal
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.github import to_github
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.verdict_label import label_verdict
from trialfleet_designs.protocol import SeenAtLook
from trialfleet_designs.question.finding import find_side_beyond
from trialfleet_designs.registry import find_design
from trialfleet_ledger.designs.looks import Decision, StageCounts, StopRule
from trialfleet_ledger.designs.question import QuestionPrimary
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_statistics.comparisons import equivalence

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
    ratio: float | None = None,
) -> Report:
    """Conditions pass at these rates, evenly over the blocks and alike in each task. `lost`: first runs of the
    treatment in each task; `ratio`: of its cost to the control's, None: not known."""
    plan = ledgers.plan(TASKS, NAMES, reps=REPS).model_copy(update={"registered": declared})
    store = ledgers.write(folder, plan, lambda trial: _fate(trial, passes, blocks, lost, ratio))
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


def _fate(trial: Trial, passes: Mapping[str, float], blocks: int, lost: int, ratio: float | None) -> Fate | None:
    if trial.block >= blocks:
        return None
    if trial.condition == "intent_layer" and trial.block < lost:
        return Fate(verdict=None, losses=(ledgers.MID_RUN,) * 3)
    verdict = Verdict.PASSED if _passed(passes[trial.condition], trial.block) else Verdict.FAILED
    if ratio is None:
        return Fate(verdict)
    dear = ratio if trial.condition == "intent_layer" else 1
    return Fate(verdict, metrics=Metrics(cost_usd=dear * (1 + trial.block % 5 / 10)))


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


BY_MARGIN = {"not_worse": "Worse than the margin", "equivalent": "Differs by more than the margin"}


@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize(
    ("asked", "rates", "side"),
    [
        ("not_worse", (0.9, 0.4), "lower"),
        ("equivalent", (0.9, 0.4), "lower"),
        ("equivalent", (0.4, 0.9), "higher"),
    ],
)
def test_a_difference_beyond_the_margin_is_a_no_and_not_undecided(
    tmp_path: Path, asked: str, rates: tuple[float, float], side: str, *, looked: bool
) -> None:
    rule = StopRule(looks=(5, 10, 20), futility="none") if looked else None
    declared = NOT_WORSE.model_copy(update={"question": asked, "stop": rule})
    report = reported(tmp_path, declared, dict(zip(NAMES, rates, strict=True)))
    assert report.decision == "not_shown"
    assert f"By its interval, the pass rate of intent_layer is {side} by more than the margin." in report.answer
    assert label_verdict(report) == BY_MARGIN[asked]
    step = report.next_step or ""
    assert "larger campaign" not in step
    assert step.startswith("This question is answered")


@pytest.mark.parametrize(
    ("rates", "ratio", "label"),
    [((0.9, 0.4), 1.5, "Worse than the margin"), ((0.9, 0.9), 1.5, "Cost more"), ((0.9, 0.9), 1.0, "Undecided")],
)
def test_either_part_of_cheaper_and_not_worse_may_be_a_no(
    tmp_path: Path, rates: tuple[float, float], ratio: float, label: str
) -> None:
    declared = NOT_WORSE.model_copy(update={"question": "cheaper_and_not_worse"})
    report = reported(tmp_path, declared, dict(zip(NAMES, rates, strict=True)), ratio=ratio)
    assert (report.decision, label_verdict(report)) == ("not_shown", label)
    said = " ".join(report.answer)
    assert ("The test of the other side says that intent_layer cost more than none, p" in said) == (ratio > 1)
    assert ("lower by more than the margin" in said) == (label == "Worse than the margin")
    answered = (report.next_step or "").startswith("This question is answered")
    assert answered == (label != "Undecided")


def test_every_p_of_a_joint_question_that_still_runs_is_named_as_not_valid(tmp_path: Path) -> None:
    declared = NOT_WORSE.model_copy(update={"question": "cheaper_and_not_worse"})
    report = reported(tmp_path, declared, {"none": 0.9, "intent_layer": 0.9}, blocks=REPS - 1, ratio=1.5)
    said = " ".join(report.answer)
    assert "The test of the other side says that intent_layer cost more than none, p < 0.0001, not valid" in said
    assert said.count("p = ") + said.count("p < ") + said.count("p > ") == said.count(
        ", not valid under monitoring"
    )


def test_a_joint_question_says_that_passes_were_forged() -> None:
    passed = np.array([[[1] * 17 + [0] * 3, [1] * 18 + [0] * 2]] * 4, dtype=float)
    forged, cost = np.zeros_like(passed), np.ones_like(passed) * np.array([0.5, 1])[:, None]
    forged[:3, 0, :1], passed[:3, 0, :1] = 1, 0
    declared = NOT_WORSE.model_copy(update={"question": "cheaper_and_not_worse", "margin": 0.17})
    fixed = replace(scheme(4, NAMES[::-1], reps=20, declared=False), in_place=declared)
    report = report_of(fixed, laid_out(passed, measures={"cost_usd": cost}, forged=forged))
    assert "Careful: 3 trials lost their first run or were forged. If those had gone" in report.answer[0]


def test_a_better_rate_is_no_difference_that_not_worse_excludes(tmp_path: Path) -> None:
    report = reported(tmp_path, NOT_WORSE, {"none": 0.4, "intent_layer": 0.9})
    assert (report.decision, label_verdict(report)) == ("shown", "Shown")
    assert find_side_beyond("not_worse", report.analysis.found.interval, 0.1) == 0
    assert find_side_beyond("equivalent", report.analysis.found.interval, 0.1) == 1


def test_a_harm_that_lost_runs_could_undo_is_not_robust(tmp_path: Path) -> None:
    report = reported(tmp_path, NOT_WORSE, {"none": 0.8, "intent_layer": 0.5}, lost=6)
    assert label_verdict(report) == "Worse than the margin"
    assert {one.shown for one in report.analysis.found.scenarios} == {False}
    assert "Careful: 24 trials lost their first run. If those had gone the other way" in report.answer[0]
    assert "lost runs could change it" in (report.next_step or "")


@given(passed=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=4))
def test_an_interval_beyond_the_margin_is_the_other_sides_test(passed: list[tuple[int, int]]) -> None:
    """Beyond −margin at level 1 − 2α: the one-sided test that the difference is at least −margin rejects."""
    a, b = np.array(passed).T
    n = np.full(a.size, 12)
    found = equivalence(a, n, b, n, margin=0.1)
    mirrored = equivalence(b, n, a, n, margin=0.1)
    assert found.interval is not None
    assert mirrored.interval is not None
    side = find_side_beyond("equivalent", found.interval, 0.1)
    assert side == -find_side_beyond("equivalent", mirrored.interval, 0.1)
    if side and found.p_value is not None:
        assert found.p_value > 0.5


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
    assert re.fullmatch(r"No answer yet: the first planned look is after block \d+ of \d+\.", report.answer[0])


def test_lost_runs_can_undo_it(tmp_path: Path) -> None:
    report = reported(tmp_path, NOT_WORSE, {"none": 0.9, "intent_layer": 0.95}, lost=6)
    assert report.decision == "shown"
    assert "Careful: 24 trials lost their first run. If those had gone the other way" in report.answer[0]


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
