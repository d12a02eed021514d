"""Conditions that deliver the same to the same agent: comparing two of them is an A/A check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from trialfleet_agents.protocol import Identity
from trialfleet_agents.workspace_settings import deliverable_files
from trialfleet_deliveries.delivery import compose
from trialfleet_deliveries.placement import FileReading
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.task_order import TaskOrder
from trialfleet_repository.trees import EntryKind, Tree, follow_links, read_files, unpack

_OF_CONTEXT = {"files", "context", "node", "truncated"}  # of an order: two of them may deliver the same
_NOT_DELIVERED = {"name", "digest", "forbidden", "undelivered", "tokenizer"}


def list_same_arms(plan: Plan, identities: Mapping[str, Identity], objects: Objects) -> Iterator[str]:
    """Warnings: one for each pair of conditions that differ in nothing that the agent gets, in every task."""
    orders = {(cell.task, cell.condition.name): cell.condition for cell in plan.cells}
    for one, other in combinations(plan.conditions, 2):
        if plan.agents[one] != plan.agents[other]:
            continue
        kind, reading = identities[one].kind, identities[one].reach.reading
        pairs = ((task.order, orders[task.order.id, one], orders[task.order.id, other]) for task in plan.tasks)
        if all(_is_same(*pair, kind, reading, objects) for pair in pairs):
            yield (
                f"conditions.{one} and conditions.{other} deliver the same to {kind} in every task: "
                "their comparison is an A/A check, and any difference between them is chance"
            )


def _is_same(
    task: TaskOrder, one: ConditionOrder, other: ConditionOrder, kind: str, reading: FileReading, objects: Objects
) -> bool:
    apart = _OF_CONTEXT | _NOT_DELIVERED
    if one.model_dump(exclude=apart) != other.model_dump(exclude=apart):
        return False
    if (one.files, one.context) == (other.files, other.context):
        return True
    return _deliver(task, one, kind, reading, objects) == _deliver(task, other, kind, reading, objects)


def _deliver(
    task: TaskOrder, condition: ConditionOrder, kind: str, reading: FileReading, objects: Objects
) -> tuple[Any, ...]:
    """What the agent gets of it."""

    def tree(digest: str | None) -> Tree:
        return {} if digest is None else unpack(objects.get(digest))

    files = tree(condition.files)
    delivered, _ = deliverable_files(kind, read_files(files))
    composed = compose(
        condition,
        task=objects.get(task.prompt).decode(),
        files=delivered or None,
        context=read_files(tree(condition.context)) or None,
        text=None if condition.text is None else objects.get(condition.text).decode(),
        reading=reading,
    )
    scripts = {path for path, entry in follow_links(files).items() if entry.kind is EntryKind.EXEC}
    said = (composed.prompt, composed.system, composed.added, composed.hook_nodes, composed.rule)
    return (*said, composed.files, scripts & composed.files.keys())
