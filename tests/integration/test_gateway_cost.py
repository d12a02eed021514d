"""What a trial costs, in every API: the server's own counts times the list of prices."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.scripted_gemini import gemini_counts, scripted_gemini
from tests.support.scripted_messages import Say, ScriptedMessages, Usage, scripted_messages
from tests.support.scripted_openai import scripted_openai
from trialfleet_ledger.prices import PRICES
from trialfleet_ledger.token_usage import openai_usage
from trialfleet_runner.gateway import Gateway, Price, Upstream

ANSWERS = 30


class Api(NamedTuple):
    """`usd`: cost of an answer, from the counts that the server sends, by the provider's price page."""

    server: Callable[[], AbstractContextManager[ScriptedMessages]]
    path: str
    body: dict[str, Any]
    usd: Callable[[Usage], float]


def claude(usage: Usage) -> float:
    """claude-sonnet-4-6: 3 in, 15 out; cached: read 0.30, written 3.75, for an hour 6."""
    sent = usage.wire()
    hour = sent.get("cache_creation", {}).get("ephemeral_1h_input_tokens", 0)
    return (
        sent["input_tokens"] * 3
        + sent["output_tokens"] * 15
        + sent["cache_read_input_tokens"] * 0.3
        + (sent["cache_creation_input_tokens"] - hour) * 3.75
        + hour * 6
    ) / 1e6


def gpt(usage: Usage) -> float:
    """gpt-5.2: 1.75 in, 14 out, 0.175 cached."""
    return ((usage.input + usage.cache_write) * 1.75 + usage.cache_read * 0.175 + usage.output * 14) / 1e6


def gemini(usage: Usage) -> float:
    """gemini-2.5-pro: 1.25 in, 10 out, 0.125 cached; double, 15 and double for prompts above 200,000 tokens."""
    sent = gemini_counts(usage)
    prompt, cached = sent.get("promptTokenCount", 0), sent.get("cachedContentTokenCount", 0)
    output = sent.get("candidatesTokenCount", 0) + sent.get("thoughtsTokenCount", 0)
    twice, out = (2, 15) if prompt > 200_000 else (1, 10)
    return ((prompt - cached) * 1.25 * twice + cached * 0.125 * twice + output * out) / 1e6


TEXT = [{"role": "user", "content": "hi"}]
CLAUDE = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": TEXT, "tools": [{"name": "t"}]}
FUNCTION = [{"type": "function", "function": {"name": "t"}}]
CHAT = {"model": "gpt-5.2", "messages": TEXT, "tools": FUNCTION}
RESPONSES = {"model": "gpt-5.2", "input": TEXT, "tools": [{"type": "function", "name": "t"}]}
GEMINI = {"contents": [{"parts": [{"text": "hi"}]}], "tools": [{"functionDeclarations": [{"name": "t"}]}]}
AT = "/v1beta/models/gemini-2.5-pro"
APIS = {
    "messages": Api(scripted_messages, "/v1/messages", CLAUDE, claude),
    "messages, streamed": Api(scripted_messages, "/v1/messages", CLAUDE | {"stream": True}, claude),
    "chat": Api(scripted_openai, "/v1/chat/completions", CHAT, gpt),
    "chat, streamed": Api(scripted_openai, "/v1/chat/completions", CHAT | {"stream": True}, gpt),
    "responses": Api(scripted_openai, "/v1/responses", RESPONSES, gpt),
    "responses, streamed": Api(scripted_openai, "/v1/responses", RESPONSES | {"stream": True}, gpt),
    "gemini": Api(scripted_gemini, f"{AT}:generateContent", GEMINI, gemini),
    "gemini, events": Api(scripted_gemini, f"{AT}:streamGenerateContent?alt=sse", GEMINI, gemini),
    "gemini, array": Api(scripted_gemini, f"{AT}:streamGenerateContent", GEMINI, gemini),
}


def usages(seed: int) -> list[Usage]:
    pick = random.Random(seed)
    found = []
    for _ in range(ANSWERS):
        written = pick.randrange(20_000)
        output = pick.randrange(1, 5_000)
        found.append(
            Usage(
                input=pick.randrange(1, 30_000),
                output=output,
                cache_read=pick.choice([0, pick.randrange(300_000)]),
                cache_write=written,
                cache_write_1h=pick.choice([0, pick.randrange(written + 1)]),
                thoughts=pick.randrange(output),
            )
        )
    return found


def ask(gateway: Gateway, api: Api) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        connection.request("POST", api.path, json.dumps(api.body), {"x-api-key": gateway.token})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


@pytest.mark.parametrize("name", APIS)
def test_cost_is_the_servers_counts_times_the_prices(tmp_path: Path, name: str) -> None:
    api, counts = APIS[name], usages(seed=20261124)
    with api.server() as server:
        server.play(*(Say("ok", (("t", {"a": 1}),), usage) for usage in counts))
        with Gateway(Upstream(server.url, "sk-x"), record=tmp_path) as gateway:
            assert {ask(gateway, api) for _ in counts} == {200}
            report = gateway.report()
    assert report.turns == ANSWERS
    assert report.cost_usd == pytest.approx(sum(map(api.usd, counts)), rel=1e-9)
    tokens = (report.input_tokens, report.cache_read_tokens, report.cache_write_tokens, report.output_tokens)
    sent = sum(usage.input + usage.cache_read + usage.cache_write + usage.output for usage in counts)
    assert sum(tokens) == sent, "kinds overlap, or one is missing"


def test_a_campaigns_own_prices_come_first(tmp_path: Path) -> None:
    api = APIS["chat"]
    own = Price(input=1, output=2, cache_read=0.5, cache_write=1, cache_write_1h=1)
    with api.server() as server:
        server.play(Say("ok", (), Usage(input=1_000_000, output=500_000, cache_read=200_000)))
        with Gateway(Upstream(server.url, "k"), record=tmp_path, prices={"gpt-5.2": own}) as gateway:
            ask(gateway, api)
            assert gateway.report().cost_usd == pytest.approx(1 + 1 + 0.1)


def test_a_gateway_that_reports_cache_writes_is_charged_for_them() -> None:
    """LiteLLM in front of Claude: its prompt count includes what was written to the cache."""
    wire = {"prompt_tokens": 1000, "completion_tokens": 10, "cache_creation_input_tokens": 700}
    found = openai_usage({**wire, "prompt_tokens_details": {"cached_tokens": 200}})
    assert (found.input, found.cache_read, found.cache_write, found.total) == (100, 200, 700, 1010)
    usd = PRICES["claude-sonnet-4-6"].usd(found)
    assert usd == pytest.approx((100 * 3 + 200 * 0.3 + 700 * 3.75 + 10 * 15) / 1e6)
