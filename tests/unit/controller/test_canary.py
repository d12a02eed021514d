"""Lines that a cell's gateway watches for are found when the plan is made, and are no part of any identity."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.plans import make_plan
from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_controller.planning.canaries import watched
from trialfleet_controller.planning.freeze import check_differing, check_empty
from trialfleet_controller.planning.frozen_text import with_inline_text
from trialfleet_controller.planning.own_contexts import with_contexts
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Cell, PlannedAgent
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import ConditionOrder, InlineSource, InlineSpec
from trialfleet_ledger.records.task_order import TaskOrder
from trialfleet_ledger.trial_order import trials
from trialfleet_repository.trees import TreeEntry, pack
from trialfleet_tasks.contexts import context_object
from trialfleet_tasks.taskfile import LoadedTask, load_task_file

TASK = """\
repo: {environment: {lock: lock.txt}, contexts: {%s}}
tasks:
  - {id: one, source: {kind: path, pre_fix: a, fixed: b}, prompt_source: issue, issue: It breaks.}
"""
FLAT = "Prices are floats in euros, kept in the folder shop/pricing of this repository."
TREE = "Vouchers are looked up by their number, and one that has been used is never looked up again."
README = "The rules came from the old till in 2009, and nobody has dared to round them otherwise since."


def task_of(folder: Path, **contexts: str) -> LoadedTask:
    """`contexts`: name -> text of its CLAUDE.md."""
    for name, text in contexts.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "CLAUDE.md").write_text(text)
    (folder / "lock.txt").write_text("")
    (folder / "task.yaml").write_text(TASK % ", ".join(f"{name}: {name}" for name in contexts))
    return load_task_file(folder / "task.yaml").tasks[0]


def order_of(objects: Objects) -> TaskOrder:
    """Its workspace holds one sentence that a context may quote."""
    return (
        make_plan()
        .tasks[0]
        .order.model_copy(
            update={
                "workspace": objects.put(
                    pack({"a.py": TreeEntry(b"#"), "docs/x.md": TreeEntry(f"{README}\n".encode())})
                ),
                "prompt": objects.put(b"It breaks.\n"),
            }
        )
    )


def conditions(task: LoadedTask, objects: Objects) -> list[ConditionOrder]:
    bare = ConditionOrder(name="none", digest="0" * 64)
    flat = ConditionOrder(name="flat", digest="1" * 64, files=context_object(task, "flat", objects=objects))
    return [bare, flat]


def test_each_cell_watches_for_what_only_others_deliver(tmp_path: Path) -> None:
    objects = Objects(tmp_path / "objects")
    task = task_of(tmp_path, flat=f"{FLAT}\n\n{README}\n", tree=f"{TREE}\n\n{FLAT}\n")
    cells = watched(task, order_of(objects), conditions(task, objects), objects)
    bare, flat = (cell.condition for cell in cells)
    assert bare.forbidden == {"flat": (FLAT,), "tree": (TREE, FLAT)}
    assert flat.forbidden == {"tree": (TREE,)}
    assert (bare.digest, flat.digest) == ("0" * 64, "1" * 64)


@pytest.mark.parametrize(
    "own",
    [
        f"{FLAT}\n",
        FLAT.replace(", kept", ",\n  kept"),
        FLAT.replace("euros,", "<!-- since 2019 -->\neuros,"),
        f"{FLAT} {TREE} {README}",
    ],
)
def test_what_a_condition_delivers_in_another_form_is_not_forbidden_to_it(tmp_path: Path, own: str) -> None:
    """Wrapped, joined when its agent strips a comment, or longer than a watched line."""
    objects = Objects(tmp_path / "objects")
    other = own if own.endswith(README) else FLAT
    task = task_of(tmp_path, flat=own, tree=f"{other}\n")
    bare, flat = (cell.condition for cell in watched(task, order_of(objects), conditions(task, objects), objects))
    assert bare.forbidden["tree"] == (other[:160].rstrip(),)
    assert flat.forbidden == {}


@pytest.mark.parametrize(("source", "anchor", "empty"), [
    ("nearest", "shop/cart.py", False),
    ("nearest", "cli.py", True),  # only the root's node covers it
    ("nearest", None, True),
    ("targets", "shop/cart.py", True),  # nothing was predicted
    ("preflight", None, False),  # each attempt makes it
])  # fmt: skip
def test_a_cell_whose_condition_has_nothing_to_say(
    tmp_path: Path, source: InlineSource, anchor: str | None, empty: bool
) -> None:
    objects = Objects(tmp_path / "objects")
    (tmp_path / "tree" / "shop").mkdir(parents=True)
    (tmp_path / "tree" / "shop" / "AGENTS.md").write_text("# Shop\n\n## Pitfalls\n\n- Prices are in cents.\n")
    task = task_of(tmp_path, tree=TREE)
    tree = context_object(task, "tree", objects=objects)
    condition = Condition(inline=InlineSpec(source=source))
    near = ConditionOrder(name="near", digest="0" * 64, context=tree, inline=condition.inline)
    order = order_of(objects).model_copy(update={"anchor": anchor})
    near = with_inline_text(near, condition, order, None, (), seed=7, objects=objects)
    bare = ConditionOrder(name="none", digest="1" * 64)
    assert [cell.empty for cell in watched(task, order, [near, bare], objects)] == [empty, False]


def test_a_campaign_whose_condition_is_mostly_empty_is_refused(tmp_path: Path) -> None:
    task_of(tmp_path, tree=TREE)
    text = "{campaign: c, seed: 1, tasks: [task.yaml], conditions: [none], reps: 1, agent: {kind: nop}, store: out"
    (tmp_path / "campaign.yaml").write_text(text + "}")
    file = load_campaign(tmp_path / "campaign.yaml")

    def cells(*empty: bool) -> list[Cell]:
        condition = ConditionOrder(name="none", digest="0" * 64)
        return [Cell(task=f"t{n}", condition=condition, empty=each) for n, each in enumerate(empty)]

    check_empty(file, cells(True, False))
    with pytest.raises(OperatorError, match="none has nothing to say for 2 of 3 tasks: t0, t2"):
        check_empty(file, cells(True, False, True))
    (tmp_path / "campaign.yaml").write_text(text + ", allow_empty: true}")
    check_empty(load_campaign(tmp_path / "campaign.yaml"), cells(True, True))


def test_two_conditions_that_differ_in_nothing_are_refused_with_both_ways_out(tmp_path: Path) -> None:
    task_of(tmp_path, tree=TREE)
    text = (
        "{campaign: c, seed: 1, tasks: [task.yaml], conditions: {one: {}, two: {}, three: {model: m}}, reps: 1, "
    )
    (tmp_path / "campaign.yaml").write_text(text + "agent: {kind: nop}, store: out}")
    file = load_campaign(tmp_path / "campaign.yaml")
    agents = {
        name: PlannedAgent(spec=AgentSpec(kind="nop", model="m" if name == "three" else None), digest="0" * 64)
        for name in file.conditions
    }

    def cells(**files: str) -> list[Cell]:
        orders = (ConditionOrder(name=n, digest="0" * 64, files=files.get(n)) for n in ("one", "two", "three"))
        return [Cell(task="t", condition=order) for order in orders]

    check_differing(file, cells(one="a" * 64, two="b" * 64), agents)
    with pytest.raises(OperatorError, match="one and two differ in nothing") as caught:
        check_differing(file, cells(), agents)
    assert "allow_same: true" in (caught.value.hint or "")
    assert "two" in (caught.value.where or "")
    (tmp_path / "campaign.yaml").write_text(text + "agent: {kind: nop}, store: out, allow_same: true}")
    check_differing(load_campaign(tmp_path / "campaign.yaml"), cells(), agents)


def test_a_further_context_changes_no_trial(tmp_path: Path) -> None:
    objects, plan = Objects(tmp_path / "objects"), make_plan(conditions={"none": Condition(), "flat": Condition()})
    few = task_of(tmp_path, flat=FLAT)
    before = list(watched(few, order_of(objects), conditions(few, objects), objects))
    more = task_of(tmp_path, flat=FLAT, tree=TREE)
    after = list(watched(more, order_of(objects), conditions(more, objects), objects))
    assert before != after
    ids = [
        trials(plan.model_copy(update={"cells": tuple(c.model_copy(update={"task": "task-0"}) for c in cells)}))
        for cells in (before, after)
    ]
    assert ids[0] == ids[1]


def test_a_context_that_cannot_be_read_has_no_forbidden_lines(tmp_path: Path) -> None:
    """It is refused where a condition delivers it."""
    objects = Objects(tmp_path / "objects")
    task = task_of(tmp_path, flat=FLAT, tree=TREE)
    orders = conditions(task, objects)
    (tmp_path / "tree" / "CLAUDE.md").unlink()
    bare, flat = (cell.condition for cell in watched(task, order_of(objects), orders, objects))
    assert (bare.forbidden, flat.forbidden) == ({"flat": (FLAT,)}, {})
    with pytest.raises(OperatorError, match=r"one: contexts\.tree"):
        context_object(task, "tree", objects=objects)


def test_a_context_of_the_campaign_and_of_a_task_is_refused(tmp_path: Path) -> None:
    task = task_of(tmp_path, flat=FLAT)
    (tmp_path / "CLAUDE.md").write_text(FLAT)
    subprocess.run(("git", "init", "-q", str(tmp_path)), check=True)
    text = (
        "{campaign: c, seed: 1, tasks: [task.yaml], contexts: {NAME: {worktree: .}}, conditions: [none], reps: 1, "
    )
    for name, twice in (("flat", True), ("mine", False)):
        (tmp_path / "c.yaml").write_text(text.replace("NAME", name) + "agent: {kind: nop}, store: out}")
        file = load_campaign(tmp_path / "c.yaml")
        if twice:
            with pytest.raises(OperatorError, match="'flat' is a context of this campaign and of the task one"):
                with_contexts(file, [task], Objects(tmp_path / "objects"))
        else:
            (extended,) = with_contexts(file, [task], Objects(tmp_path / "objects"))
            assert extended.contexts.keys() == {"flat", "mine"}
            assert extended.contexts["mine"].startswith("sha256:")
