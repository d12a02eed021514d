"""Lines that a cell's gateway watches for are found when the plan is made, and are no part of any identity."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.plans import make_plan
from trialfleet_controller.planning.canaries import watched
from trialfleet_controller.trial_order import trials
from trialfleet_ledger.campaign import Cell
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records import ConditionOrder, TaskOrder
from trialfleet_runner.trees import TreeEntry, pack
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
    bare, flat = watched(task, order_of(objects), conditions(task, objects), objects)
    assert bare.forbidden == {"flat": (FLAT,), "tree": (TREE, FLAT)}
    assert flat.forbidden == {"tree": (TREE,)}
    assert (bare.digest, flat.digest) == ("0" * 64, "1" * 64)


def test_a_further_context_changes_no_trial(tmp_path: Path) -> None:
    objects, plan = Objects(tmp_path / "objects"), make_plan()
    few = task_of(tmp_path, flat=FLAT)
    before = list(watched(few, order_of(objects), conditions(few, objects), objects))
    more = task_of(tmp_path, flat=FLAT, tree=TREE)
    after = list(watched(more, order_of(objects), conditions(more, objects), objects))
    assert before != after
    ids = [
        trials(plan.model_copy(update={"cells": tuple(Cell(task="task-0", condition=c) for c in orders)}))
        for orders in (before, after)
    ]
    assert ids[0] == ids[1]


def test_a_context_that_cannot_be_read_is_refused_before_anything_runs(tmp_path: Path) -> None:
    objects = Objects(tmp_path / "objects")
    task = task_of(tmp_path, flat=FLAT, tree=TREE)
    orders = conditions(task, objects)
    (tmp_path / "tree" / "CLAUDE.md").unlink()
    with pytest.raises(OperatorError, match=r"one: contexts\.tree"):
        list(watched(task, order_of(objects), orders, objects))
