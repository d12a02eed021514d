"""`trialfleet power`: each question, its JSON, a pilot's store, and what bad input is told."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from click.testing import CliRunner

from tests.support.ledgers import Fate, plan, write
from trialfleet_analysis.commands.power import power
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_statistics.comparisons.repositories import Claim, TaskRepositories
from trialfleet_statistics.difficulty import task_difficulty
from trialfleet_statistics.power import fisher_power, minimum_detectable_effect, shifted, stratified_power
from trialfleet_statistics.power.allocation import frontier

DEMO = Path(__file__).parents[3] / "tasks" / "quickstart" / "demo.yaml"
PRIMARY = Primary(treatment="intent_layer", control="none", estimand="tasks_like_these", alpha=0.1)
QUICK = ("--simulations", "100")
HARD = {"alpha": 0, "beta": 1, "gamma": 2, "delta": 4}  # of five reps, how many pass without context


def said(*words: str) -> str:
    ran = CliRunner().invoke(power, words, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return ran.output


def told(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(*words, "--json"))
    return found


def refused(*words: str) -> OperatorError:
    with pytest.raises(OperatorError) as error:
        CliRunner().invoke(power, words, catch_exceptions=False)
    assert error.value.hint
    return error.value


def pilot(root: Path, *, reps: int = 5, finished: int = 5, primary: Primary | None = PRIMARY) -> Path:
    """Context adds one pass in five to every task; reps from `finished` on are missing."""

    def fate(trial: Trial) -> Fate | None:
        if trial.rep >= finished:
            return None
        passed = trial.rep < HARD[trial.task] + (trial.condition == "intent_layer")
        return Fate(Verdict.PASSED if passed else Verdict.FAILED)

    write(root, plan(tuple(HARD), reps=reps, primary=primary), fate)
    return root / "demo"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pilot's folder that tests read and leave as it is."""
    return pilot(tmp_path_factory.mktemp("pilot"))


def test_reps_for_an_effect() -> None:
    found = told("--from", "0.4", "--to", "0.6")
    assert found["question"] == "reps_for_effect"
    assert [(goal["power"], goal["first"], goal["stays"]) for goal in found["goals"]] == [
        (0.8, 102, 108),
        (0.9, 141, 141),
    ]
    assert found["reached"][2] == {"reps": 25, "power": fisher_power(0.4, 0.6, 25)}
    assert "108" in said("--from", "0.4", "--to", "0.6")


def test_power_of_given_reps() -> None:
    found = told("--from", "0.4", "--to", "0.6", "--reps", "7,9", "--test", "boschloo", "--alpha", "0.1")
    assert found["goals"] == []
    assert [row["reps"] for row in found["reached"]] == [7, 9]
    assert (found["test"], found["alpha"]) == ("boschloo", 0.1)


