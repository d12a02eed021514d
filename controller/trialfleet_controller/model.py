"""What an agent needs of its model provider, asked before anything is frozen or launched."""

from __future__ import annotations

from pydantic import TypeAdapter

from trialfleet_runner.agents.protocol import Identity
from trialfleet_runner.attempt.model import upstream
from trialfleet_runner.contract import AgentSpec, Limits
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.gateway.prices import Price, price_of


def check_model(identity: Identity, spec: AgentSpec, limits: Limits) -> None:
    """Its key is here, and its price is known when a cap must be kept. Raises `OperatorError`."""
    if identity.needs_model:
        upstream(spec)
    check_price(identity, spec, limits)


def check_price(identity: Identity, spec: AgentSpec, limits: Limits) -> None:
    """The model's price is known when a cap must be kept. Raises `OperatorError`."""
    if not identity.needs_model:
        return
    own = TypeAdapter(dict[str, Price]).validate_python(spec.options.get("prices") or {})
    if limits.cost_usd is not None and spec.model is not None and price_of(spec.model, own) is None:
        raise OperatorError(
            f"the price of {spec.model!r} is not known, so limits.cost_usd cannot be kept",
            where="agent: model",
            hint="give its price in agent.options.prices, or drop limits.cost_usd.trial",
        )
