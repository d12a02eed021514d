"""What is counted and paid: answers that are left, answers without counts, requests that are no turns."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_hosts import HOSTS, ModelHost, ask_model, gateway_to, request_for
from tests.support.model_requests import GEMINI, MESSAGES
from tests.support.scripted_messages import Fail, FailInside, Hang, Say, Usage
from tests.support.waiting import wait_until
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_runner.gateway import Gateway, TrialBudget
from trialfleet_runner.gateway.budget import TOKENS_PER_S
from trialfleet_runner.gateway.request_size import IMAGE_TOKENS

UNCOUNTED = Usage(input=0, output=0)
TEXT = "word " * 100


def leave_after(words: bytes, gateway: Gateway, path: str, body: dict[str, Any]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    connection.request("POST", path, json.dumps(body), {"x-api-key": gateway.token})
    answer, text = connection.getresponse(), b""
    while words not in text:
        piece = answer.read1()
        assert piece, text
        text += piece
    connection.close()


@pytest.mark.parametrize("name", HOSTS)
def test_an_answer_that_is_left_after_its_first_words_is_a_turn_and_is_paid(tmp_path: Path, name: str) -> None:
    host = HOSTS[name]
    path, body = request_for(host, streamed=True)
    with gateway_to(tmp_path, host) as (gateway, server):
        server.play(Hang(after_words=True))
        leave_after(b"Let me think", gateway, path, body)
        gateway.close()
        report = gateway.report()
    assert (report.turns, report.answered, report.interrupted, report.side_requests) == (1, 1, 1, 0)
    assert (report.estimated_answers, report.provider_error) == (1, None)
    sent = report.input_tokens + report.estimated_input_tokens
    assert sent >= 10, "what was sent is charged, whether the provider counted it or not"
    assert report.output_tokens + report.estimated_output_tokens >= 3
    assert report.cost_usd is not None
    assert report.cost_usd > 0


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", HOSTS)
def test_what_is_left_without_a_word_is_paid_by_its_time(tmp_path: Path, name: str, streamed: bool) -> None:
    """A model may think unseen; a turn, and a sign that the provider answers, is only what has content."""
    host = HOSTS[name]
    path, body = request_for(host, streamed=streamed)
    with gateway_to(tmp_path, host) as (gateway, server):
        server.play(Hang(after_start=streamed))
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        connection.request("POST", path, json.dumps(body), {"x-api-key": gateway.token})
        if streamed:
            connection.getresponse()
        else:
            wait_until(lambda: len(server.requests) == 1)
        time.sleep(0.5)
        connection.close()
        gateway.close()
        report = gateway.report()
    assert (report.turns, report.answered, report.side_requests) == (0, 0, 0)
    assert (report.interrupted, report.estimated_answers, report.error_count) == (1, 1, 0)
    assert 0.5 * TOKENS_PER_S <= report.output_tokens + report.estimated_output_tokens <= 32000
    assert report.input_tokens + report.estimated_input_tokens >= 10
    assert report.cost_usd is not None
    assert report.cost_usd > 0


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", HOSTS)
def test_what_the_provider_fails_without_a_word_costs_nothing(tmp_path: Path, name: str, streamed: bool) -> None:
    """The control: nobody has left."""
    host = HOSTS[name]
    path, body = request_for(host, streamed=streamed)
    with gateway_to(tmp_path, host) as (gateway, server):
        server.play(FailInside(Fail(503, "UNAVAILABLE")))
        ask_model(gateway, path, json.dumps(body).encode())
        report = gateway.report()
    assert (report.turns, report.answered, report.estimated_output_tokens, report.error_count) == (0, 0, 0, 1)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", HOSTS)
def test_an_answer_without_counts_is_estimated_and_marked(tmp_path: Path, name: str, streamed: bool) -> None:
    host = HOSTS[name]
    path, body = request_for(host, streamed=streamed)
    with gateway_to(tmp_path, host) as (gateway, server):
        server.play(Say(TEXT, (), UNCOUNTED), Say(TEXT, (), Usage(input=700, output=100)))
        assert ask_model(gateway, path, json.dumps(body).encode())[0] == 200
        first = gateway.report()
        assert ask_model(gateway, path, json.dumps(body).encode())[0] == 200
        second = gateway.report()
    assert (first.estimated_answers, first.input_tokens, first.output_tokens) == (1, 0, 0)
    assert len(TEXT) / 4 <= first.estimated_output_tokens < len(TEXT)
    text, images = first.estimated_input_tokens % IMAGE_TOKENS, first.estimated_input_tokens // IMAGE_TOKENS
    assert len(json.dumps(body)) / 4 < text < len(json.dumps(body))
    assert images == json.dumps(body).count("image/png"), "an image of a few bytes may have thousands of tokens"
    assert first.cost_usd is not None
    assert first.cost_usd > 0
    assert (second.estimated_answers, second.input_tokens, second.output_tokens) == (1, 700, 100)


def plain(host: ModelHost, model: str | None) -> tuple[str, bytes]:
    """A request without tools, to this model or to the planned one."""
    path, body = request_for(host, streamed=False)
    body = {name: value for name, value in body.items() if name not in ("tools", "tool_choice", "toolConfig")}
    if model and host.path == GEMINI:
        path = path.replace("gemini-2.5-pro", model)
    return path, json.dumps(body | ({"model": model} if model and host.path != GEMINI else {})).encode()


@pytest.mark.parametrize("other", [False, True], ids=["planned model", "another model"])
@pytest.mark.parametrize("name", ["anthropic", "chat", "responses", "gemini"])
def test_requests_of_every_kind_to_every_model_end(tmp_path: Path, name: str, other: bool) -> None:
    host = HOSTS[name]
    another = {"anthropic": "claude-haiku-4-5", "gemini": "gemini-2.5-flash"}.get(name, "gpt-5-mini")
    path, body = request_for(host, streamed=False)
    with gateway_to(tmp_path, host, budget=TrialBudget(max_turns=1)) as (gateway, server):
        assert ask_model(gateway, path, json.dumps(body).encode())[0] == 200
        path, data = plain(host, another if other else None)
        assert [ask_model(gateway, path, data)[0] for _ in range(45)] == [200] * 43 + [400] * 2
        assert b"44 requests" in ask_model(gateway, path, data)[1]
        assert len(server.requests) == 44
    report = gateway.report()
    assert (report.turns, report.answered, report.stop) == (1, 44, Stop.MAX_TURNS)


def test_requests_that_the_provider_fails_do_not_use_up_the_agents(tmp_path: Path) -> None:
    host = HOSTS["anthropic"]
    path, body = request_for(host, streamed=False)
    with gateway_to(tmp_path, host, budget=TrialBudget(max_turns=1)) as (gateway, server):
        server.play(*[Fail(529)] * 60)
        assert {ask_model(gateway, path, json.dumps(body).encode())[0] for _ in range(60)} == {529}
        assert ask_model(gateway, path, json.dumps(body).encode())[0] == 200
    assert gateway.report().stop is None


@pytest.mark.parametrize("name", HOSTS)
def test_money_ends_requests_without_tools_and_streams_that_are_left(tmp_path: Path, name: str) -> None:
    host = HOSTS[name]
    limit = 0.2 if host.path == MESSAGES else 0.05  # images count while nothing is known of them
    with gateway_to(tmp_path, host, budget=TrialBudget(max_cost_usd=limit)) as (gateway, server):
        path, body = request_for(host, streamed=True)
        server.play(*[Say(TEXT, (), Usage(input=300, output=120))] * 40)
        for _ in range(3):
            leave_after(b"word", gateway, path, body)
        path, data = plain(host, None)
        answers = [ask_model(gateway, path, data) for _ in range(200)]
    report = gateway.report()
    assert report.cost_usd is not None
    assert report.cost_usd <= limit
    if answers[-1][0] == 400:
        assert report.stop is Stop.COST
