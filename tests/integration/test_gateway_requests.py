"""What a provider receives is what the gateway judged: over real sockets, in every API, streamed or not."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

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


class Host(NamedTuple):
    """A provider and one of its APIs. `address`: the variable that names it."""

    provider: str
    server: Callable[[], AbstractContextManager[ScriptedMessages]]
    path: str
    address: str
    environ: dict[str, str]


HOSTS = {
    "anthropic": Host(
        "anthropic", scripted_messages, MESSAGES, "ANTHROPIC_BASE_URL", {"ANTHROPIC_API_KEY": "sk-ant-x"}
    ),
    "chat": Host("openai", scripted_openai, CHAT, "OPENAI_BASE_URL", {"OPENAI_API_KEY": "sk-proj-x"}),
    "responses": Host("openai", scripted_openai, RESPONSES, "OPENAI_BASE_URL", {"OPENAI_API_KEY": "sk-proj-x"}),
    "gemini": Host("google", scripted_gemini, GEMINI, "GOOGLE_GEMINI_BASE_URL", {"GEMINI_API_KEY": "AIza-x"}),
    "bedrock": Host(
        "bedrock",
        scripted_bedrock,
        MESSAGES,
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        {"AWS_REGION": REGION, "AWS_BEARER_TOKEN_BEDROCK": BEARER},
    ),
    **{
        f"vertex{name}": Host(
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
def opened(tmp_path: Path, host: Host, **options: Any) -> Iterator[tuple[Gateway, ScriptedMessages]]:
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


def ask(gateway: Gateway, path: str, data: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        connection.request("POST", path, data, {"x-api-key": gateway.token})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def request(host: Host, *, streamed: bool) -> tuple[str, dict[str, Any]]:
    """Path and full body."""
    if host.path == GEMINI:
        path = host.path.replace(":generate", ":streamGenerate") + "?alt=sse" if streamed else host.path
        return path, FULL[GEMINI]
    return host.path, {**FULL[host.path], "stream": streamed}


ODD: dict[str, Callable[[str], bytes]] = {
    "twice": lambda text: f'{{"tools": [], {text[1:]}'.encode(),
    "twice, escaped": lambda text: f'{{"to\\u006fls": [], {text[1:]}'.encode(),
    "another case": lambda text: f'{{"Tools": [], {text[1:]}'.encode(),
    "unknown": lambda text: f'{{"odd": [], {text[1:]}'.encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "BOM": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "NaN": lambda text: f'{{"temperature": NaN, {text[1:]}'.encode(),
    "1e999": lambda text: f'{{"temperature": 1e999, {text[1:]}'.encode(),
}


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", HOSTS)
def test_ambiguous_requests_reach_no_provider_and_clear_ones_arrive_as_they_were_read(
    tmp_path: Path, name: str, streamed: bool
) -> None:
    host = HOSTS[name]
    with opened(tmp_path, host) as (gateway, server):
        path, body = request(host, streamed=streamed)
        text = json.dumps(body)
        answers = {odd: ask(gateway, path, change(text)) for odd, change in ODD.items()}
        assert {odd: status for odd, (status, _) in answers.items()} == dict.fromkeys(ODD, 400)
        assert b"'odd'" in answers["unknown"][1]
        assert b"is given twice" in answers["twice, escaped"][1]
        assert server.requests == []
        status, answer = ask(gateway, path, text.encode())
        assert status == 200, answer
    (arrived,) = server.requests
    assert sent_by(host, arrived.body) == sent_by(host, body)
    assert (gateway.report().requests, gateway.report().halt) == (1, None)


def sent_by(host: Host, body: dict[str, Any]) -> dict[str, Any]:
    """Without what a host has elsewhere, adds itself, or does not know."""
    moved = {"anthropic_version", "stream_options"}
    if host.provider in ("bedrock", "vertex"):
        moved |= {"model", "stream"}
        body = json.loads(
            json.dumps(body).replace(', "scope": "global"', "").replace(', "eager_input_streaming": true', "")
        )
    return {name: value for name, value in body.items() if name not in moved}


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_counting_tokens_takes_the_same_fields(tmp_path: Path, name: str) -> None:
    host = HOSTS[name]
    path = {"anthropic": "/v1/messages/count_tokens", "gemini": GEMINI.replace("generateContent", "countTokens")}[
        name
    ]
    by_address = {
        "anthropic": {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url"}}]}]},
        "gemini": {"contents": [{"parts": [{"fileData": {"fileUri": "https://x"}}]}]},
    }[name]
    with opened(tmp_path, host) as (gateway, server):
        assert ask(gateway, path, json.dumps({**FULL[host.path], **by_address}).encode())[0] == 400
        assert server.requests == []
        assert ask(gateway, path, json.dumps(FULL[host.path]).encode())[0] == 200