def test_effect_of_given_reps() -> None:
    found = told("--reps", "25")
    assert [row["control"] for row in found["rows"]] == [None, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert found["rows"][0]["effect"] == minimum_detectable_effect(25)
    nothing = told("--reps", "5", "--from", "0.2")["rows"][0]
    assert nothing["effect"] is None
    assert nothing["power_at_most"] == fisher_power(1.0, 0.2, 5)
    assert "nothing" in said("--reps", "5", "--from", "0.2")


def test_power_of_a_campaign() -> None:
    words = ("--tasks", "4", "--reps", "5,10", "--from", "0.3", "--to", "0.6", "--icc", "0.2", *QUICK)
    found = told(*words)
    assert [(row["tasks"], row["reps"], row["trials"]) for row in found["rows"]] == [(4, 5, 40), (4, 10, 80)]
    few, many = (row["power"] for row in found["rows"])
    assert few["these_tasks"]["power"] < many["these_tasks"]["power"]
    assert many["tasks_like_these"]["analysis"] == "paired_t"
    assert found["assumptions"]["icc"] == {"value": 0.2, "origin": "given"}
    assert found["assumptions"]["sigma_int"] == {"value": 0.1, "origin": "assumed"}
    assert told(*words) == found
    assert told(*words, "--seed", "2") != found
    assert f"{100 * few['these_tasks']['power']:.1f}% ±" in said(*words)


def test_a_campaign_file_is_enough() -> None:
    found = told(str(DEMO), *QUICK)
    assert found["declared"] == {
        "campaign": "demo",
        "treatment": "pointer",
        "control": "none",
        "estimand": "these_tasks",
        "effect": None,
        "apart": 0,
    }
    assert [(row["tasks"], row["reps"]) for row in found["rows"]] == [(2, 15)]
    text = said(str(DEMO), "--reps", "50", "--details", *QUICK)
    assert "these tasks (primary)" in text
    assert "demo: pointer against none" in text


def test_a_frozen_campaign_is_planned_without_its_results(finished: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(finished, tmp_path / "demo")
    for outcome in (folder / "outcomes").iterdir():
        outcome.write_text("not to be read")
    found = told(str(folder), "--from", "0.3", *QUICK)
    assert (found["rows"][0]["tasks"], found["rows"][0]["reps"], found["effort"]["alpha"]) == (4, 5, 0.1)
    assert found["declared"]["estimand"] == "tasks_like_these"
    assert told(str(folder), "--alpha", "0.05", "--to", "0.7", *QUICK)["effort"]["alpha"] == 0.05


def test_the_effect_that_a_campaign_declares_gets_its_power(tmp_path: Path) -> None:
    frozen = plan(tuple(HARD), primary=PRIMARY.model_copy(update={"effect": 0.25}))
    write(tmp_path, frozen, lambda trial: None)
    folder = str(tmp_path / "demo")
    found = told(folder, "--from", "0.3", *QUICK)
    assert found["rows"][0]["effect"]["these_tasks"]["effect"] is not None
    assert found["at_declared"]["treatment"] == 0.55
    power_of_it = found["at_declared"]["rows"][0]["power"]["these_tasks"]["power"]
    text = said(folder, "--from", "0.3", "--details", *QUICK)
    assert "power for 30.0% against 55.0%" in text
    assert f"{100 * power_of_it:.1f}% ±" in text
    assert told(folder, "--from", "0.3", "--to", "0.5", *QUICK)["at_declared"] is None


def test_equal_cost() -> None:
    found = told("--budget", "700", "--cost-task", "75", "--cost-rep", "5", "--sigma-int", "0.15")
    assert found["best_reps"] == pytest.approx(14.14, abs=0.01)
    assert found["best"] in found["designs"]
    assert all(design["cost"] <= 700 for design in found["designs"])
    assert "← best for tasks like these" in said("--budget", "700", "--cost-task", "75", "--cost-rep", "5")


DESIGN = ("--tasks", "8", "--reps", "10", *QUICK)


def test_the_first_sentence_says_what_is_noticed() -> None:
    [row] = told(*DESIGN)["rows"]
    gains = [f"{100 * row['effect'][name]['effect']:.1f} points" for name in ("these_tasks", "tasks_like_these")]
    assert first_sentence(*DESIGN) == (
        f"160 trials notice a gain of {gains[0]} or more on these tasks in 80.0% of campaigns, and one of "
        f"{gains[1]} on tasks like these."
    )
    [row] = told(*DESIGN, "--to", "0.7")["rows"]
    here, like = (f"{100 * row['power'][name]['power']:.1f}%" for name in ("these_tasks", "tasks_like_these"))
    assert first_sentence(*DESIGN, "--to", "0.7") == (
        f"160 trials notice a difference of 20.0 points in {here} of campaigns on these tasks, in {like} on tasks "
        "like these."
    )
    assert "and none on tasks like these." in first_sentence("--tasks", "1", "--reps", "40", *QUICK)
    assert first_sentence("--tasks", "1", "--reps", "2", *QUICK) == (
        "4 trials notice no gain on these tasks in 80.0% of campaigns, however large it is."
    )


def test_tables_are_printed_when_they_are_asked_for(tmp_path: Path) -> None:
    """A sentence answers one design; what it rests on and what it costs stands below."""
    file = tmp_path / "campaign.yaml"
    file.write_text(
        f"campaign: looks\nseed: 1\ntasks: ['{DEMO.parent}/tasks/*.yaml']\nconditions: [none, flat_llm, placebo]\n"
        "reps: 10\nagent: {kind: search}\nstore: store\nlimits: {cost_usd: {trial: 2, campaign: 1500}}\n"
        "primary: {treatment: flat_llm, control: none, effect: 0.2, stop: {looks: 2}}\n"
    )
    short, long = said(str(file), *QUICK), said(str(file), "--details", *QUICK)
    tasks = told(str(file), *QUICK)["rows"][0]["tasks"]
    assert (
        f"For the two conditions that are compared: at most ${tasks * 40} ($2 each); attempts that are lost and "
        "tried again cost extra, and no trial starts that might take all of it above $1,500."
    ) in " ".join(short.split())
    assert re.search(r"trials notice a difference of 20\.0 points in [\d.]+% of campaigns", short)
    assert re.search(
        r"With its looks it takes \d+ trials on average where the gain is 20\.0 points, and \d+", short
    )
    assert "assumed; change it with --icc" in short
    for table in ("trials in both arms", "with the declared looks", "the same trials as tasks × reps", "seed 1"):
        assert table in long
        assert table not in short


def first_sentence(*words: str) -> str:
    return " ".join(said(*words).partition("\n\n")[0].split())


def test_a_pilot_gives_the_assumptions_and_never_its_effect(finished: Path) -> None:
    found = told("--pilot", str(finished), "--reps", "10", *QUICK)
    assert found["assumptions"]["control"] == {"value": pytest.approx(0.35), "origin": "pilot"}
    assert found["assumptions"]["icc"]["origin"] == "pilot"
    assert found["assumptions"]["icc"]["value"] == found["pilot"]["icc"]["estimate"]
    assert found["pilot"]["icc"]["low"] < found["assumptions"]["icc"]["value"] < found["pilot"]["icc"]["high"]
    # Every task gained the same fifth: nothing beyond chance is seen, which is no proof that there is nothing.
    assert found["pilot"]["sigma_int"] == 0
    assert found["assumptions"]["sigma_int"] == {"value": 0.1, "origin": "assumed"}
    assert found["treatment"] is None
    text = said("--pilot", str(finished), "--budget", "100")
    assert "the pilot's own effect is not used" in text
    assert re.search(r"^alpha +0/5 +1/5 *$", text, re.M)
    assert not (finished / "looks").exists()


def test_what_is_given_stands_above_the_pilot(finished: Path) -> None:
    found = told(
        "--pilot", str(finished), "--budget", "100", "--from", "0.2", "--icc", "0.1", "--sigma-int", "0.05"
    )
    assert {name: part["origin"] for name, part in found["assumptions"].items()} == dict.fromkeys(
        ("control", "icc", "sigma_int"), "given"
    )


def test_a_running_pilot_is_looked_at_in_complete_blocks_and_the_look_is_recorded(tmp_path: Path) -> None:
    folder = pilot(tmp_path, finished=3)
    found = told("--pilot", str(folder), "--budget", "100")
    assert (found["pilot"]["blocks"], found["pilot"]["interim"]) == (3, True)
    assert {task["trials_a"] for task in found["pilot"]["tasks"]} == {3}
    look = json.loads(DirectoryStore(tmp_path.absolute()).get("demo/looks/1.json") or b"")
    assert (look["by"], look["complete_blocks"]) == ("trialfleet power --pilot", 3)


def test_a_pilot_without_a_contrast_needs_one(tmp_path: Path) -> None:
    folder = str(pilot(tmp_path, reps=2, finished=2, primary=None))
    error = refused("--pilot", folder)
    assert (error.where, error.message) == ("--treatment", "the pilot declares no primary contrast")
    assert refused("--pilot", folder, "--treatment", "none", "--control", "none").where == "--treatment"
    named = refused("--pilot", folder, "--treatment", "intent_layer", "--control", "nothing")
    assert (named.where, named.hint) == ("--control", "one of: none, intent_layer")
    found = told("--pilot", folder, "--treatment", "intent_layer", "--control", "none", "--budget", "100")
    assert found["pilot"]["control"] == "none"


def test_a_control_that_never_passed_is_no_rate(tmp_path: Path) -> None:
    write(tmp_path, plan(reps=2, primary=PRIMARY), lambda trial: Fate(Verdict.FAILED))
    assert refused("--pilot", str(tmp_path / "demo")).hint == "say what you expect of it: --from 0.1"


@pytest.mark.parametrize(
    ("words", "where"),
    [
        ((), "trialfleet power"),
        (("--to", "0.5"), "--to"),
        (("--from", "0.5", "--to", "0.5"), "--to"),
        (("--reps", "100000"), "--reps"),
        (("--reps", "25", "--control", "0.2"), "--control"),
        (("--reps", "25", "--treatment", "none"), "--treatment"),
        (("--reps", "25", "--icc", "0.2"), "--icc"),
        (("--reps", "25", "--cost-rep", "2"), "--cost-rep"),
        (("--tasks", "5", "--test", "boschloo"), "--test"),
        (("--budget", "9", "--to", "0.5"), "--to"),
        (("--budget", "9", "campaign.yaml"), "CAMPAIGN"),
        (("nowhere.yaml",), "nowhere.yaml"),
        (("--budget", "9", "--cost-task", "10"), "trialfleet power"),
        (("--tasks", "5", "--from", "0.5", "--to", "0.6", "--icc", "0", "--sigma-int", "0.9"), "trialfleet power"),
        (("--tasks", "5", "--from", "0"), "trialfleet power"),
    ],
)
def test_bad_questions_name_the_option_and_the_way_out(words: tuple[str, ...], where: str) -> None:
    assert refused(*words).where == where


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "40"), "must be from 0 to 1; write 0.4 for 40%"),
        (("--from", "40%"), "write 0.4 for 40%"),
        (("--from", "nan"), "write 0.4 for 40%"),
        (("--icc", "1"), "below 1"),
        (("--power", "1"), "below 1"),
        (("--reps", "5;10"), "write 25, or 5,10,25"),
        (("--reps", "0"), "at least 1 rep"),
        (("--budget", "0"), "above 0"),
        (("--budget", "much"), "is no number"),
        (("--cost-task", "-1"), "0 or more"),
        (("--test", "z"), "'fisher', 'boschloo'"),
    ],
)
def test_bad_values_are_refused_where_they_stand(words: tuple[str, ...], said: str) -> None:
    ran = CliRunner().invoke(power, words)
    assert ran.exit_code == 2
    assert words[0] in ran.output
    assert said in ran.output


