"""What two conditions differ in: of the agent, and of what is delivered. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from trialfleet_deliveries.registry import DELIVERIES
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.records.agent import AgentSpec

PartName = str
# These mean nothing across two kinds of agent.
_OF_ONE_KIND: frozenset[PartName] = frozenset({"version", "effort", "settings", "options"})


def differing_parts(
    treatment: Condition, control: Condition, agents: tuple[AgentSpec, AgentSpec]
) -> tuple[PartName, ...]:
    """The parts in which two conditions differ, `agents` being those that they run. Across two kinds of agent the
    kind covers version, effort, settings and options.

    >>> agent = AgentSpec(kind="nop")
    >>> differing_parts(Condition(files="tree", pull=True), Condition(), (agent, agent))
    ('files', 'pull')
    """
    one, other = parts_of(treatment, agents[0]), parts_of(control, agents[1])
    apart = [name for name in one if one[name] != other[name]]
    return tuple([name for name in apart if "agent" not in apart or name not in _OF_ONE_KIND])


def list_later_parts(parts: Iterable[PartName], conditions: Iterable[Condition]) -> tuple[PartName, ...]:
    """Those of `parts` that may change something of a run which its first request does not show, under any of
    these conditions. An effort is a field of every request.

    >>> list_later_parts(["effort", "pull", "files"], [Condition(files="tree", pull=True), Condition()])
    ('files',)
    """
    given = tuple(conditions)
    return tuple([name for name in parts if _is_later(name, given)])


def _is_later(part: PartName, conditions: Iterable[Condition]) -> bool:
    kind = DELIVERIES.get(part)
    return part != "effort" if kind is None else any(map(kind.acts_later, conditions))


def parts_of(condition: Condition, agent: AgentSpec) -> dict[PartName, object]:
    """What a condition's trials get, part by part, the agent's first; None where there is nothing."""
    options = {name: value for name, value in agent.options.items() if name not in ("effort", "settings")}
    return {
        "agent": agent.kind,
        "model": agent.model,
        "version": agent.version,
        "effort": agent.options.get("effort"),
        "settings": agent.options.get("settings") or None,
        "options": options or None,
        "max_turns": agent.max_turns,
        **{key: kind.part(condition) for key, kind in DELIVERIES.items()},
    }
