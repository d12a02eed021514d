"""What the first requests of two planned conditions differ in apart from their texts, as a check measured it."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_agents.agent_check.delivery_matrix import CheckedDelivery
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.plan import Plan

_OF_FILES = (CheckedDelivery.ROOT_FILE, CheckedDelivery.NESTED)


def list_also_differing(plan: Plan, treatment: str, control: str) -> Iterator[str]:
    """One for each delivery that only one of the two has and that brings something along. Nothing of two agents
    that were not measured alike, or of one that was not checked before the campaign was planned."""
    agents = plan.agents[treatment], plan.agents[control]
    known, also = (plan.deliveries.get(agent.digest) for agent in agents)
    if known is None or known != also:
        return
    one, other = (find_deliveries(plan.conditions[name]) for name in (treatment, control))
    for name in CheckedDelivery:
        found = known.also_differ.get(name)
        if found and name in one ^ other:
            where = ", where the context has one" if name in _OF_FILES else ""
            yield f"what {known.agent} brings along with the {name.value}{where}: {'; '.join(found)}"


def find_deliveries(condition: Condition) -> frozenset[CheckedDelivery]:
    """Those that a condition asks for.

    >>> sorted(map(str, find_deliveries(Condition(files="tree", pull=True, hook="on_read"))))
    ['hook after a tool', 'nested file, after a read there', 'root file']
    """
    channels = {"system": CheckedDelivery.SYSTEM, "rules": CheckedDelivery.RULES}
    inline = condition.inline
    given = {
        CheckedDelivery.ROOT_FILE: condition.files is not None,
        CheckedDelivery.NESTED: condition.files is not None,
        CheckedDelivery.HOOK_AFTER: condition.hook is not None,
        CheckedDelivery.FAIL_FAST: condition.fail_fast,
        CheckedDelivery.SKILLS: bool(condition.skills),
        CheckedDelivery.MCP: bool(condition.mcp),
    }
    spoken = () if inline is None else (channels.get(inline.channel, CheckedDelivery.INLINE),)
    return frozenset({*spoken, *(name for name, is_given in given.items() if is_given)})
