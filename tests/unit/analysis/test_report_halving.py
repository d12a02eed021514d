"""What a report says of a campaign that halved its four treatments: its sentences, tests, tables and warnings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support import ledgers
from tests.support.ledgers import Fate
from tests.unit.analysis.report_fixture import on_terminal
from trialfleet_analysis.combining.make import make_combination
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.make import make_report
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.methods_text import methods_text
from trialfleet_analysis.source import CampaignSource
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.halving import halved
from trialfleet_ledger.designs.looks import Decision
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_statistics.comparisons import stratified_exact

TASKS = tuple(f"task-{i}" for i in range(4))
CONDITIONS = ("none", "flat_llm", "intent_layer", "placebo", "preamble_only")
OUT = ("flat_llm", "preamble_only")
PASSES = {"none": 3, "flat_llm": 1, "intent_layer": 6, "placebo": 9, "preamble_only": 1}  # of a task's 10 reps


def campaign(
    folder: Path, *, blocks: int = 10, passes: Mapping[str, int] = PASSES, halted: str = ""
) -> DirectoryStore:
    """`blocks` are over; the declared treatment is intent_layer. A cell passes in its first blocks, and in the
    first task in two blocks fewer."""
    primary = Primary(treatment="intent_layer", control="none", halve=True)
    plan = ledgers.plan(TASKS, CONDITIONS, reps=10, primary=primary)

    def fate(trial: Trial) -> Fate | None:
        if trial.block >= blocks or trial.condition == halted or (trial.block >= 4 and trial.condition in OUT):
            return None
        wanted = passes[trial.condition] - (2 if trial.task == "task-0" else 0)
        passed = trial.block < wanted
        return Fate(Verdict.PASSED if passed else Verdict.FAILED, metrics=Metrics(cost_usd=0.5))

    store = ledgers.write(folder, plan, fate)
    if blocks >= 4:
        early = [trial.id for trial in ledgers.trials(plan) if trial.block < 4]
        outcomes = list(Ledger(store, "demo").attempts.outcomes(early))
        names = [name for name in CONDITIONS if name != halted]
        result = halved(outcomes, names, treatment="intent_layer", control="none")
        decision = Decision(
            number=1, at=1.0, epoch=1, blocks=4, stage=(), outcomes=ledgers.ZERO, amendments=0, result=result
        )
        ledgers.put(store, "demo/decisions/1.json", decision)
    if halted:
        Ledger(store, "demo").directives.halt_condition(halted, "its agent crashed")
    return store


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return ledgers.read(campaign(tmp_path_factory.mktemp("finished")))


def test_a_halved_campaign_is_complete_without_the_two(tmp_path: Path) -> None:
    store = campaign(tmp_path)
    report = ledgers.read(store)
    found = report.analysis.found
    assert found is not None
    assert (found.after, found.planned_blocks, found.chosen, found.left_out) == (4, 10, "placebo", OUT)
    assert (found.alpha, found.each) == (0.05, 0.0125)
    assert not report.progress.interim
    assert (report.progress.planned, report.progress.complete_blocks) == (4 * (5 * 4 + 3 * 6), 10)
    assert report.below_plan == report.unplanned == ()
    assert [open_campaign(store, "demo").source for _ in range(2)] == ["tables", "tables"]


def test_those_that_are_left_are_tested_at_a_quarter_of_alpha_on_all_their_data(finished: Report) -> None:
    contrasts = {one.treatment: one for one in finished.analysis.contrasts}
    assert set(contrasts) == {"intent_layer", "placebo"}
    assert {one.control for one in contrasts.values()} == {"none"}
    control = [1, 3, 3, 3], [10] * 4
    for name, passes in (("intent_layer", [4, 6, 6, 6]), ("placebo", [7, 9, 9, 9])):
        on_these = contrasts[name].these_tasks
        assert on_these.test.p_value == stratified_exact(passes, [10] * 4, *control).p_value
        assert on_these.difference.level == pytest.approx(1 - 0.0125)
    p = contrasts["intent_layer"].these_tasks.test.p_value
    assert p is not None
    assert 0.0125 / 4 < p < 0.0125  # tested once, not four times
    assert finished.decision == "more"
    adjusted = contrasts["placebo"].these_tasks.adjusted
    assert adjusted is not None
    assert adjusted.p_value == contrasts["placebo"].these_tasks.test.p_value
    family = next(
        one for one in finished.analysis.families if one.id == "contrasts other than the primary, these tasks"
    )
    assert (family.alpha, family.method) == (0.0125, "holm")


def test_a_p_between_a_quarter_of_alpha_and_alpha_shows_nothing(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, passes={**PASSES, "none": 2, "intent_layer": 4}))
    assert report.headline is not None
    p = report.headline.these_tasks.test.p_value
    assert p is not None
    assert 0.0125 < p < 0.05
    assert report.decision == "not_shown"
    assert report.answer[0].startswith("No difference was shown between intent_layer and none")


def test_the_answer(finished: Report) -> None:
    assert finished.answer[0].startswith(
        "On these 4 tasks, intent_layer passed more often than none: 55.0% against"
    )
    assert "98.75% interval" in finished.answer[0]
    assert finished.answer[-2].startswith(
        "placebo, chosen of the three others, passed more often: 85.0% against 25.0% under none, p"
    )
    assert finished.answer[-1] == (
        "Halved as declared: flat_llm (18.8%) and preamble_only (18.8%) were left out after block 4 of 10 and are "
        "not tested; those left are tested at 0.0125, a quarter of 0.05. This answer took 152 trials and $76.00; "
        "four treatments to the end take 200 trials."
    )


def test_a_treatment_that_is_halted_was_not_chosen(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, halted="flat_llm"))
    found = report.analysis.found
    assert found is not None
    assert (found.chosen, found.left_out, found.never) == ("placebo", ("preamble_only",), None)
    said = "Halved as declared: preamble_only (18.8%) was left out after block 4 of 10 and is not tested"
    assert any(one.startswith(said) for one in report.answer)


@pytest.mark.parametrize("halted", ["intent_layer", "none"])
def test_without_a_side_nothing_is_said_to_come(tmp_path: Path, halted: str) -> None:
    report = ledgers.read(campaign(tmp_path, blocks=2, halted=halted))
    assert report.progress.planned == 200
    assert not any("As declared" in caution for caution in report.cautions)
    assert f"a side of the comparison is halted: {halted}." in " ".join(report.cautions)


def test_losers_have_their_rates_at_their_reps_and_no_test(tmp_path: Path) -> None:
    store = campaign(tmp_path)
    report = ledgers.read(store)
    found = report.analysis.found
    assert found is not None
    counts = {one.condition: (one.passed, one.valid, one.rate) for one in found.counts}
    assert counts["flat_llm"] == counts["preamble_only"] == (3, 16, 3 / 16)
    assert counts["placebo"] == (16, 16, 1.0)
    conditions = {one.condition: one.valid for one in report.conditions}
    assert conditions == {"none": 40, "flat_llm": 16, "intent_layer": 40, "placebo": 40, "preamble_only": 16}
    tested = {side for one in report.analysis.measures for side in (one.treatment, one.control)}
    assert tested.isdisjoint(OUT)
    with pytest.raises(OperatorError, match="flat_llm was left out after block 4 for its pass rate"):
        make_report(store, "demo", now=2.0, contrasts=["flat_llm:none"], packages=True)
    [caution] = [one for one in report.cautions if one.startswith("As declared, flat_llm and preamble_only had")]
    assert "in no test" in caution
    assert "placebo was chosen for its rate" in caution


@pytest.mark.parametrize("render", [to_html, to_markdown, on_terminal])
def test_every_format_shows_the_halving(finished: Report, render: Callable[[Report], str]) -> None:
    shown = " ".join(render(finished).split())
    assert "left out after block 4 of 10" in shown
    if render is not on_terminal:
        assert "left out, not tested" in shown
        assert "went on: declared" in shown


def test_json_and_methods_section(finished: Report) -> None:
    assert '"halving": {' in to_json(finished)
    design, analysis, *_ = methods_text(finished).paragraphs
    assert "As declared, flat_llm and preamble_only had no trials after block 4: of the four treatments" in design
    assert "α = 0.0125 (a quarter of 0.05, as of each of four treatments that is left)" in analysis
    said = {line.name: line.value for line in finished.manifest}
    assert said["halving"] == "after block 4; every test at α 0.0125"


def test_before_the_halving_nothing_is_left_out(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, blocks=2))
    found = report.analysis.found
    assert found is not None
    assert (found.counts, found.chosen, found.left_out) == ((), None, ())
    assert not any("Halved" in sentence for sentence in report.answer)
    assert "As declared, treatments are left out after block 4." in report.cautions
    assert len(report.analysis.contrasts) == 4


def test_while_the_halved_campaign_goes_on_no_test_of_the_chosen_is_told(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, blocks=6))
    assert report.progress.complete_blocks == 6
    assert not any("chosen of the three" in sentence for sentence in report.answer)
    assert "So far this took 104 trials" in report.answer[-1]
    assert {one.planned for one in report.below_plan} == {10}


def test_an_outcome_of_a_treatment_that_was_left_out_is_no_part_of_the_plan(tmp_path: Path) -> None:
    store = campaign(tmp_path)
    plan = Ledger(store, "demo").plan()
    stray = next(t for t in ledgers.trials(plan) if t.condition == "flat_llm" and t.block == 7)
    ledgers.write_trial(store, plan, stray, Fate(Verdict.PASSED))
    report = ledgers.read(store)
    assert report.unplanned == (stray.id,)
    assert report.progress.planned == 152


def test_what_is_left_out_by_design_is_no_drift(finished: Report) -> None:
    checks = {one.name: one for one in finished.analysis.drift}
    assert checks["balance"].contiguous == ()


def test_it_is_not_combined(tmp_path: Path) -> None:
    campaign(tmp_path)
    with pytest.raises(OperatorError, match="halved its treatments"):
        make_combination([CampaignSource(str(tmp_path), "demo")])
