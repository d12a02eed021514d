"""What an agent cannot be given: refused with a way out, or left out and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_agents.protocol import Identity
from trialfleet_controller.planning.deliveries import reachable
from trialfleet_controller.planning.predicted_targets import order_digest
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.condition_order import ConditionOrder, InlineSpec
from trialfleet_repository.trees import TreeEntry, pack

CODEX = Reach(root_file="AGENTS.md", hook_after=True, system=True)
BARE = Reach(root_in_prompt=True)
WHERE = "c.yaml:7: conditions"


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(tmp_path)


def resolved(objects: Objects, condition: Condition, reach: Reach) -> ConditionOrder:
    tree = {path: TreeEntry(b"Words.\n") for path in ("CLAUDE.md", "a/AGENTS.md")}
    order = ConditionOrder(
        name="one",
        digest="0" * 64,
        files=objects.put(pack(tree)) if condition.files else None,
        pull=condition.pull,
        hook=condition.hook,
        fail_fast=condition.fail_fast,
        inline=condition.inline,
    )
    identity = Identity(kind="codex", version="1", digest="0" * 64, reach=reach)
    return reachable(order, condition, identity, objects, where=WHERE)


def test_nested_files_that_nothing_delivers_are_refused_with_what_would_work(objects: Objects) -> None:
    with pytest.raises(OperatorError, match="the agent codex does not support nested context files") as caught:
        resolved(objects, Condition(files="tree"), CODEX)
    assert caught.value.where == WHERE
    assert all(
        way in (caught.value.hint or "") for way in ("pull: true", "hook: on_read", "delivery: best_effort")
    )


@pytest.mark.parametrize(
    ("condition", "reach"),
    [
        (Condition(files="tree", pull=True), CODEX),
        (Condition(files="tree", hook="on_read"), CODEX),
        (Condition(files="tree"), CODEX.model_copy(update={"nested": True})),
        (Condition(files="tree"), Reach()),
        (Condition(), BARE),
    ],
)
def test_what_arrives_is_left_alone(objects: Objects, condition: Condition, reach: Reach) -> None:
    order = resolved(objects, condition, reach)
    assert (order.undelivered, order.hook, order.pull) == ((), condition.hook, condition.pull)


def test_what_cannot_arrive_is_left_out_and_named(objects: Objects) -> None:
    asked = Condition(
        files="tree",
        hook="on_read",
        fail_fast=True,
        inline=InlineSpec(source="nearest", channel="system"),
        delivery="best_effort",
    )
    order = resolved(objects, asked, BARE)
    assert (order.hook, order.fail_fast, order.inline) == (None, False, None)
    assert len(order.undelivered) == 3
    assert order.digest == order_digest(order)
    assert order.files is not None
    nested = resolved(objects, Condition(files="tree", delivery="best_effort"), BARE)
    assert [words.split(",")[0] for words in nested.undelivered] == ["nested context files"]
