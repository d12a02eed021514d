"""What `power` and `plan` say of declarations drawn at random agrees with them, and with each other."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.plan_checks import odd_words, of_plan, of_power
from tests.support.random_declarations import DrawnDeclaration, draw_declaration
from trialfleet_analysis.commands.power import power
from trialfleet_analysis.power_cli.asking import Answered, PowerOptions, answered
from trialfleet_analysis.power_cli.terminal import show
from trialfleet_controller.commands.plan import plan as plan_command
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.screen import Screen

SEEDS, PARTS, SIMULATIONS = (*range(24), 97), 3, 100  # 97: what so few campaigns notice is not known


@pytest.mark.parametrize("part", range(PARTS))
def test_power_and_plan_say_what_is_declared(tmp_path: Path, part: int) -> None:
    for seed in SEEDS[part::PARTS]:
        drawn = draw_declaration(seed)
        assert contradictions(drawn, tmp_path / str(seed)) == [], (seed, drawn.text)


def contradictions(drawn: DrawnDeclaration, folder: Path) -> list[str]:
    file = drawn.write(folder)
    asked = PowerOptions(campaign=str(file), simulations=SIMULATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if drawn.spec is None or drawn.lacks_room:
            with pytest.raises(OperatorError) as refused:
                answered(asked)
            named = "campaign.yaml" in str(refused.value.where) and "primary" in str(refused.value)
            return [] if named and refused.value.hint else [str(refused.value)]
        found = answered(asked)
        short, long = (printed(found, details=details) for details in (False, True))
        frozen, made = drawn.freeze(folder / "store")
        planned = CliRunner().invoke(plan_command, [str(frozen)], catch_exceptions=False).output
    said = [*of_power(drawn, found.answer, short), *of_plan(drawn.spec, len(made.tasks), planned)]
    return [*said, *odd_words(f"{short}\n{long}\n{planned}")]


def printed(found: Answered, *, details: bool) -> str:
    console = Screen(width=1_000)
    with console.capture() as capture:
        show(found.answer, found.pilot, console, details=details)
    return capture.get()


def asked_of(folder: Path, reps: int, declared: str, *options: str) -> str:
    """What `power` prints of a campaign of so many reps of two tasks."""
    drawn = draw_declaration(0)
    text = (
        f"campaign: demo\nseed: 1\ntasks: [tasks.d/*.yaml]\nconditions: [none, intent_layer]\nreps: {reps}\n"
        f"agent: {{kind: search}}\nstore: store\nprimary: {{treatment: intent_layer, control: none, {declared}}}\n"
        "limits: {cost_usd: {trial: 2}}\n"
    )
    file = replace(drawn, text=text, repositories=("a", "b"), apart=0).write(folder)
    words = (str(file), "--simulations", "100", *options)
    return " ".join(CliRunner().invoke(power, words, catch_exceptions=False).output.split())


@pytest.mark.parametrize(
    ("reps", "declared", "said"),
    [
        (1, "metric: cost_usd", r"2 +8 +×0.50 +0\.0%"),  # the least possible p is 2 / 36
        (5, "metric: cost_usd, effect: 0.5", "with 3 reps a task"),
        (5, "metric: cost_usd, effect: 0.5, scale: difference", "with 3 reps a task"),
    ],
)
def test_no_power_where_no_permutation_is_rare_enough(tmp_path: Path, reps: int, declared: str, said: str) -> None:
    options = ("--cv", "0.1") if reps > 1 else ("--reps", "2")
    assert re.search(said, asked_of(tmp_path / "f", reps, declared, *options))


def test_needed_reps_that_no_look_ends_at_are_said_to_have_a_fixed_end(tmp_path: Path) -> None:
    stop = "stop: {looks: [5, 10], futility: none}"
    metric = asked_of(tmp_path / "a", 10, f"metric: cost_usd, effect: 0.5, {stop}")
    assert re.search(r"reps a task \(\d+ trials, with a fixed end\)", metric)
    question = asked_of(tmp_path / "b", 10, f"question: not_worse, margin: 30, {stop}")
    assert re.search(r"a task \(\d+ trials in both arms, with a fixed end\)", question)


@pytest.mark.parametrize(
    "declared",
    [
        "metric: cost_usd",
        "question: not_worse, margin: 30",
        "question: cheaper_and_not_worse, margin: 30",
    ],
)
def test_a_row_of_reps_that_no_look_ends_at_says_so(tmp_path: Path, declared: str) -> None:
    said = asked_of(tmp_path / "f", 5, f"{declared}, stop: {{looks: [3, 5]}}", "--reps", "5,8")
    assert re.search(r" 5 +20 ", said)
    assert re.search(r" 8, without looks +32 ", said)
    assert "2 looks, " in said


def test_a_contrast_of_other_reps_is_said_to_be_planned_without_its_looks(tmp_path: Path) -> None:
    declared, warned = "effect: 0.3, stop: {looks: [3, 5]}", "with one test at the end of these reps, and without"
    for number, options in enumerate([("--reps", "8"), ("--reps", "8", "--details"), ("--reps", "5,8")]):
        assert asked_of(tmp_path / str(number), 5, declared, *options).count(warned) == 1
    assert warned not in asked_of(tmp_path / "own", 5, declared)
    assert warned not in asked_of(tmp_path / "fixed", 5, "effect: 0.3", "--reps", "8")


def test_looks_of_several_reps_are_counted_for_each(tmp_path: Path) -> None:
    said = asked_of(tmp_path / "f", 10, "metric: cost_usd, stop: {looks: 5}", "--reps", "3,10")
    assert "two-sided alpha 0.05, 3 to 5 looks, by t bounds" in said


def test_reps_that_a_look_may_add_may_cost_as_much(tmp_path: Path) -> None:
    stop = "effect: 0.3, stop: {looks: [5, 10], reestimate: {after: 5, cap: 40}}"
    assert "at most $320 ($2 each)" in asked_of(tmp_path / "f", 10, stop)


def test_an_effect_that_cannot_be_is_refused_where_it_is_declared(tmp_path: Path) -> None:
    with pytest.raises(OperatorError) as refused:
        asked_of(tmp_path / "f", 10, "effect: 0.6")
    assert str(refused.value.where).endswith("campaign.yaml")
    assert refused.value.message == ("primary.effect: a control that passes 50.0% leaves no room for 60.0 points")
    assert "a difference of 60.0 points" in asked_of(tmp_path / "g", 10, "effect: 0.6", "--from", "0.3")
