"""In which deliveries two conditions differ, and which conditions would tell the parts of a difference apart.

A contrast of conditions that differ in several deliveries compares two packages. It is a fair comparison of these,
and says nothing of any one delivery: that question is refused, with the conditions that could answer it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, get_args

import yaml

from trialfleet_analysis.report.document.contrasts import ArmChange, Composition, DeliveryChange
from trialfleet_runner.conditions import Condition
from trialfleet_runner.errors import OperatorError

DeliveryName = Literal["files", "inline", "hook", "pull", "fail_fast"]
DELIVERIES: tuple[DeliveryName, ...] = get_args(DeliveryName)


def compose(treatment: Condition, control: Condition, ran: Mapping[str, Condition]) -> Composition:
    """`ran`: the campaign's conditions; what is among them is not missing.

    >>> from trialfleet_runner.conditions import PRESETS
    >>> found = compose(PRESETS["intent_layer_preamble"], PRESETS["intent_layer"], PRESETS)
    >>> [(change.delivery, change.change) for change in found.changes]
    [('inline', 'added'), ('pull', 'dropped')]
    >>> found.missing
    ('{files: tree, pull: true, hook: on_read, inline: {source: nearest}}',)
    """
    changes = tuple(
        DeliveryChange(name, _change(_delivered(treatment, name), _delivered(control, name)))
        for name in DELIVERIES
        if _delivered(treatment, name) != _delivered(control, name)
    )
    known = [_same(condition) for condition in ran.values()]
    between = _between(treatment, control, [change.delivery for change in changes])
    return Composition(changes, tuple(written(step) for step in between if _same(step) not in known))


def refuse_aliased(treatment: str, control: str, found: Composition, *, where: str) -> None:
    """Raises `OperatorError` when more than one delivery differs, naming them and the missing condition."""
    if not found.confounded:
        return
    parts = " and ".join(change.delivery for change in found.changes)
    add = f"a condition {' and one '.join(found.missing)}" if found.missing else "the steps that lie between"
    raise OperatorError(
        f"{treatment} and {control} differ in {parts}: no effect can be told from another's",
        where=where,
        hint=f"compare with {add}; or compare the two as packages with --packages",
    )


def written(condition: Condition) -> str:
    """As in a campaign file, on one line."""
    plain = condition.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(plain, default_flow_style=True, sort_keys=False, width=1000).strip()


def _between(treatment: Condition, control: Condition, changed: list[DeliveryName]) -> Iterator[Condition]:
    """The steps from one to the other, one delivery at a time; files come first, since pull and hook point at
    them."""
    start, end = (treatment, control) if control.files and not treatment.files else (control, treatment)
    step = start
    for name in changed[:-1]:
        step = step.model_copy(update={name: getattr(end, name)})
        yield step


def _delivered(condition: Condition, name: DeliveryName) -> object:
    """What reaches the agent; inline text and hook with the tree they read from."""
    value = getattr(condition, name)
    if name in ("inline", "hook") and value is not None:
        return value, condition.source
    return value or None


def _same(condition: Condition) -> tuple[object, ...]:
    return tuple(_delivered(condition, name) for name in DELIVERIES)


def _change(treatment: object, control: object) -> ArmChange:
    if control is None:
        return "added"
    return "dropped" if treatment is None else "changed"
