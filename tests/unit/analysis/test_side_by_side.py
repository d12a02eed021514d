"""Two campaigns next to each other: what a reader gets, over which tasks, and that nothing of it is a test."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.ledgers import put, read, trials
from tests.unit.analysis.combining_fixture import CONTROL, ONE, TREATMENT, TWO, Passes, campaign, ran
from trialfleet_analysis.commands.side_by_side import side_by_side as command
from trialfleet_analysis.side_by_side.rows import SideBySide, side_by_side
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_ledger.designs.looks import Decision, MetricResult
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.directives import Cancel, Halt
from trialfleet_ledger.store.directory import DirectoryStore

DAY = 86_400.0


def shown(root: Path) -> SideBySide:
    store = DirectoryStore(root)
    return side_by_side(open_campaign(store, "march"), open_campaign(store, "may"))


def two(
    root: Path, one: Passes = ONE, other: Passes = TWO, change: Callable[[Plan], Plan] = lambda plan: plan
) -> None:
    """march and may, planned two days apart; `change`: of may's plan."""
    ran(root, campaign("march", one, created=DAY), one)
    ran(root, change(campaign("may", other, created=3 * DAY)), other)


def output(root: Path, *words: str) -> str:
    given = [str(root / "march"), str(root / "may"), *words]
    return CliRunner().invoke(command, given, catch_exceptions=False, standalone_mode=False).output


def other_task(plan: Plan, number: int, **order: Any) -> Plan:
    tasks = list(plan.tasks)
    tasks[number] = tasks[number].model_copy(update={"order": tasks[number].order.model_copy(update=order)})
    return plan.model_copy(update={"tasks": tuple(tasks)})


def test_the_first_sentence_says_that_they_were_not_randomised_together(tmp_path: Path) -> None:
    two(tmp_path)
    assert shown(tmp_path).caveats == (
        "Not randomised together: march (planned 1970-01-02) and may (planned 1970-01-04) share no blocks. Their "
        "rates may differ because of the time, the machines or anything else that was not the same, so no test "
        "compares them. To compare their conditions, run one campaign that has them all.",
    )
    assert output(tmp_path).startswith("Not randomised together: ")


def test_rates_are_those_of_each_report_where_all_tasks_are_shared(tmp_path: Path) -> None:
    two(tmp_path)
    found = {(row.campaign, row.condition): row for row in shown(tmp_path).conditions}
    for name in ("march", "may"):
        for own in read(DirectoryStore(tmp_path), name).conditions:
            row = found.pop((name, own.condition))
            assert (row.rate, row.passes, row.valid) == (own.these_tasks, own.passes, own.valid)
    assert found == {}


def test_nothing_that_is_shown_is_a_p_or_a_difference(tmp_path: Path) -> None:
    two(tmp_path)
    text = output(tmp_path)
    assert "4 tasks of the same digest that both measured" in text
    assert "70.0%" in text
    assert not any(word in text for word in ("p =", "p <", "p-value", "points", " − "))
    given = json.loads(output(tmp_path, "--json"))
    assert set(given["conditions"][0]) == {"campaign", "condition", "agent", "passes", "valid", "lost", "rate"}


def test_a_task_whose_digest_differs_is_another_task(tmp_path: Path) -> None:
    two(tmp_path, change=lambda plan: other_task(plan, 1, digest="e" * 64))
    found = shown(tmp_path)
    assert found.tasks == ("task-0", "task-2", "task-3")
    ((task, reason),) = ((gap.task, gap.reason) for gap in found.left_out)
    assert task == "task-1"
    assert reason.startswith("another digest in each")
    rates = {(row.campaign, row.condition): (row.passes, row.valid) for row in found.conditions}
    assert rates["march", TREATMENT] == (11, 15)
    assert rates["may", CONTROL] == (5, 15)
    assert re.search(r"^left out\n *task +why *\n *task-1 +another digest in each", output(tmp_path), re.MULTILINE)


def test_a_task_of_one_campaign_alone_is_named(tmp_path: Path) -> None:
    two(tmp_path, other=TWO[:3])
    found = shown(tmp_path)
    assert [(gap.task, gap.reason) for gap in found.left_out] == [("task-3", "in march alone")]


def test_without_a_shared_task_there_is_nothing_to_show(tmp_path: Path) -> None:
    two(tmp_path, ONE[:1], TWO[:1], change=lambda plan: other_task(plan, 0, digest="e" * 64))
    with pytest.raises(OperatorError, match="march and may share no task that both measured") as caught:
        shown(tmp_path)
    assert "another one" in (caught.value.hint or "")


def test_one_campaign_twice_is_refused(tmp_path: Path) -> None:
    two(tmp_path)
    same = open_campaign(DirectoryStore(tmp_path), "march")
    with pytest.raises(OperatorError, match="given twice"):
        side_by_side(same, same)