def test_a_campaign_of_one_condition_compares_nothing(tmp_path: Path) -> None:
    write(tmp_path, plan(conditions=("none",), reps=1), lambda trial: None)
    assert refused(str(tmp_path / "demo")).hint == "add a control, such as none"


# --- tasks of several repositories ------------------------------------------------------------------


def of_repositories(root: Path, names: str, estimand: str, tasks: Iterable[str] = ()) -> str:
    """A campaign without results: one letter of `names` is a task's repository."""
    primary = Primary.model_validate({"treatment": "intent_layer", "control": "none", "estimand": estimand})
    frozen = plan(
        tuple(tasks) or tuple(f"task-{n}" for n in range(len(names))), reps=8, primary=primary, name="planned"
    )
    placed = [task.model_copy(update={"repository": name}) for task, name in zip(frozen.tasks, names, strict=True)]
    write(root, frozen.model_copy(update={"tasks": tuple(placed)}), lambda trial: None)
    return str(root / "planned")


def test_a_claim_that_is_refused_is_no_power_of_0(tmp_path: Path) -> None:
    folder = of_repositories(tmp_path, "aaaabbbbcccc", "other_repositories")
    few = "3 repositories cannot carry a claim about others (2.0 degrees of freedom, at least 4 are needed)"
    [row] = told(folder, "--to", "0.7", *QUICK)["rows"]
    here = f"{100 * row['power']['these_tasks']['power']:.1f}%"
    assert first_sentence(folder, "--to", "0.7", *QUICK).endswith(
        f"192 trials notice a difference of 20.0 points in {here} of campaigns on these tasks, and none on tasks "
        f"like these: {few}."
    )
    alone = first_sentence("--tasks", "1", "--reps", "40", "--to", "0.7", *QUICK)
    assert "and none on tasks like these: one task says nothing of other tasks." in alone


