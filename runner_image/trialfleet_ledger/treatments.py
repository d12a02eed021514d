"""The agent of a condition. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from trialfleet_ledger.conditions import AgentChange, Condition
from trialfleet_ledger.records.agent import AgentSpec


def agent_of(campaign: AgentSpec, condition: Condition) -> AgentSpec:
    """The agent that a condition's trials run: the campaign's, with what the condition changes.

    `effort` and `settings` become the options of these names, which an agent's kind has or refuses.

    >>> base = AgentSpec(kind="claude-code", model="claude-sonnet-4-6")
    >>> agent_of(base, Condition(model="claude-opus-4-1", effort="high")).model_dump(exclude_defaults=True)
    {'kind': 'claude-code', 'model': 'claude-opus-4-1', 'options': {'effort': 'high'}}
    """
    change = condition.agent or AgentChange()
    base = campaign if change.kind in (None, campaign.kind) else _bare(campaign, change.kind)
    named = {
        "version": condition.agent_version or change.version,
        "model": condition.model or change.model,
        "max_turns": change.max_turns,
    }
    own = {"effort": condition.effort, "settings": condition.settings}
    options = merged(merged(base.options, change.options), {name: value for name, value in own.items() if value})
    given = {name: value for name, value in named.items() if value is not None}
    return base.model_copy(update=given | {"options": options})


def _bare(campaign: AgentSpec, kind: str) -> AgentSpec:
    """Another kind of agent under the campaign's budget."""
    return AgentSpec(kind=kind, max_turns=campaign.max_turns, timeout_s=campaign.timeout_s)


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `change` applied: mappings are merged at every depth, null removes a key, anything else replaces
    what was there. Source: RFC 7386 (JSON Merge Patch).

    >>> merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"c": None, "e": 3}, "d": [2]})
    {'a': {'b': 1, 'e': 3}, 'd': [2]}
    """
    result = dict(base)
    for name, value in change.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            result[name] = merged(_mapping(result.get(name)), _mapping(value))
        else:
            result[name] = value
    return result


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def distinct(agents: Iterable[AgentSpec]) -> tuple[AgentSpec, ...]:
    """Each once, in the order of its first appearance."""
    found: list[AgentSpec] = []
    for agent in agents:
        if agent not in found:
            found.append(agent)
    return tuple(found)
