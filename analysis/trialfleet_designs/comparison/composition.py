"""In which deliveries two conditions differ, and which conditions would tell the parts of a difference apart.

A contrast of conditions that differ in several deliveries compares two packages. It is a fair comparison of these,
and says nothing of any one delivery: where that is requested it is refused, with the conditions that could answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import yaml

from trialfleet_deliveries.condition_parts import PartName, differing_parts, parts_of
from trialfleet_deliveries.registry import DELIVERIES
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plurals import enumerate_words
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.treatments import agent_of

ArmChange = Literal["added", "dropped", "changed"]


@dataclass(frozen=True)
class DeliveryChange:
    """One delivery in which the two conditions differ, as treatment against control."""

    delivery: PartName
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


# Parts of the agent that are a field of a condition by themselves: a condition in between can be written down.
_FIELDS: dict[PartName, str] = {
    "model": "model",
    "version": "agent_version",
    "effort": "effort",
    "settings": "settings",
}


@dataclass(frozen=True)
class Arm:
    """One side of a contrast: a condition, and the agent that its trials run."""

    condition: Condition
    agent: AgentSpec


def compose(treatment: Arm, control: Arm, ran: Iterable[Condition]) -> Composition:
    """`ran`: the campaign's conditions; what is among them is not missing.

    >>> from trialfleet_ledger.conditions import PRESETS
    >>> agent = AgentSpec(kind="nop")
    >>> arms = [Arm(PRESETS[name], agent) for name in ("intent_layer_preamble", "intent_layer")]
    >>> found = compose(*arms, PRESETS.values())
    >>> [(change.delivery, change.change) for change in found.changes]
    [('inline', 'added'), ('pull', 'dropped')]
    >>> found.missing
    ('{files: tree, pull: true, hook: on_read, inline: {source: nearest}}',)
    """
    differing = differing_parts(treatment.condition, control.condition, (treatment.agent, control.agent))
    one, other = (parts_of(arm.condition, arm.agent) for arm in (treatment, control))
    changes = tuple(DeliveryChange(name, _change(one[name], other[name])) for name in differing)
    known = [_same(condition) for condition in ran]
    between = _between(treatment.condition, control.condition, differing)
    return Composition(changes, tuple(written(step) for step in between if _same(step) not in known))


def refuse_aliased(treatment: str, control: str, found: Composition, *, where: str) -> None:
    """Raises `OperatorError` when more than one delivery differs, naming them and the missing condition."""
    if not found.confounded:
        return
    parts = enumerate_words([change.delivery for change in found.changes])
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


def _between(treatment: Condition, control: Condition, changed: Sequence[PartName]) -> Iterator[Condition]:
    """The steps from one to the other, one part at a time; files come first, since pull and hook point at them.
    None for parts that `agent:` holds together."""
    if not changed or not set(changed) <= _FIELDS.keys() | DELIVERIES.keys():
        return
    start, end = (treatment, control) if control.files and not treatment.files else (control, treatment)
    step, order = start, sorted(changed, key=lambda name: name != "files")
    for name in order[:-1]:
        if name in DELIVERIES:
            step = DELIVERIES[name].changed(step, end)
        else:
            step = step.model_copy(update={_FIELDS[name]: getattr(end, _FIELDS[name])})
        yield step


def _same(condition: Condition) -> dict[PartName, object]:
    """What the condition itself says, whatever the campaign's agent is."""
    return parts_of(condition, agent_of(AgentSpec(kind="any"), condition))


def _change(treatment: object, control: object) -> ArmChange:
    if control is None:
        return "added"
    return "dropped" if treatment is None else "changed"


OPTION = "--contrast"


def checked_contrasts(
    requested: Sequence[str], composed: Mapping[str, Arm], *, packages: bool
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
            ran = [arm.condition for arm in composed.values()]
            found = compose(composed[treatment], composed[control], ran)
            refuse_aliased(treatment, control, found, where=f"{OPTION} {treatment}:{control}")
    return pairs


def _pair(text: str, composed: Mapping[str, Arm]) -> tuple[str, str]:
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