GUESSED = "the repositories of other tasks are not known: planned as if each came from its own"


def test_other_tasks_than_the_campaign_s_are_taken_to_be_of_one_repository_each(tmp_path: Path) -> None:
    folder = of_repositories(tmp_path, "aabbccddee", "other_repositories")
    assert told(folder, "--tasks", "12", *QUICK)["claim"] == "other_repositories"
    for details in ((), ("--details",)):
        assert GUESSED in said(folder, "--tasks", "12", *QUICK, *details)
        assert GUESSED not in said(folder, *QUICK, *details)
    few = "tasks like these, 4 × 8: nothing is detected, 4 repositories cannot carry a claim about others"
    assert few in said(folder, "--tasks", "4", *QUICK)
    single = of_repositories(tmp_path / "single", "aaaa", "tasks_like_these")
    assert GUESSED not in said(single, "--tasks", "8", *QUICK)


# --- an earlier campaign's tasks --------------------------------------------------------------------


def test_an_earlier_campaign_gives_each_task_its_own_rate(finished: Path) -> None:
    found = told("--from-campaign", str(finished), "--reps", "10,20", "--cost-rep", "0.5", *QUICK)
    assert found["question"] == "known_tasks"
    seen = found["seen"]
    assert (seen["condition"], seen["blocks"], seen["reps"]) == ("none", 5, 20)
    passes = {task["task"]: (task["passes"], task["trials"]) for task in seen["tasks"]}
    assert passes == {name: (hard, 5) for name, hard in HARD.items()}
    fitted = task_difficulty(list(HARD.values()), [5] * len(HARD))
    for task in seen["tasks"]:
        assert task["rate"] == pytest.approx(float(fitted.shrunk([task["passes"]], [5])[0]))
        assert task["information"] == pytest.approx(task["rate"] * (1 - task["rate"]))
    assert [task["information"] for task in seen["tasks"]] == sorted(
        (task["information"] for task in seen["tasks"]), reverse=True
    )
    fewer, more = found["designs"]
    assert fewer["detects"]["effect"] > more["detects"]["effect"] > 0
    assert (fewer["trials"], fewer["cost"], fewer["power"]) == (2 * len(HARD) * 10, len(HARD) * 10 * 0.5, None)


