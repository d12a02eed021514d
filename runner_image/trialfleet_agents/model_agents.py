"""What the adapters of agents that ask a model have in common."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import Field

from trialfleet_agents.protocol import Identity
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.prices import Price
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.base import Frozen


class ModelAgentOptions(Frozen):
    """The `agent.options` that all of them have. `binary`: the program, where it is not on PATH; `settings`: of
    its configuration file; `prices`: US dollars per million tokens for models that the built-in list lacks;
    `fields`: of requests, that the gateway passes on although its lists lack them; `side_models`: patterns of
    other models that it passes on."""

    binary: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    prices: dict[str, Price] = Field(default_factory=dict[str, Price])
    fields: tuple[str, ...] = ()
    side_models: tuple[str, ...] = ()


def require_model(spec: AgentSpec, *, example: str) -> None:
    """Raises `OperatorError` when the campaign names no model."""
    if spec.model is None:
        raise OperatorError("no model is named", where="agent: model", hint=f"for example model: {example}")


def model_identity(
    spec: AgentSpec,
    version: str,
    options: ModelAgentOptions,
    reach: Reach,
    *,
    revision: int,
    apart: Collection[str] = (),
) -> Identity:
    """The identity of the program at this version with this model. `revision`: of its adapter. `apart`: options
    that do not change what the agent does, in addition to its program's path and its prices."""
    optional = ("fields", "side_models", "tools", "allowed_tools")
    unset = [name for name in optional if not getattr(options, name, None)]
    unset += ["permission_mode"] if getattr(options, "permission_mode", None) == "bypassPermissions" else []
    chosen = options.model_dump(mode="json", exclude={"binary", "prices", *unset, *apart})
    parts = {"version": version, "model": spec.model, "revision": revision, "options": chosen}
    return Identity(
        kind=spec.kind,
        version=version,
        model=spec.model,
        digest=digest(parts),
        revision=revision,
        needs_model=True,
        reach=reach,
    )
