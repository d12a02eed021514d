"""What a provider receives is what the gateway judged: over real sockets, in every API, streamed or not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_hosts import HOSTS, ModelHost, ask_model, gateway_to, request_for
from tests.support.model_requests import FULL, GEMINI

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
    with gateway_to(tmp_path, host) as (gateway, server):
        path, body = request_for(host, streamed=streamed)
        text = json.dumps(body)
        answers = {odd: ask_model(gateway, path, change(text)) for odd, change in ODD.items()}
        assert {odd: status for odd, (status, _) in answers.items()} == dict.fromkeys(ODD, 400)
        assert b"'odd'" in answers["unknown"][1]
        assert b"is given twice" in answers["twice, escaped"][1]
        assert server.requests == []
        status, answer = ask_model(gateway, path, text.encode())
        assert status == 200, answer
    (arrived,) = server.requests
    assert sent_by(host, arrived.body) == sent_by(host, body)
    assert (gateway.report().requests, gateway.report().halt) == (1, None)


def sent_by(host: ModelHost, body: dict[str, Any]) -> dict[str, Any]:
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
    with gateway_to(tmp_path, host) as (gateway, server):
        assert ask_model(gateway, path, json.dumps({**FULL[host.path], **by_address}).encode())[0] == 400
        assert server.requests == []
        assert ask_model(gateway, path, json.dumps(FULL[host.path]).encode())[0] == 200