def test_other_texts_and_an_unfinished_campaign_are_said_and_the_look_is_recorded(tmp_path: Path) -> None:
    ran(tmp_path, campaign("march", ONE, created=DAY), ONE)
    open_plan = campaign("may", TWO, created=3 * DAY, reps=5, texts={"target_files": "a" * 64})
    ran(tmp_path, open_plan.model_copy(update={"reps": 6}), TWO)
    (tmp_path / "may/outcomes").iterdir().__next__().unlink()
    text = output(tmp_path)
    assert "! Models read other texts in each: " in text
    assert "target_files" in text
    assert re.search(
        r"! Not all trials of may are over .*: its rates are made of 4 complete\s+blocks of 6, and", text
    )
    looks = [path.read_text() for path in (tmp_path / "may/looks").iterdir()]
    assert len(looks) == 1
    assert "trialfleet side-by-side" in looks[0]
    assert not (tmp_path / "march/looks").exists()


def cancel(store: DirectoryStore) -> None:
    put(store, "may/cancel.json", Cancel(at=2.0, by="me", now=True))


def halt(store: DirectoryStore) -> None:
    put(store, "may/halts/1.json", Halt(number=1, at=2.0, task="task-1", reason="set-up"))


def end_at_a_look(store: DirectoryStore) -> None:
    """The plan declares no looks: what a decision says is enough here."""
    limits: dict[str, Any] = {"lower": None, "upper": None, "chance": None}
    result = MetricResult(difference=-1, p_value=0.001, level=0.01, seed=1, paths=9, verdict="benefit", **limits)
    made: dict[str, Any] = {"epoch": 1, "stage": (), "outcomes": "0" * 64, "amendments": 0}
    put(store, "may/decisions/1.json", Decision(number=1, at=2.0, blocks=3, result=result, **made))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (cancel, "(it was cancelled, and nothing more starts): its rates are made of 4 complete blocks of 6"),
        (halt, "runs what is missing): its rates are made of 6 complete blocks of 6"),
        (
            end_at_a_look,
            "(a declared look has ended it, and nothing more starts): its rates are made of 3 complete",
        ),
    ],
)
def test_why_not_all_trials_are_over_is_said(
    tmp_path: Path, change: Callable[[DirectoryStore], None], said: str
) -> None:
    ran(tmp_path, campaign("march", ONE, created=DAY), ONE)
    frozen = campaign("may", TWO, created=3 * DAY, reps=5)
    ran(tmp_path, frozen.model_copy(update={"reps": 6}), TWO)
    open_trial = next(one for one in trials(frozen) if (one.task, one.block) == ("task-1", 4))
    (tmp_path / f"may/outcomes/{open_trial.id}.json").unlink()
    change(DirectoryStore(tmp_path))
    [sentence] = [one for one in shown(tmp_path).caveats if one.startswith("Not all trials of may are over")]
    assert said in sentence


def test_tasks_that_one_has_not_measured_are_not_counted_as_of_another_digest(tmp_path: Path) -> None:
    every = frozenset(("task-1", CONTROL, rep) for rep in range(5))
    ran(tmp_path, campaign("march", ONE, created=DAY), ONE, lost=every)
    ran(tmp_path, campaign("may", TWO, created=3 * DAY), TWO)
    text = output(tmp_path)
    assert "3 tasks of the same digest that both measured" in text
    assert re.search(r"task-1 +no valid trial under none in march", text)


def test_a_condition_without_a_result_takes_no_task_from_the_others(tmp_path: Path) -> None:
    every = frozenset((f"task-{number}", CONTROL, rep) for number in range(4) for rep in range(5))
    ran(tmp_path, campaign("march", ONE, created=DAY), ONE, lost=every)
    ran(tmp_path, campaign("may", [(5, 0)] * 4, created=3 * DAY), [(5, 0)] * 4)
    rates = {
        (row.campaign, row.condition): (row.passes, row.valid, row.lost) for row in shown(tmp_path).conditions
    }
    assert rates["march", CONTROL] == (0, 0, 20)
    assert rates["march", TREATMENT] == (14, 20, 0)
    assert (rates["may", TREATMENT], rates["may", CONTROL]) == ((20, 20, 0), (0, 20, 0))
    assert re.search(
        r"march +none +search 1 +– +– +0/0 +20 *\n +4 of 4 tasks have no valid trial", output(tmp_path)
    )
    assert "100.0%  83.9 to 100.0%" in output(tmp_path)


def test_names_reach_a_terminal_without_escapes(tmp_path: Path) -> None:
    two(tmp_path)
    found = open_campaign(DirectoryStore(tmp_path), "march")
    agents = {
        name: own.model_copy(update={"spec": own.spec.model_copy(update={"version": "1\x1b[31m"})})
        for name, own in found.frame.plan.agents.items()
    }
    (tmp_path / "hostile").mkdir()
    two(tmp_path / "hostile", change=lambda plan: plan.model_copy(update={"agents": agents}))
    assert "\x1b" not in output(tmp_path / "hostile")
