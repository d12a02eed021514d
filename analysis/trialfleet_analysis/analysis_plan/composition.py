"""In which deliveries two conditions differ, and which conditions would tell the parts of a difference apart.

A contrast of conditions that differ in several deliveries compares two packages. It is a fair comparison of these,
and says nothing of any one delivery: where that is requested it is refused, with the conditions that could answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import yaml

from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError

ArmChange = Literal["added", "dropped", "changed"]


@dataclass(frozen=True)
class DeliveryChange:
    """One delivery in which the two conditions differ, as treatment against control."""

    delivery: Literal["files", "inline", "hook", "pull", "fail_fast"]
    change: ArmChange


@dataclass(frozen=True)
class Composition:
    """In which deliveries a contrast's conditions differ. With more than one its effect belongs to the package:
    `missing` are compositions that would tell the parts apart and that the campaign did not run, as YAML."""

    changes: tuple[DeliveryChange, ...]
    missing: tuple[str, ...]

    @property
    def confounded(self) -> bool:
        return len(self.changes) > 1


DeliveryName = Literal["files", "inline", "hook", "pull", "fail_fast"]
DELIVERIES: tuple[DeliveryName, ...] = get_args(DeliveryName)


def compose(treatment: Condition, control: Condition, ran: Mapping[str, Condition]) -> Composition:
    """`ran`: the campaign's conditions; what is among them is not missing.

    >>> from trialfleet_ledger.conditions import PRESETS
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
    add = f"a condition {' and one '.join(found.missing)}" if found.missing else "the steps in between"
    raise OperatorError(
        f"{treatment} and {control} differ in {parts}: their effects cannot be separated",
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


OPTION = "--contrast"


def checked_contrasts(
    requested: Sequence[str], composed: Mapping[str, Condition], *, packages: bool
) -> tuple[tuple[str, str], ...]:
    """TREATMENT:CONTROL, each, as pairs of the campaign's conditions (`composed`).

    Raises `OperatorError` for what is no pair, for a condition that the campaign does not have, and, unless
    `packages`, for two conditions that differ in more than one delivery, with the condition that is missing. The
    *declared* contrast is never refused, since its campaign has been paid for: its report
    names what is confounded.
    """
    pairs = tuple(_pair(text, composed) for text in requested)
    if not packages:
        for treatment, control in pairs:
            found = compose(composed[treatment], composed[control], composed)
            refuse_aliased(treatment, control, found, where=f"{OPTION} {treatment}:{control}")
    return pairs


def _pair(text: str, composed: Mapping[str, Condition]) -> tuple[str, str]:
    parts = text.split(":")
    if len(parts) != 2 or parts[0] == parts[1]:
        raise OperatorError(
            "two different conditions are wanted, TREATMENT:CONTROL",
            where=f"{OPTION} {text}",
            hint=f"choose two of {', '.join(composed)}",
        )
    for name in parts:
        if name not in composed:
            raise OperatorError(
                f"the campaign has no condition {name!r}",
                where=f"{OPTION} {text}",
                hint=f"choose two of {', '.join(composed)}",
            )
    return parts[0], parts[1]
