"""Address and key of the model, from the runner's environment or its files. An agent sees neither."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records import AgentSpec
from trialfleet_runner.gateway.upstream import Upstream

KEYS = "/trialfleet/keys"  # a mounted Secret of a pod: a file per variable; $TRIALFLEET_KEYS says otherwise
PROVIDER_OF = {"codex": "openai", "mini-swe-agent": "openai"}  # where none is named
_PROVIDERS = {
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com", "", "OPENAI_API_KEY"),
}


def upstream(spec: AgentSpec, environ: Mapping[str, str] = os.environ) -> Upstream:
    """The provider of `spec.options["provider"]` (anthropic unless said), or the gateway that the user runs.

    Raises `OperatorError` naming the variable when there is no key.
    """
    provider = str(spec.options.get("provider") or PROVIDER_OF.get(spec.kind, "anthropic"))
    if provider not in _PROVIDERS:
        raise OperatorError(
            f"no provider is called {provider!r}",
            where="agent: options: provider",
            hint=f"one of {', '.join(_PROVIDERS)}; others behind a gateway that speaks one of their APIs",
        )
    base_variable, default, key_variable, bearer_variable = _PROVIDERS[provider]
    base = environ.get(base_variable) or default
    key, bearer = (_secret(name, environ) if name else None for name in (key_variable, bearer_variable))
    if key:
        return Upstream(base_url=base, key=key)
    if bearer:
        return Upstream(base_url=base, key=bearer, auth="bearer")
    raise OperatorError(
        f"no key for the model provider {provider}",
        where=f"environment: {key_variable or bearer_variable}",
        hint=f"export {key_variable or bearer_variable}=… (and {base_variable}=… for a gateway of your own)",
    )


def _secret(name: str, environ: Mapping[str, str]) -> str | None:
    """The variable's value, else the text of the file of that name."""
    if environ.get(name):
        return environ[name]
    file = Path(environ.get("TRIALFLEET_KEYS") or KEYS, name)
    return file.read_text().strip() if file.is_file() else None
