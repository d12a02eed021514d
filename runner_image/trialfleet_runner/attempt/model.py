"""Address and key of the model, from the runner's environment or its files. An agent sees neither."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records import AgentSpec
from trialfleet_runner.gateway.upstream import Auth, Upstream

KEYS = "/trialfleet/keys"  # a mounted Secret of a pod: a file per variable; $TRIALFLEET_KEYS says otherwise
PROVIDER_OF = {"codex": "openai", "mini-swe-agent": "openai", "gemini": "google"}  # where none is named


@dataclass(frozen=True)
class _Provider:
    """Names of variables; `keys`: of the key and how it is sent, the first that is set counts."""

    base: str
    default: str
    keys: tuple[tuple[str, Auth], ...]


_PROVIDERS = {
    "anthropic": _Provider(
        "ANTHROPIC_BASE_URL",
        "https://api.anthropic.com",
        (("ANTHROPIC_API_KEY", "x-api-key"), ("ANTHROPIC_AUTH_TOKEN", "bearer")),
    ),
    "openai": _Provider("OPENAI_BASE_URL", "https://api.openai.com", (("OPENAI_API_KEY", "bearer"),)),
    "google": _Provider(
        "GOOGLE_GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com",
        (("GEMINI_API_KEY", "x-goog-api-key"), ("GOOGLE_API_KEY", "x-goog-api-key")),
    ),
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
    chosen = _PROVIDERS[provider]
    for variable, auth in chosen.keys:
        if key := _secret(variable, environ):
            return Upstream(base_url=environ.get(chosen.base) or chosen.default, key=key, auth=auth)
    variable = chosen.keys[0][0]
    raise OperatorError(
        f"no key for the model provider {provider}",
        where=f"environment: {variable}",
        hint=f"export {variable}=… (and {chosen.base}=… for a gateway of your own)",
    )


def _secret(name: str, environ: Mapping[str, str]) -> str | None:
    """The variable's value, else the text of the file of that name."""
    if environ.get(name):
        return environ[name]
    file = Path(environ.get("TRIALFLEET_KEYS") or KEYS, name)
    return file.read_text().strip() if file.is_file() else None
