"""Prompts composed as planning and a runner do it, without a campaign."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.plans import make_plan
from trialfleet_controller.planning.frozen_text import store_text, with_inline_text
from trialfleet_deliveries import tokens
from trialfleet_deliveries.composed import Composed
from trialfleet_deliveries.delivery import compose
from trialfleet_deliveries.placement import AS_NAMED, FileReading
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_repository.trees import TreeEntry, pack


def compose_planned(
    order: ConditionOrder,
    *,
    task: str,
    files: Mapping[str, bytes] | None = None,
    context: Mapping[str, bytes] | None = None,
    anchor: str | None = None,
    text: str | None = None,
    reading: FileReading = AS_NAMED,
) -> Composed:
    """`context`: the tree of `nearest` and of the hook. `text`: what planning has decided for another source."""
    with tempfile.TemporaryDirectory() as folder:
        objects = Objects(Path(folder))
        if order.inline is not None and order.inline.source == "nearest":
            packed = pack({path: TreeEntry(data) for path, data in (context or {}).items()})
            given = order.model_copy(update={"context": objects.put(packed)})
            planned = make_plan().tasks[0].order.model_copy(update={"anchor": anchor})
            condition = Condition(inline=order.inline)
            order = with_inline_text(given, condition, planned, None, (), seed=7, objects=objects)
            text = None if order.text is None else objects.get(order.text).decode()
        elif order.inline is not None:
            stored = {} if text is None else store_text(text, objects)
            order = order.model_copy(update={"tokenizer": tokens.name(), **stored})
    return compose(order, task=task, files=files, context=context, text=text, reading=reading)
