"""What is confounded, refused and said: contrasts asked for, the answer's sentence, the cautions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.ledgers import MID_RUN, Fate, plan, read, trial_id, trials, write
from trialfleet_analysis.report.answer import answer
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.declared_result import decided
from trialfleet_analysis.report.make import make_report
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.warnings import cautions
from trialfleet_designs.comparison.composition import Arm, checked_contrasts, compose
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.crashed_agents import reason_to_halt
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import InlineSpec
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Stop, Verdict
from trialfleet_statistics.comparisons import midp_size

FAILED = Fate(verdict=Verdict.FAILED)
CONDITIONS = ("placebo", "none")
NOP = AgentSpec(kind="nop")
ARMS = {name: Arm(condition, NOP) for name, condition in PRESETS.items()}
PRIMARY = Primary(treatment="placebo", control="none")


def better(trial: Trial) -> Fate:
    """The placebo passes 9 of 10, none 3 of 10."""
    return Fate() if trial.rep < (9 if trial.condition == "placebo" else 3) else FAILED


def report(
    tmp_path: Path, *, primary: Primary | None = PRIMARY, tasks: tuple[str, ...] = ("a", "b", "c"), reps: int = 10
) -> Report:
    return read(write(tmp_path, plan(tasks, CONDITIONS, reps=reps, primary=primary), better))


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
    found = compose(ARMS[treatment], ARMS[control], PRESETS.values())
    assert [(change.delivery, change.change) for change in found.changes] == changes
    assert found.missing == missing
    assert found.confounded == (len(changes) > 1)


def test_the_tree_that_inline_text_reads_is_part_of_it() -> None:
    nearest = InlineSpec(source="nearest")
    one, other = Condition(inline=nearest, context="tree"), Condition(inline=nearest, context="flat")
    assert [(c.delivery, c.change) for c in compose(Arm(one, NOP), Arm(other, NOP), ()).changes] == [
        ("inline", "changed")
    ]
    assert compose(Arm(Condition(inline=nearest), NOP), Arm(one, NOP), ()).changes == ()
    packages = compose(Arm(Condition(files="tree", fail_fast=True), NOP), ARMS["none"], ())
    assert [(c.delivery, c.change) for c in packages.changes] == [("files", "added"), ("fail_fast", "added")]


def test_what_the_campaign_ran_is_not_missing() -> None:
    ran = {
        **PRESETS,
        "both": Condition(files="tree", pull=True, hook="on_read", inline=InlineSpec(source="nearest")),
    }
    assert compose(ARMS["intent_layer_preamble"], ARMS["intent_layer"], ran.values()).missing == ()


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
        checked_contrasts([asked], ARMS, packages=False)
    assert words in str(caught.value)
    assert caught.value.where == f"--contrast {asked}"


def test_an_aliased_contrast_names_the_missing_condition_and_may_be_a_package() -> None:
    with pytest.raises(OperatorError) as caught:
        checked_contrasts(["intent_layer_preamble:intent_layer"], ARMS, packages=False)
    assert "{files: tree, pull: true, hook: on_read, inline: {source: nearest}}" in (caught.value.hint or "")
    pairs = checked_contrasts(["intent_layer_preamble:intent_layer"], ARMS, packages=True)
    assert pairs == (("intent_layer_preamble", "intent_layer"),)


def test_a_contrast_asked_for_is_reported_beside_the_planned(tmp_path: Path) -> None:
    frozen = plan(("a", "b"), ("placebo", "none", "preamble_only"), reps=4, primary=PRIMARY)
    store = write(tmp_path, frozen, better)
    made = make_report(
        store, "demo", now=0.0, contrasts=("preamble_only:none", "placebo:preamble_only"), packages=True
    )
    assert [(one.name, one.role) for one in made.analysis.contrasts] == [
        ("placebo − none", "primary"),
        ("preamble_only − none", "secondary"),
        ("placebo − preamble_only", "asked"),
    ]
    with pytest.raises(OperatorError, match="no condition"):
        make_report(store, "demo", now=0.0, contrasts=("placebo:nobody",))


# --- the answer -----------------------------------------------------------------------------------------


def test_a_confounded_primary_comes_out_with_a_loud_caution(tmp_path: Path) -> None:
    primary = Primary(treatment="intent_layer", control="none")
    made = read(write(tmp_path, plan(("a",), ("none", "intent_layer"), primary=primary), lambda t: Fate()))
    assert made.headline is not None
    assert made.cautions[0].startswith("The declared contrast compares packages: intent_layer − none differ in")
    assert "files (added), hook (added) and pull (added)" in made.cautions[0]
    assert "{files: tree}" in made.cautions[0]


def crashing(condition: str, *reps: int) -> Callable[[Trial], Fate]:
    crashed, failed = Fate(verdict=Verdict.FAILED, stop=Stop.CRASHED), Fate(verdict=Verdict.FAILED)
    return lambda trial: crashed if trial.condition == condition and trial.rep in reps else failed


@pytest.mark.parametrize(
    ("crashed", "reps", "said"),
    [(2, 50, True), (1, 10, False), (2, 70, False), (3, 70, True), (0, 10, False)],
)
def test_crashed_agents_are_said_in_the_answer_from_two_and_three_percent_on(
    tmp_path: Path, crashed: int, reps: int, *, said: bool
) -> None:
    made = read(write(tmp_path, plan(("a",), CONDITIONS, reps=reps), crashing("none", *range(5, 5 + crashed))))
    found = [
        text for text in made.answer if text.startswith(f"Careful: in {crashed} of {reps} measured trials of")
    ]
    assert bool(found) is said
    assert [(one.crashed, one.measured) for one in made.crashes if one.condition == "none"] == [(crashed, reps)]
    if said:
        assert "of none the agent crashed before it began to work. They count as failed" in found[0]
        assert "`trialfleet logs CAMPAIGN " in found[0]


def test_crashes_that_differ_between_conditions_are_said_with_their_p(tmp_path: Path) -> None:
    made = read(write(tmp_path, plan(("a",), CONDITIONS, reps=20), crashing("none", *range(1, 7))))
    (found,) = [text for text in made.answer if "unequally often" in text]
    assert "none 6 of 20" in found
    few = read(write(tmp_path / "few", plan(("a",), CONDITIONS, reps=20), crashing("none", 1, 2)))
    assert not [text for text in few.answer if "unequally often" in text]


def test_failures_of_the_provider_that_differ_between_conditions_are_said_with_their_p(tmp_path: Path) -> None:
    def ending(most: int) -> Callable[[Trial], Fate]:
        def fate(trial: Trial) -> Fate:
            ended = trial.condition == "none" and trial.rep < most
            return Fate(metrics=Metrics(provider_gave_up=ended))

        return fate

    made = read(write(tmp_path, plan(("a",), CONDITIONS, reps=20), ending(8)))
    (found,) = [text for text in made.answer if "failure of the model provider" in text]
    assert "placebo 0 of 20, none 8 of 20; p" in found
    few = read(write(tmp_path / "few", plan(("a",), CONDITIONS, reps=20), ending(2)))
    assert not [text for text in few.answer if "failure of the model provider" in text]


def test_a_halted_condition_is_in_no_rate_and_the_contrast_has_no_answer(tmp_path: Path) -> None:
    made_plan = plan(("a", "b"), CONDITIONS, reps=4, primary=PRIMARY)
    store = write(tmp_path, made_plan, crashing("none", *range(4)))
    Ledger(store, made_plan.campaign).directives.halt_condition("none", reason_to_halt("none"))
    made = read(store)
    rates = {one.condition: one for one in made.conditions}
    assert made.progress.complete_blocks == 4
    assert made.compared == ("a", "b")
    assert "is halted, and none of its trials is in a rate" in " ".join(made.answer)
    assert made.answer[0].endswith("has no answer: its condition is halted (none).")
    assert (rates["none"].valid, rates["placebo"].valid) == (0, 8)


def uncaused(trial: Trial) -> Fate:
    """In `none` two are forged and one needs a file; in `placebo` one is unsteady."""
    if trial.condition == "placebo":
        return Fate(unsteady=True) if (trial.task, trial.rep) == ("b", 4) else Fate()
    forged = Fate(verdict=Verdict.FORGED, needed=("assertions.py", "data/x.json"))
    return (
        {1: forged, 2: forged, 3: Fate(needed=("rates.py",))}.get(trial.rep, Fate())
        if trial.task == "a"
        else Fate()
    )


def test_forged_passes_count_as_failed_and_are_named_in_the_answer(tmp_path: Path) -> None:
    made = read(write(tmp_path, plan(("a", "b"), CONDITIONS, reps=5), uncaused))
    first, second = (trial_id("demo", "a", "none", rep) for rep in (1, 2))
    (found,) = [text for text in made.answer if "forged" in text]
    assert found in {
        f"Careful: 2 forged trials (none 2: {one}, {other}), counted as failed. Their tests would pass whether or "
        "not the product is fixed. “How did trials end?” lists their files; `trialfleet show CAMPAIGN TRIAL` "
        "shows a patch."
        for one, other in ((first, second), (second, first))
    }
    passes = {(cell.task, cell.condition): (cell.passes, cell.valid) for cell in made.cells}
    assert passes["a", "none"] == (3, 5)
    text = to_markdown(made)
    for row in (f"| {first} | a | none | forged | assertions.py, data/x.json |", "| no change at all |"):
        assert row in text


def test_passes_with_other_files_and_unsteady_tasks_are_cautions(tmp_path: Path) -> None:
    made = read(write(tmp_path, plan(("a", "b"), CONDITIONS, reps=5), uncaused))
    needing = trial_id("demo", "a", "none", 3)
    assert (
        f"Read the patches of 1 trial (none 1: {needing}) before relying on the result: the tests pass only with "
        "changed files that are not the product’s. “How did trials end?” lists these files."
    ) in made.cautions
    assert (
        "Task b is unsteady: in 1 trial its tests also passed without any change. They count by their verdict; "
        "leave the task out of the next campaign, or repair its tests."
    ) in made.cautions


def test_a_pass_that_tests_that_must_fail_refute_is_named(tmp_path: Path) -> None:
    refuted = Fate(verdict=Verdict.FORGED)
    made = read(
        write(tmp_path, plan(("a", "b"), CONDITIONS, reps=5), lambda one: refuted if one.rep == 1 else Fate())
    )
    assert "tests that must fail passed, too: tests/must_fail.log in its bundle" in to_markdown(made)


def test_passes_whose_code_may_recognise_its_tests_are_cautions(tmp_path: Path) -> None:
    lines = ("shop/a.py:3 reads the stack", "shop/a.py:9 ends the process")

    def fate(trial: Trial) -> Fate:
        marked = trial.condition == "none" and trial.task == "a"
        if trial.rep == 1 and marked:
            return Fate(cautions=lines)
        return Fate(verdict=Verdict.FAILED, cautions=lines) if trial.rep == 2 and marked else Fate()

    made = read(write(tmp_path, plan(("a", "b"), CONDITIONS, reps=5), fate))
    marked = trial_id("demo", "a", "none", 1)
    assert (
        f"Read the patches of 1 passed trial (none 1: {marked}): their tests that must fail confirm "
        "nothing, or they add lines that read the stack or the loaded "
        "modules, look for the test runner or end the process, as code does that recognises its tests. They count "
        "as passed. “How did trials end?” lists the lines."
    ) in made.cautions
    assert f"| {marked} | a | none | {', '.join(lines)} |" in to_markdown(made)
    passes = {(cell.task, cell.condition): cell.passes for cell in made.cells}
    assert passes["a", "none"] == 4, "a caution is no verdict"


def test_nothing_is_said_of_passes_that_the_product_explains(tmp_path: Path) -> None:
    made = report(tmp_path)
    assert made.uncaused == made.cautioned == ()
    assert not [text for text in (*made.answer, *made.cautions) if "forged" in text or "unsteady" in text]


def test_an_answer_that_rests_on_retries_is_told_from_one_that_lost_runs_tip(tmp_path: Path) -> None:
    """9 of 10 against 4 of 10 rejects, 6 of 7 against 4 of 10 does not: the lost runs that tip the decision of the
    first runs give the printed answer back."""

    def fate(trial: Trial) -> Fate:
        if trial.condition == "none":
            return Fate() if trial.rep < 4 else FAILED
        return Fate(losses=(MID_RUN,) * (trial.rep < 3)) if trial.rep < 9 else FAILED

    made = read(write(tmp_path, plan(("a",), CONDITIONS, reps=10, primary=PRIMARY), fate))
    assert made.decision == "more"
    [found] = [one for one in made.analysis.robustness if one.estimand == "these_tasks"]
    assert found.tipping_point is not None
    assert not found.same_without
    assert made.answer[0].endswith(
        "Careful: 3 trials lost their first run. Without them, the answer would be another one."
    )
    [row] = [row for row in made.summary if row.name == "Lost first runs"]
    assert (row.declared.text, row.declared.note) == (
        "not robust",
        "without the trials of 3 lost first runs the decision is another one",
    )


def test_losses_that_matter_are_in_the_answer(tmp_path: Path) -> None:
    def fate(trial: Trial) -> Fate:
        lost = trial.condition == "none" and trial.rep >= 5
        return Fate(losses=(MID_RUN,)) if lost else better(trial)

    frozen = plan(("a", "b", "c"), CONDITIONS, reps=10, primary=PRIMARY)
    made = read(write(tmp_path, frozen, fate))
    assert made.answer[0].endswith(
        "Careful: 15 trials lost their first run. Without them, the answer would be another one."
    )
    [row] = [row for row in made.summary if row.name == "Lost first runs"]
    assert (row.declared.text, row.declared.note) == (
        "not robust",
        "without the trials of 15 lost first runs the decision is another one",
    )
    assert any(
        "lost first runs unequally often (placebo 0 of 30, none 15 of 30; p" in text for text in made.answer
    )
    [robust, _] = made.analysis.robustness
    assert (robust.missing_treatment, robust.missing_control) == (0, 15)


def test_a_test_against_the_mean_difference_is_said_and_gives_no_direction(tmp_path: Path) -> None:
    made = report(tmp_path)
    [head, *others] = made.analysis.contrasts
    test = replace(head.these_tasks.test, direction=-1)
    turned = replace(head, these_tasks=replace(head.these_tasks, test=test, conflict=True))
    opposed = replace(made, analysis=replace(made.analysis, contrasts=(turned, *others)))
    assert answer(opposed) == (
        "On these 3 tasks, placebo and none differ, but no direction can be stated: the test points to none, the "
        "mean difference to placebo.",
        "90.0% against 30.0%, a difference of +60.0 points (95% interval +36.8 to +76.4), p < 0.0001.",
    )
    assert decided(opposed) == "conflict"
    assert any("point in opposite directions" in caution for caution in cautions(opposed))
    assert not any("point in opposite directions" in caution for caution in made.cautions)


def test_an_interval_that_saturated_tasks_widen_is_named(tmp_path: Path) -> None:
    """One of four tasks moves, 2 of 10 to 7 of 10; the others never pass. Its own variances: (.16 + .21) / 9."""

    def fate(trial: Trial) -> Fate:
        return Fate() if trial.task == "a" and trial.rep < (7 if trial.condition == "placebo" else 2) else FAILED

    made = read(write(tmp_path, plan(tuple("abcd"), CONDITIONS, reps=10, primary=PRIMARY), fate))
    found, interval = made.headline.these_tasks, made.headline.these_tasks.difference
    own = 2 * 1.959964 * math.sqrt((0.16 + 0.21) / 9) / 4
    assert found.over_width == pytest.approx((interval.high - interval.low) / own, rel=1e-6)
    said = f"it is {found.over_width:.1f} times as wide as the tasks’ own rates would make it"
    [caution] = [
        caution for caution in made.cautions if caution.startswith("3 of 4 tasks always passed or always failed")
    ]
    assert said in caution


def test_where_several_tasks_vary_no_interval_is_called_wide_and_no_size_is_named(tmp_path: Path) -> None:
    made = report(tmp_path)
    assert made.headline.these_tasks.over_width == pytest.approx(1, abs=0.2)
    assert made.headline.these_tasks.largest_size is None
    assert not any("times as wide" in caution or "With one task" in caution for caution in made.cautions)


def test_a_single_task_says_how_often_its_test_rejects_at_most(tmp_path: Path) -> None:
    made = report(tmp_path, tasks=("a",), reps=30)
    said = (
        "With one task the mid-p test rejects in up to 5.2% of campaigns of this size in which nothing is there; "
    )
    assert f"{said}it was asked for 5.0%." in made.cautions
    assert made.headline.these_tasks.largest_size == midp_size(30, 30)
    few = report(tmp_path / "few", tasks=("a",))
    assert few.headline.these_tasks.largest_size == midp_size(10, 10) < 0.05
    assert not [caution for caution in few.cautions if caution.startswith("With one task")]


def test_while_it_runs_every_p_value_is_labelled(tmp_path: Path) -> None:
    frozen = plan(("a", "b", "c"), CONDITIONS, reps=10, primary=PRIMARY)
    last = trials(frozen)[-1]
    store = write(tmp_path, frozen, lambda t: None if t == last else better(t))
    made = make_report(store, "demo", now=1.0)
    assert made.analysis.monitored
    assert "not valid under monitoring" in made.answer[0]
    assert "no p-value is valid under monitoring" in made.cautions[0]
    assert made.headline.these_tasks.by_block.pairs == 27  # nine complete blocks of three tasks
    assert make_report(store, "demo", now=2.0).progress.looks == 1


def test_few_tasks_are_a_caution_for_tasks_like_these(tmp_path: Path) -> None:
    primary = PRIMARY.model_copy(update={"estimand": "tasks_like_these"})

    def fate(trial: Trial) -> Fate:
        return better(trial) if trial.task != "c" else FAILED

    frozen = plan(("a", "b", "c"), CONDITIONS, reps=10, primary=primary)
    made = read(write(tmp_path, frozen, fate))
    assert made.decision == "not_possible"
    assert made.answer[0] == (
        "No difference was shown between placebo and none on tasks like these, judged by 3 tasks: 1 of the 3 "
        "tasks always passed or always failed under both conditions, and given how often the rest passed in all, "
        "no split of their passes between the two reaches p ≤ 0.05."
    )
    assert any("assumes no rare strong task effects" in caution for caution in made.cautions)