def test_the_power_at_an_effect_of_these_tasks(finished: Path) -> None:
    found = told("--from-campaign", str(finished), "--reps", "25", "--to", "0.7", *QUICK)
    rates = np.array([task["rate"] for task in found["seen"]["tasks"]])
    assert found["effect"] == pytest.approx(0.7 - rates.mean())
    again = stratified_power(
        shifted(rates, found["effect"]), rates, 25, simulations=found["effort"]["simulations"], seed=99
    )
    power = found["designs"][0]["power"]
    assert power["power"] == pytest.approx(again.power, abs=4 * (again.se + power["se"]))
    asked = ("--from-campaign", str(finished), "--reps", "25", "--to", "0.7", "--cost-rep", "0.5", *QUICK)
    text = said(*asked, "--details")
    assert "each task's rate from none in demo, 5 complete blocks" in text
    assert "for tasks like these, plan with --pilot" in text
    lines = said(*asked).splitlines()
    assert lines[0].startswith("200 trials of these tasks notice a gain of ")
    assert lines[1].endswith(f"in {100 * power['power']:.1f}%.")
    assert lines[2] == "They cost about $50.00, without attempts that are lost and tried again."


@pytest.fixture(scope="module")
def opposed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Context adds six passes in 24 to half of its tasks, and takes six from the others."""

    def fate(trial: Trial) -> Fate:
        helped = trial.task in ("alpha", "beta")
        good = helped == (trial.condition == "intent_layer")
        return Fate(Verdict.PASSED if trial.rep < (15 if good else 9) else Verdict.FAILED)

    root = tmp_path_factory.mktemp("opposed")
    write(root, plan(tuple(HARD), reps=24, primary=PRIMARY), fate)
    return str(root / "demo")


def test_an_earlier_campaign_says_where_reps_add_little(finished: Path, opposed: str) -> None:
    earlier = opposed
    found = told("--from-campaign", earlier, "--reps", "8", *QUICK)
    pilot = told("--pilot", earlier, "--reps", "8", *QUICK)["pilot"]
    assert found["sigma_int"] == pilot["sigma_int"] > 0.15
    mean, icc, sigma = found["seen"]["mean"], found["seen"]["icc"], found["sigma_int"]
    assert found["balance_reps"] == pytest.approx(2 * mean * (1 - mean) * (1 - icc) / sigma**2)
    assert [(one["tasks"], one["reps"]) for one in found["frontier"]] == [
        (1, 32),
        (2, 16),
        (4, 8),
        (8, 4),
        (16, 2),
    ]
    text = said("--from-campaign", earlier, "--reps", "8", "--details", *QUICK)
    assert f"beyond {found['balance_reps']:.1f} reps (R*" in text
    assert "the same trials as tasks × reps" in text
    assert told("--from-campaign", earlier, "--reps", "8,16", *QUICK)["frontier"] == []

    alike = told("--from-campaign", str(finished), "--reps", "8", *QUICK)
    assert (alike["sigma_int"], alike["balance_reps"], alike["frontier"]) == (0, None, [])
    text = said("--from-campaign", str(finished), "--reps", "8", "--details", *QUICK)
    assert "its results show no effects that differ between tasks, so R*" in text
    other = told("--from-campaign", str(finished), "--control", "intent_layer", "--reps", "8", *QUICK)
    assert (other["sigma_int"], other["balance_reps"]) == (None, None)


def test_designs_of_known_tasks_are_by_their_repositories(tmp_path: Path, opposed: str) -> None:
    for claim in get_args(Claim):
        estimand = "other_repositories" if claim == "other_repositories" else "tasks_like_these"
        planned, of = (
            of_repositories(tmp_path / claim, "aabb", estimand, HARD),
            TaskRepositories((*"aabb",), claim),
        )
        found = told(planned, "--from-campaign", opposed, *QUICK)
        drawn = {"icc": found["seen"]["icc"], "sigma_int": found["sigma_int"], "alpha": found["effort"]["alpha"]}
        again = frontier(4, 8, mean=found["seen"]["mean"], **drawn, repositories=of)
        assert [one["mde"] for one in found["frontier"]] == [one.mde for one in again]
    text = said(planned, "--from-campaign", opposed, "--details", *QUICK)
    assert "tasks like these, 4 × 8: nothing is detected, 2 repositories cannot carry a claim" in text


def test_what_has_no_part_in_a_plan_with_known_rates_is_refused(finished: Path) -> None:
    assert refused("--from-campaign", str(finished), "--icc", "0.3").where == "--icc"
    assert refused("--from-campaign", str(finished), "--control", "nobody").where == "--control"


def test_a_price_makes_looks_cost_money(tmp_path: Path, finished: Path) -> None:
    tasks = Path(__file__).parents[3] / "tasks/quickstart/tasks"
    file = tmp_path / "campaign.yaml"
    head = (
        f"campaign: looks\nseed: 1\ntasks: ['{tasks}/*.yaml']\nconditions: [none, flat_llm]\nreps: 10\n"
        "agent: {kind: search}\nstore: store\n"
    )
    file.write_text(head + "primary: {treatment: flat_llm, control: none, effect: 0.2, stop: {looks: 2}}\n")
    found = told(str(file), "--cost-rep", "2", *QUICK)
    for one in found["looks"]["scenarios"]:
        assert one["cost"] == pytest.approx(one["trials"] / 2 * 2)
    assert "cost on average" in said(str(file), "--cost-rep", "2", "--details", *QUICK)
    assert "cost on average" not in said(str(file), "--details", *QUICK)
    file.write_text(head + "primary: {treatment: flat_llm, control: none, effect: 0.2, stop: {anytime: half}}\n")
    bets = told(str(file), *QUICK)["bets"]
    assert (bets["bets"], bets["stake"]) == ("half", pytest.approx(0.4 / 1.04))
    assert {one["reps"] for one in bets["scenarios"]} == {10, 15, 20}
    assert "with bets after every block" in said(str(file), "--details", *QUICK)
    assert refused(str(file), "--from-campaign", str(finished), *QUICK).message.endswith("none of these tasks")


DECLARED = {
    "fixed": "",
    "looks": "effect: 0.2, stop: {looks: 2}",
    "halve": "halve: true",
    "question": "question: not_worse, margin: 10",
    "metric": "metric: cost_usd",
    "joint": "question: cheaper_and_not_worse, margin: 10",
    "trend": "trend: [none, placebo, flat_llm], doses: [0, 1, 2]",
}


@pytest.mark.parametrize("kind", DECLARED)
def test_every_figure_is_at_the_alpha_that_is_named(tmp_path: Path, kind: str) -> None:
    """`--alpha` and the same in the file are one plan: looks, questions and metrics are not left at another."""
    sides = "" if kind == "trend" else "treatment: flat_llm, control: none, "
    conditions = ["none", "flat_llm", "placebo", *(["intent_layer", "preamble_only"] if kind == "halve" else [])]

    def plan_at(alpha: float, *more: str) -> str:
        file = tmp_path / f"{alpha}.yaml"
        file.write_text(
            f"campaign: declared\nseed: 1\ntasks: ['{DEMO.parent}/tasks/*.yaml']\nreps: 4\nstore: store\n"
            f"conditions: [{', '.join(conditions)}]\nagent: {{kind: search}}\n"
            f"primary: {{{sides}alpha: {alpha}, {DECLARED[kind]}}}\n"
        )
        return said(str(file), *QUICK, *more)

    assert plan_at(0.05, "--alpha", "0.2") == plan_at(0.2)
    assert plan_at(0.05) != plan_at(0.2)
    if kind == "joint":
        assert plan_at(0.2).count("one-sided") == 2
        assert "two-sided" not in plan_at(0.2)


@pytest.mark.parametrize("kind", ["question", "joint"])
def test_a_level_that_the_declaration_cannot_have_is_refused_with_a_way_out(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "campaign.yaml"
    file.write_text(
        f"campaign: declared\nseed: 1\ntasks: ['{DEMO.parent}/tasks/*.yaml']\nreps: 4\nstore: store\n"
        f"conditions: [none, flat_llm]\nagent: {{kind: search}}\n"
        f"primary: {{treatment: flat_llm, control: none, {DECLARED[kind]}}}\n"
    )
    found = refused(str(file), "--alpha", "0.3")
    assert found.message == "0.3 is no level for what is declared: Input should be less than 0.25"
    assert (found.where, found.hint) == ("--alpha", "give a smaller one, usually 0.05")


def test_a_level_outside_of_0_and_1_is_refused_before_anything_is_read() -> None:
    found = CliRunner().invoke(power, ["absent.yaml", "--alpha", "5"])
    assert found.exit_code == 2
    assert "Invalid value for '--alpha': 5 must be above 0 and below 1; write 0.4 for 40%" in found.output
