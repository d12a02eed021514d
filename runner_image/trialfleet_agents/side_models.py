"""Models that an agent asks for small work next to the planned one. Requests for any other are answered 404."""

from __future__ import annotations

from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.untrusted import mapping

# agent -> patterns of names: helpers of its program (titles, summaries, search) in the pinned version.
SIDE_MODELS: dict[str, tuple[str, ...]] = {
    "claude-code": ("claude-haiku-*", "claude-3-5-haiku*"),
    "gemini": ("gemini-*flash*",),
}


def side_models(spec: AgentSpec) -> tuple[str, ...]:
    """Patterns of the models that may be asked in addition to `spec.model`: of the agent's kind, and those that
    the campaign names in `options.side_models` or `options.model_ids`."""
    chosen = spec.options.get("side_models") or ()
    return (*SIDE_MODELS.get(spec.kind, ()), *map(str, chosen), *mapping(spec.options.get("model_ids")))
