"""Checks what an agent needs from its model provider before a plan is frozen or a trial is launched."""

from __future__ import annotations

import difflib

from trialfleet_agents.protocol import Identity
from trialfleet_controller.planning.key_check import check_length
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.prices import PRICES, own_prices, price_of
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.untrusted import mapping


def check_model(identity: Identity, spec: AgentSpec, limits: Limits) -> None:
    """Its key is here and no word, and its price is known when a cap must be kept. Raises `OperatorError`."""
    if identity.needs_model:
        from trialfleet_runner.model_access import upstream  # with the gateway

        provider = upstream(spec)
        check_length(provider.secrets, provider.base_url)
    check_price(identity, spec, limits)


def _alike(model: str) -> str:
    near = difflib.get_close_matches(model, PRICES, n=2, cutoff=0.8)
    return f"did you mean {' or '.join(near)}? Else " if near else ""


def check_price(identity: Identity, spec: AgentSpec, limits: Limits) -> None:
    """The prices of the model, and of all that `model_ids` names, are known when a cap must be kept. Raises
    `OperatorError`."""
    if not identity.needs_model or limits.cost_usd is None:
        return
    asked = [*([spec.model] if spec.model else []), *mapping(spec.options.get("model_ids"))]
    for model in asked:
        if price_of(model, own_prices(spec)) is not None:
            continue
        raise OperatorError(
            f"the price of {model!r} is not known, so limits.cost_usd cannot be enforced",
            where="agent: model" if model == spec.model else "agent: options: model_ids",
            hint=f"{_alike(model)}give its price in agent.options.prices, or remove limits.cost_usd.trial",
        )
