"""Where the model is: from the runner's own environment, which no agent sees."""

from __future__ import annotations

import os
from collections.abc import Mapping

from trialfleet_runner.contract import AgentSpec
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.gateway.upstream import Upstream

_PROVIDERS = {
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com", "", "OPENAI_API_KEY"),
}


def upstream(spec: AgentSpec, environ: Mapping[str, str] = os.environ) -> Upstream:
    """The provider of `spec.options["provider"]` (anthropic unless said), or the gateway that the user runs.

    Raises `OperatorError` naming the variable when there is no key.
    """
    provider = str(spec.options.get("provider", "anthropic"))
    if provider not in _PROVIDERS:
        raise OperatorError(
            f"no provider is called {provider!r}",
            where="agent: options: provider",
            hint=f"one of {', '.join(_PROVIDERS)}; others behind a gateway that speaks one of their APIs",
        )
    base_variable, default, key_variable, bearer_variable = _PROVIDERS[provider]
    base = environ.get(base_variable) or default
    if key_variable and environ.get(key_variable):
        return Upstream(base_url=base, key=environ[key_variable])
    if environ.get(bearer_variable):
        return Upstream(base_url=base, key=environ[bearer_variable], auth="bearer")
    raise OperatorError(
        f"no key for the model provider {provider}",
        where=f"environment: {key_variable or bearer_variable}",
        hint=f"export {key_variable or bearer_variable}=… (and {base_variable}=… for a gateway of your own)",
    )
