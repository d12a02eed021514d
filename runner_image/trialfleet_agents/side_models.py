"""Models that an agent asks for small work next to the planned one. Requests for any other are answered 404."""

from __future__ import annotations

from trialfleet_agents.registry import find_kind
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.untrusted import mapping


def side_models(spec: AgentSpec) -> tuple[str, ...]:
    """Patterns of the models that may be asked in addition to `spec.model`: of the agent's kind, and those that
    the campaign names in `options.side_models` or `options.model_ids`."""
    chosen = spec.options.get("side_models") or ()
    return (*find_kind(spec.kind).side_models, *map(str, chosen), *mapping(spec.options.get("model_ids")))
