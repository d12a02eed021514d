"""Decides the inline text of a task under a condition, once for all its trials: its words, its length, and whether
it was cut. Attempts only place it, except for the text of a pre-flight, which each attempt makes."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from trialfleet_controller.planning.predicted_targets import order_digest, wrong_targets
from trialfleet_deliveries import tokens
from trialfleet_deliveries.inline_texts import fitting, neutral, take_nearest
from trialfleet_deliveries.naming import globs_of, naming
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.condition_order import ConditionOrder, InlineSpec
from trialfleet_ledger.records.task_order import Prediction, TaskOrder
from trialfleet_repository.trees import read_files, unpack

_MOST = 5  # files that a text names


def with_inline_text(
    order: ConditionOrder,
    condition: Condition,
    task: TaskOrder,
    prediction: Prediction | None,
    near: Sequence[str],
    *,
    seed: int,
    objects: Objects,
) -> ConditionOrder:
    """The order with its text stored as an object and its digest computed again. Raises `OperatorError` for a
    context that cannot be delivered.

    If the prediction abstains, all conditions that depend on it add nothing: they differ in what they add, never
    in when.
    """
    spec = order.inline
    if spec is None:
        return order
    if spec.text is not None:
        globs = (spec.globs or ("**",)) if spec.channel == "rules" else ()
        decided = store_text(spec.text, objects) | {"globs": globs}
    elif spec.source == "nearest":
        decided = _nearest(order, spec, task.anchor, objects)
    else:
        decided = _naming_files(condition, spec, task, prediction, near, seed=seed, objects=objects)
    made = order.model_copy(update=decided | {"tokenizer": tokens.name()})
    return made.model_copy(update={"digest": order_digest(made)})


def store_text(text: str, objects: Objects) -> dict[str, Any]:
    """The fields of an order that hold a text."""
    return {"text": objects.put(text.encode()), "text_tokens": tokens.count(text)}


def _nearest(order: ConditionOrder, spec: InlineSpec, anchor: str | None, objects: Objects) -> dict[str, Any]:
    tree = {} if order.context is None else read_files(unpack(objects.get(order.context)))
    found = take_nearest(spec, tree, anchor)
    decided: dict[str, Any] = {"node": found.node, "truncated": found.truncated}
    if found.node is None or not found.text:
        return decided
    globs = (spec.globs or (f"{posixpath.dirname(found.node)}/**",)) if spec.channel == "rules" else ()
    return decided | {"text": objects.put(found.text.encode()), "text_tokens": found.tokens, "globs": globs}


def _naming_files(
    condition: Condition,
    spec: InlineSpec,
    task: TaskOrder,
    prediction: Prediction | None,
    near: Sequence[str],
    *,
    seed: int,
    objects: Objects,
) -> dict[str, Any]:
    predicted = () if prediction is None else tuple(target.path for target in prediction.targets)[:_MOST]
    predicted = fitting(predicted, max_tokens=spec.max_tokens)
    named = predicted
    if spec.source == "oracle_targets":
        named = fitting(task.targets[:_MOST], max_tokens=spec.max_tokens)
    elif spec.source == "wrong_targets":
        named = wrong_targets(near, task.targets, len(predicted), seed=seed, task=task.id)
    text = naming(named) if named else None
    if spec.source == "placebo_matched" and text is not None:
        text = neutral(tokens.count(text), language=task.language, test_framework=task.test_framework)
    frozen = {} if text is None or spec.source == "preflight" else store_text(text, objects)
    return frozen | {
        "targets": () if spec.source == "placebo_matched" else named,
        "abstained": None if named else _why(condition, prediction),
        "globs": (spec.globs or globs_of(named)) if spec.channel == "rules" else (),
    }


def _why(condition: Condition, prediction: Prediction | None) -> str:
    if condition.ceiling or prediction is None:
        return "no_source"
    return prediction.abstained or "too_long"
