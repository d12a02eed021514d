"""Which pairs of conditions a plan calls an A/A check."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import plans
from tests.support.plans import planned_task, task_order
from trialfleet_agents.protocol import Identity
from trialfleet_controller.planning.frozen_text import with_inline_text
from trialfleet_controller.planning.same_arms import list_same_arms
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Cell
from trialfleet_ledger.records.condition_order import ConditionOrder, InlineSpec
from trialfleet_repository.trees import EntryKind, Tree, TreeEntry, link_to, pack

SETTINGS = b'{"env": {"ANTHROPIC_BASE_URL": "http://x"}, "outputStyle": "x"}'
ROOT = {"CLAUDE.md": TreeEntry(b"# Shop\n\nCents.\n")}
SCRIPT = b"#!/bin/sh\n"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (ROOT, ROOT, True),
        (ROOT, {"CLAUDE.md": TreeEntry(b"# Shop\n\nEuros.\n")}, False),
        (ROOT, None, False),
        # under another name, which becomes the one that the agent loads
        (ROOT, {"AGENTS.md": ROOT["CLAUDE.md"]}, True),
        # only a command differs, which is removed
        (ROOT, {"CLAUDE.md": TreeEntry(b"# Shop\n\nCents.\n\nRun `make test` first.\n")}, True),
        # only what no campaign may choose
        (
            {**ROOT, ".claude/settings.json": TreeEntry(b'{"outputStyle": "x"}')},
            {**ROOT, ".claude/settings.json": TreeEntry(SETTINGS)},
            True,
        ),
        ({".claude/settings.json": TreeEntry(b"no json")}, None, True),
        # a script that does not run
        (
            {**ROOT, ".claude/a.sh": TreeEntry(SCRIPT)},
            {**ROOT, ".claude/a.sh": TreeEntry(SCRIPT, EntryKind.EXEC)},
            False,
        ),
        ({**ROOT, "a/CLAUDE.md": link_to("../CLAUDE.md")}, {**ROOT, "a/CLAUDE.md": ROOT["CLAUDE.md"]}, True),
    ],
)
def test_what_makes_two_arms_the_same(tmp_path: Path, one: Tree | None, other: Tree | None, same: bool) -> None:
    objects = Objects(tmp_path)
    prompt = objects.put(b"Mend it.\n")
    trees = {"one": one, "other": other}
    orders = {
        name: ConditionOrder(
            name=name, digest=digest(name), files=None if tree is None else objects.put(pack(tree))
        )
        for name, tree in trees.items()
    }
    tasks = [planned_task(name, order=task_order(name, prompt=prompt)) for name in ("a", "b")]
    cells = tuple(Cell(task=task, condition=order) for task in ("a", "b") for order in orders.values())
    plan = plans.make_plan(tasks, {"one": Condition(), "other": Condition()}, cells=cells)
    reach = Reach(root_file="CLAUDE.md", nested=True)
    identities = {name: Identity(kind="claude-code", version="1", digest="1" * 64, reach=reach) for name in trees}
    said = list(list_same_arms(plan, identities, objects))
    assert [line.partition(" deliver")[0] for line in said] == ["conditions.one and conditions.other"] * same


@pytest.mark.parametrize(("words", "same"), [("Cents.", True), ("Euros.", False)])
def test_a_text_from_a_node_of_another_name_is_the_same_text(tmp_path: Path, words: str, same: bool) -> None:
    objects = Objects(tmp_path)
    condition = Condition(inline=InlineSpec(source="nearest"))
    order = task_order("a", prompt=objects.put(b"Mend it.\n")).model_copy(update={"anchor": "shop/cart.py"})
    nodes = {"one": ("AGENTS.md", "Cents."), "other": ("CLAUDE.md", words)}
    cells: list[Cell] = []
    for name, (file, text) in nodes.items():
        tree = pack({f"shop/{file}": TreeEntry(f"## Pitfalls\n\n- {text}\n".encode())})
        bare = ConditionOrder(name=name, digest="0" * 64, context=objects.put(tree), inline=condition.inline)
        frozen = with_inline_text(bare, condition, order, None, (), seed=7, objects=objects)
        cells.append(Cell(task="a", condition=frozen))
    tasks = [planned_task("a", order=order)]
    plan = plans.make_plan(tasks, dict.fromkeys(nodes, condition), cells=tuple(cells))
    identities = {name: Identity(kind="claude-code", version="1", digest="1" * 64) for name in nodes}
    assert len(list(list_same_arms(plan, identities, objects))) == same
