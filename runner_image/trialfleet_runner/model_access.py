"""Address and key of the model, from the runner's environment or its files. An agent sees neither."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trialfleet_agents.registry import find_kind
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.untrusted import mapping
from trialfleet_runner.gateway.upstream import Auth, Upstream

if TYPE_CHECKING:
    from trialfleet_runner.gateway.upstreams.access_token import AccessToken

KEYS = "/trialfleet/keys"  # a mounted Secret of a pod: a file per variable; $TRIALFLEET_KEYS says otherwise


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

    Raises `OperatorError` naming the variable when there is no key, or one that another provider issued.
    """
    provider = _provider_name(spec)
    models = {str(name): str(model) for name, model in mapping(spec.options.get("model_ids")).items()}
    match provider:
        case "bedrock":
            return _bedrock(models, environ)
        case "vertex":
            return _vertex(models, environ)
        case _ if provider in _PROVIDERS:
            return _direct(provider, environ)
        case _:
            raise OperatorError(
                f"no provider is called {provider!r}",
                where="agent: options: provider",
                hint=f"one of {', '.join(_PROVIDERS)}, bedrock, vertex; others behind a gateway that speaks "
                "one of their APIs",
            )


def key_names(spec: AgentSpec, provider: Upstream) -> dict[str, str]:
    """The provider's keys, each by a name that every runner of this agent gives it."""
    return {f"{_provider_name(spec)}-{n}": secret for n, secret in enumerate(provider.secrets, 1)}


def _provider_name(spec: AgentSpec) -> str:
    return str(spec.options.get("provider") or find_kind(spec.kind).provider)


def _direct(provider: str, environ: Mapping[str, str]) -> Upstream:
    chosen = _PROVIDERS[provider]
    base = environ.get(chosen.base)
    for variable, auth in chosen.keys:
        if key := _secret(variable, environ):
            if base is None:  # a gateway issues other keys than the provider
                _check_issuer(key, provider, variable)
            return Upstream(base_url=base or chosen.default, key=key, auth=auth)
    variable = chosen.keys[0][0]
    raise OperatorError(
        f"no key for the model provider {provider}",
        where=f"environment: {variable}",
        hint=f"export {variable}=… (and {chosen.base}=… for a gateway of your own)",
    )


_ISSUERS = {"sk-ant-": "anthropic", "sk-proj-": "openai", "AIza": "google"}


def _check_issuer(key: str, provider: str, variable: str) -> None:
    issuer = next((name for start, name in _ISSUERS.items() if key.startswith(start)), provider)
    if issuer != provider:
        raise OperatorError(
            f"this is a key of {issuer}, not of {provider}",
            where=f"environment: {variable}",
            hint=f"set it to a key of {provider}, or write provider: {issuer} in agent.options",
        )


def _bedrock(models: Mapping[str, str], environ: Mapping[str, str]) -> Upstream:
    """An API key of Bedrock, else the keys of the mounted Secret, else the usual chain of AWS."""
    from trialfleet_runner.gateway.upstreams.bedrock import Bedrock, signer

    region = _needed("AWS_REGION", "bedrock", environ, other="AWS_DEFAULT_REGION")
    base = environ.get("AWS_ENDPOINT_URL_BEDROCK_RUNTIME") or f"https://bedrock-runtime.{region}.amazonaws.com"
    if key := _secret("AWS_BEARER_TOKEN_BEDROCK", environ):
        return Bedrock(base, key, models=models)
    own, secret = (_secret(name, environ) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    keys = (own, secret, _secret("AWS_SESSION_TOKEN", environ)) if own and secret else None
    sign, held = signer(region, keys)
    return Bedrock(base, "", models=models, sign=sign, held=held)


def _vertex(models: Mapping[str, str], environ: Mapping[str, str]) -> Upstream:
    from trialfleet_runner.gateway.upstreams.vertex import Vertex

    project = _needed("GOOGLE_CLOUD_PROJECT", "vertex", environ)
    location = _secret("GOOGLE_CLOUD_LOCATION", environ) or "global"
    host = "aiplatform.googleapis.com" if location == "global" else f"{location}-aiplatform.googleapis.com"
    base = environ.get("VERTEX_BASE_URL") or f"https://{host}"
    return Vertex(base, "", project=project, location=location, token=_access_token(environ), models=models)


def _access_token(environ: Mapping[str, str]) -> AccessToken:
    """From a file that somebody renews, else from a command."""
    from trialfleet_runner.gateway.upstreams.access_token import AccessToken, of_command, of_file

    file = Path(environ.get("VERTEX_ACCESS_TOKEN_FILE") or _key_file("VERTEX_ACCESS_TOKEN", environ))
    if file.is_file():
        return AccessToken(of_file(file))
    if command := environ.get("VERTEX_ACCESS_TOKEN_COMMAND"):
        return AccessToken(of_command(shlex.split(command)))
    raise OperatorError(
        "no access token for the model provider vertex",
        where="environment: VERTEX_ACCESS_TOKEN_FILE",
        hint="name a file that holds one, or set VERTEX_ACCESS_TOKEN_COMMAND='gcloud auth print-access-token'",
    )


def _needed(name: str, provider: str, environ: Mapping[str, str], *, other: str = "") -> str:
    found = _secret(name, environ) or (_secret(other, environ) if other else None)
    if found and re.fullmatch(r"[A-Za-z0-9.:_-]{1,100}", found):
        return found
    raise OperatorError(
        f"the model provider {provider} needs {name}",
        where=f"environment: {name}",
        hint=f"export {name}=…, or add it to the Secret of kubernetes.model_secret",
    )


def _secret(name: str, environ: Mapping[str, str]) -> str | None:
    """The variable's value, else the text of the file of that name."""
    if environ.get(name):
        return environ[name]
    file = _key_file(name, environ)
    return file.read_text().strip() if file.is_file() else None


def _key_file(name: str, environ: Mapping[str, str]) -> Path:
    return Path(environ.get("TRIALFLEET_KEYS") or KEYS, name)
