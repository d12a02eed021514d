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


PROXY = {"guardrails": {"pii": False}, "fallbacks": [{"model": "x"}], "tags": ["t"], "user_id": ["u"]}


@pytest.mark.parametrize("permitted", [(), ("labels",)])
def test_labels_of_googles_bills_are_not_sent(tmp_path: Path, permitted: tuple[str, ...]) -> None:
    data = json.dumps({**FULL[GEMINI], "labels": {"team": "another"}}).encode()
    with gateway_to(tmp_path, HOSTS["vertex, gemini"], fields=permitted) as (gateway, server):
        assert ask_model(gateway, GEMINI, data)[0] == 200
    assert ("labels" in server.requests[0].body) is bool(permitted)


@pytest.mark.parametrize("name", ["anthropic", "chat", "responses"])
def test_what_only_a_proxy_would_read_is_not_sent(tmp_path: Path, name: str) -> None:
    """The control: a campaign permits the field, and what a model's API needs arrives."""
    host = HOSTS[name]
    path, body = request_for(host, streamed=False)
    known = {"user_id": "u"} if name == "anthropic" else {}
    said = {"role": "assistant", "content": "c"}
    specific = {"thought_signatures": ["s"]}
    if name == "chat":
        fields = {**specific, "web_search_results": [{"type": "image", "source": {"type": "url"}}]}
        body = {**body, "messages": [*body["messages"], {**said, "provider_specific_fields": fields}]}
    data = json.dumps({**body, "metadata": {**PROXY, **known}}).encode()
    for permitted in ((), ("metadata",)):
        folder = tmp_path / f"{len(permitted)}"
        folder.mkdir()
        with gateway_to(folder, host, fields=permitted) as (gateway, server):
            assert ask_model(gateway, path, data)[0] == 200
        (arrived,) = server.requests
        assert arrived.body.get("metadata", {}) == ({**PROXY, **known} if permitted else known)
        if name == "chat":
            assert arrived.body["messages"][-1] == {**said, "provider_specific_fields": specific}
            assert arrived.body["messages"][:-1] == body["messages"][:-1]
