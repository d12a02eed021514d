"""Every provider with each of its APIs, and requests to it as an agent sends them."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.model_requests import CHAT, FULL, GEMINI, MESSAGES, RESPONSES
from tests.support.scripted_bedrock import BEARER, REGION, scripted_bedrock
from tests.support.scripted_gemini import scripted_gemini
from tests.support.scripted_messages import ScriptedMessages, scripted_messages
from tests.support.scripted_openai import scripted_openai
from tests.support.scripted_vertex import scripted_vertex
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_runner.gateway import Gateway
from trialfleet_runner.model_access import upstream

_IDS = {"claude-sonnet-4-6": "eu.anthropic.claude-sonnet-4-6-v1:0"}


class ModelHost(NamedTuple):
    """A provider and one of its APIs. `address`: the variable that names it."""

    provider: str
    server: Callable[[], AbstractContextManager[ScriptedMessages]]
    path: str
    address: str
    environ: dict[str, str]


HOSTS = {
    "anthropic": ModelHost(
        "anthropic", scripted_messages, MESSAGES, "ANTHROPIC_BASE_URL", {"ANTHROPIC_API_KEY": "sk-ant-x"}
    ),
    "chat": ModelHost("openai", scripted_openai, CHAT, "OPENAI_BASE_URL", {"OPENAI_API_KEY": "sk-proj-x"}),
    "responses": ModelHost(
        "openai", scripted_openai, RESPONSES, "OPENAI_BASE_URL", {"OPENAI_API_KEY": "sk-proj-x"}
    ),
    "gemini": ModelHost("google", scripted_gemini, GEMINI, "GOOGLE_GEMINI_BASE_URL", {"GEMINI_API_KEY": "AIza-x"}),
    "bedrock": ModelHost(
        "bedrock",
        scripted_bedrock,
        MESSAGES,
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        {"AWS_REGION": REGION, "AWS_BEARER_TOKEN_BEDROCK": BEARER},
    ),
    **{
        f"vertex{name}": ModelHost(
            "vertex",
            scripted_vertex,
            path,
            "VERTEX_BASE_URL",
            {"GOOGLE_CLOUD_PROJECT": "my-project", "GOOGLE_CLOUD_LOCATION": "europe-west1"},
        )
        for name, path in (("", MESSAGES), (", gemini", GEMINI))
    },
}


@contextmanager
def gateway_to(tmp_path: Path, host: ModelHost, **options: Any) -> Generator[tuple[Gateway, ScriptedMessages]]:
    token = tmp_path / "token"
    token.write_text("ya29.first")
    with ExitStack() as stack:
        server = stack.enter_context(host.server())
        environ = {**host.environ, host.address: server.url, "VERTEX_ACCESS_TOKEN_FILE": str(token)}
        ids = _IDS if host.provider == "bedrock" else {}
        spec = AgentSpec(kind="command", options={"provider": host.provider, "model_ids": ids})
        yield (
            stack.enter_context(Gateway(upstream(spec, environ), record=tmp_path / "record", **options)),
            server,
        )


def ask_model(gateway: Gateway, path: str, data: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        connection.request("POST", path, data, {"x-api-key": gateway.token})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def request_for(host: ModelHost, *, streamed: bool) -> tuple[str, dict[str, Any]]:
    """Path and full body."""
    if host.path == GEMINI:
        path = host.path.replace(":generate", ":streamGenerate") + "?alt=sse" if streamed else host.path
        return path, FULL[GEMINI]
    return host.path, {**FULL[host.path], "stream": streamed}
