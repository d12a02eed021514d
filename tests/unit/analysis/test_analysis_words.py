"""What is confounded, refused and said: contrasts asked for, the answer's sentence, the cautions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.analysis.ledger_fixture import MID_RUN, Fate, plan, read, trials, write
from trialfleet_analysis.asked import Asked
from trialfleet_analysis.plan_of_analysis.asked import checked_contrasts
from trialfleet_analysis.plan_of_analysis.composition import compose
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.make import make_report
from trialfleet_runner.campaign import Primary
from trialfleet_runner.conditions import PRESETS, Condition
from trialfleet_runner.contract import InlineSpec, Trial, Verdict
from trialfleet_runner.errors import OperatorError

FAILED = Fate(verdict=Verdict.FAILED)
CONDITIONS = ("placebo", "none")
PRIMARY = Primary(treatment="placebo", control="none")


def better(trial: Trial) -> Fate:
    """The placebo passes 9 of 10, none 3 of 10."""
    return Fate() if trial.rep < (9 if trial.condition == "placebo" else 3) else FAILED


def report(
    tmp_path: Path, *, primary: Primary | None = PRIMARY, tasks: tuple[str, ...] = ("a", "b", "c")
) -> Report:
    return read(write(tmp_path, plan(tasks, CONDITIONS, reps=10, primary=primary), better))


# --- what a contrast compares ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("treatment", "control", "changes", "missing"),
    [
        ("placebo", "none", [("files", "added")], ()),
        ("none", "placebo", [("files", "dropped")], ()),
        ("placebo", "flat_llm", [("files", "changed"), ("pull", "dropped")], ("{files: placebo, pull: true}",)),
        (
            "intent_layer",
            "none",
            [("files", "added"), ("hook", "added"), ("pull", "added")],
            ("{files: tree}", "{files: tree, hook: on_read}"),
        ),
        ("preamble_only", "none", [("inline", "added")], ()),
    ],
)
def test_deliveries_that_differ_are_named(
    treatment: str, control: str, changes: list[tuple[str, str]], missing: tuple[str, ...]
) -> None:
    found = compose(PRESETS[treatment], PRESETS[control], PRESETS)
    assert [(change.delivery, change.change) for change in found.changes] == changes
    assert found.missing == missing
    assert found.confounded == (len(changes) > 1)


def test_the_tree_that_inline_text_reads_is_part_of_it() -> None:
    nearest = InlineSpec(source="nearest")
    one, other = Condition(inline=nearest, context="tree"), Condition(inline=nearest, context="flat")
    assert [(c.delivery, c.change) for c in compose(one, other, {}).changes] == [("inline", "changed")]
    assert compose(Condition(inline=nearest), one, {}).changes == ()
    packages = compose(Condition(files="tree", fail_fast=True), Condition(), {})
    assert [(c.delivery, c.change) for c in packages.changes] == [("files", "added"), ("fail_fast", "added")]


def test_what_the_campaign_ran_is_not_missing() -> None:
    ran = {
        **PRESETS,
        "both": Condition(files="tree", pull=True, hook="on_read", inline=InlineSpec(source="nearest")),
    }
    assert compose(PRESETS["intent_layer_preamble"], PRESETS["intent_layer"], ran).missing == ()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("none:nobody", "no condition 'nobody'"),
        ("none", "TREATMENT:CONTROL"),
        ("none:none", "two different"),
        ("a:b:c", "TREATMENT:CONTROL"),
        ("intent_layer_preamble:intent_layer", "differ in inline and pull"),
    ],
)
def test_contrasts_that_cannot_be_answered_are_refused(asked: str, words: str) -> None:
    with pytest.raises(OperatorError) as caught:
        checked_contrasts([asked], PRESETS, packages=False)
    assert words in str(caught.value)
    assert caught.value.where == f"--contrast {asked}"


def test_an_aliased_contrast_names_the_missing_condition_and_may_be_a_package() -> None:
    with pytest.raises(OperatorError) as caught:
        checked_contrasts(["intent_layer_preamble:intent_layer"], PRESETS, packages=False)
    assert "{files: tree, pull: true, hook: on_read, inline: {source: nearest}}" in (caught.value.hint or "")
    pairs = checked_contrasts(["intent_layer_preamble:intent_layer"], PRESETS, packages=True)
    assert pairs == (("intent_layer_preamble", "intent_layer"),)


def test_a_contrast_asked_for_is_reported_beside_the_planned(tmp_path: Path) -> None:
    frozen = plan(("a", "b"), ("placebo", "none", "preamble_only"), reps=4, primary=PRIMARY)
    store = write(tmp_path, frozen, better)
    made = make_report(store, "demo", now=0.0, asked=Asked(("preamble_only:none", "placebo:preamble_only"), True))
    assert [(one.name, one.role) for one in made.analysis.contrasts] == [
        ("placebo − none", "primary"),
        ("preamble_only − none", "secondary"),
        ("placebo − preamble_only", "asked"),
    ]
    with pytest.raises(OperatorError, match="no condition"):
        make_report(store, "demo", now=0.0, asked=Asked(("placebo:nobody",)))


# --- the answer -----------------------------------------------------------------------------------------


def test_the_answer_is_one_sentence_with_all_that_it_needs(tmp_path: Path) -> None:
    first, second = report(tmp_path).answer
    assert first == (
        "On these 3 tasks, placebo passed more often than none: 90.0% against 30.0%, a difference of +60.0 points "
        "(95% interval +36.8 to +76.4), p < 0.0001; no first run was lost, so losses cannot have made this."
    )
    assert second.startswith("The other estimand, tasks like these, has no answer: every task has the same")


def test_a_confounded_primary_comes_out_with_a_loud_caution(tmp_path: Path) -> None:
    primary = Primary(treatment="intent_layer", control="none")
    made = read(write(tmp_path, plan(("a",), ("none", "intent_layer"), primary=primary), lambda t: Fate()))
    assert made.headline is not None
    assert made.cautions[0].startswith("The declared contrast compares packages: intent_layer − none differ in")
    assert "files (added), hook (added) and pull (added)" in made.cautions[0]
    assert "{files: tree}" in made.cautions[0]


def test_losses_that_matter_are_in_the_answer(tmp_path: Path) -> None:
    def fate(trial: Trial) -> Fate:
        lost = trial.condition == "none" and trial.rep >= 5
        return Fate(losses=(MID_RUN,)) if lost else better(trial)

    frozen = plan(("a", "b", "c"), CONDITIONS, reps=10, primary=PRIMARY)
    made = read(write(tmp_path, frozen, fate))
    assert "15 lost first runs" in made.answer[0]
    assert any("lost first runs unequally often" in caution for caution in made.cautions)
    [robust, _] = made.analysis.robustness
    assert (robust.missing_treatment, robust.missing_control) == (0, 15)


def test_while_it_runs_every_p_value_is_labelled(tmp_path: Path) -> None:
    frozen = plan(("a", "b", "c"), CONDITIONS, reps=10, primary=PRIMARY)
    last = trials(frozen)[-1]
    store = write(tmp_path, frozen, lambda t: None if t == last else better(t))
    made = make_report(store, "demo", now=1.0)
    assert made.analysis.monitored
    assert "not valid under monitoring" in made.answer[0]
    assert "no p-value is valid under monitoring" in made.cautions[0]
    assert made.headline is not None
    assert made.headline.these_tasks.by_block.pairs == 27  # nine complete blocks of three tasks
    assert make_report(store, "demo", now=2.0).progress.looks == 1


def test_without_a_declared_contrast_nothing_is_tested_in_the_answer(tmp_path: Path) -> None:
    made = report(tmp_path, primary=None)
    assert made.headline is None
    assert "p =" not in " ".join(made.answer)
    assert "unplanned" in made.answer[1]


def test_few_tasks_are_a_caution_for_tasks_like_these(tmp_path: Path) -> None:
    primary = PRIMARY.model_copy(update={"estimand": "tasks_like_these"})

    def fate(trial: Trial) -> Fate:
        return better(trial) if trial.task != "c" else FAILED

    frozen = plan(("a", "b", "c"), CONDITIONS, reps=10, primary=primary)
    made = read(write(tmp_path, frozen, fate))
    assert made.answer[0].startswith("On tasks like these, judged by 3 tasks")
    assert any("assumes no rare strong task effects" in caution for caution in made.cautions)
