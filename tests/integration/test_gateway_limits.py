"""What one request may be: its model, its size, its framing; and how many there are at a time."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_hosts import HOSTS, ModelHost, ask_model, gateway_to, request_for
from tests.support.model_requests import GEMINI, MESSAGES
from tests.support.scripted_messages import Fail, Hang, Say, Usage
from tests.support.waiting import wait_until
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_runner.gateway import Gateway, TrialBudget, planned_model
from trialfleet_runner.gateway.answers import ModelAnswer
from trialfleet_runner.gateway.budget import MOST_IN_FLIGHT
from trialfleet_runner.gateway.tally import RequestTally, Throttle

PLANNED = {"anthropic": "claude-sonnet-4-6", "chat": "gpt-5.2", "responses": "gpt-5.2", "gemini": "gemini-2.5-pro"}
WORDS = "word " * 1000


def asking(host: ModelHost, model: str) -> tuple[str, bytes]:
    path, body = request_for(host, streamed=False)
    if host.path == GEMINI:
        return path.replace("gemini-2.5-pro", model), json.dumps(body).encode()
    return path, json.dumps({**body, "model": model}).encode()


@pytest.mark.parametrize("name", PLANNED)
def test_a_model_that_the_plan_lacks_is_answered_404(tmp_path: Path, name: str) -> None:
    planned, host = PLANNED[name], HOSTS[name]
    options: dict[str, Any] = {"model": planned, "side_models": ("small-*",)}
    routes = (f"{planned}:online", "small-1:online", f"x/y/{planned}", f"openrouter/{planned}", "x/small-1")
    foreign = ("large-1", f"{planned}-pro", f"{planned}-20990101", *(() if host.path == GEMINI else routes))
    with gateway_to(tmp_path, host, **options) as (gateway, server):
        for model in foreign:
            assert ask_model(gateway, *asking(host, model))[0] == 404
        refused = gateway.report()
        assert server.requests == []
        assert ask_model(gateway, *asking(host, "small-1"))[0] == 200
        assert ask_model(gateway, *asking(host, planned))[0] == 200
        report = gateway.report()
    assert (refused.received, refused.halt, refused.throttled_s) == (0, None, 0)
    assert refused.foreign_models == tuple(sorted(foreign))
    assert (report.received, report.turns, report.side_requests) == (2, 1, 1)


COUNTS = {"anthropic": "/v1/messages/count_tokens", "gemini": GEMINI.replace("generateContent", "countTokens")}


def send_request(gateway: Gateway, method: str, path: str, body: dict[str, Any] | None = None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, {"x-api-key": gateway.token})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("name", COUNTS)
def test_requests_that_no_model_answers_are_counted_and_name_planned_models(tmp_path: Path, name: str) -> None:
    host, path, planned = HOSTS[name], COUNTS[name], PLANNED[name]
    _, body = request_for(host, streamed=False)
    options: dict[str, Any] = {"model": planned, "side_models": ("small-*",), "budget": TrialBudget(max_turns=1)}
    with gateway_to(tmp_path, host, **options) as (gateway, server):
        foreign = [
            send_request(gateway, "GET", "/v1/models/large-1"),
            send_request(gateway, "POST", path, {**body, "model": "large-1"}),
            send_request(gateway, "POST", path.replace(planned, "large-1"), {**body, "model": "large-2"}),
        ]
        assert (foreign, server.requests) == ([404, 404, 404], [])
        known = [send_request(gateway, "GET", f"/v1/models/{one}") for one in (planned, "small-1")]
        listed = [send_request(gateway, "GET", "/v1/models") for _ in range(20)]
        counted = [send_request(gateway, "POST", path, {**body, "model": planned}) for _ in range(22)]
        assert set(known + listed + counted) == {200}
        assert [
            send_request(gateway, "GET", "/v1/models"),
            send_request(gateway, "POST", path, {**body, "model": planned}),
        ] == [
            400,
            400,
        ]
        assert ask_model(gateway, *asking(host, planned))[0] == 400
    report = gateway.report()
    assert (report.requests, report.turns, report.stop) == (0, 0, Stop.MAX_TURNS)


def with_text(host: ModelHost, text: str, *, image: str = "") -> bytes:
    _, body = request_for(host, streamed=False)
    if host.path == GEMINI:
        parts: list[dict[str, Any]] = [{"text": text}, {"inlineData": {"mimeType": "image/png", "data": image}}]
        return json.dumps({**body, "contents": [{"role": "user", "parts": parts}]}).encode()
    field, kind = ("input", "input_text") if "input" in body else ("messages", "text")
    picture: dict[str, Any] = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}
    if host.path == MESSAGES:
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": image}}
    elif field == "input":
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{image}"}
    content = [{"type": kind, "text": text}, picture]
    return json.dumps({**body, field: [{"role": "user", "content": content}]}).encode()


@pytest.mark.parametrize("name", HOSTS)
def test_a_request_beyond_the_declared_size_is_answered_413(tmp_path: Path, name: str) -> None:
    host = HOSTS[name]
    path, _ = request_for(host, streamed=False)
    with gateway_to(tmp_path, host, request_tokens=2000) as (gateway, server):
        status, answer = ask_model(gateway, path, with_text(host, WORDS * 2))
        assert (status, b"prompt is too long" in answer) == (413, True)
        assert server.requests == []
        assert ask_model(gateway, path, with_text(host, WORDS, image="A" * 100_000))[0] == 200, (
            "an image is no text"
        )
        assert gateway.report().refused == ("prompt is too long: more than limits.request_tokens (2,000 tokens)",)


def test_text_that_is_dressed_up_as_an_image_is_text(tmp_path: Path) -> None:
    host = HOSTS["anthropic"]
    call = {"type": "tool_use", "id": "1", "name": "f", "input": {"media_type": "image/png", "data": WORDS * 2}}
    _, body = request_for(host, streamed=False)
    body["messages"] = [{"role": "assistant", "content": [call]}]
    with gateway_to(tmp_path, host, request_tokens=2000) as (gateway, _):
        assert ask_model(gateway, host.path, json.dumps(body).encode())[0] == 413


def test_four_requests_are_in_flight_and_others_wait(tmp_path: Path) -> None:
    host = HOSTS["anthropic"]
    path, body = request_for(host, streamed=False)
    with gateway_to(tmp_path, host) as (gateway, server), ThreadPoolExecutor(7) as pool:
        server.play(*[Hang()] * MOST_IN_FLIGHT)
        asked = [pool.submit(ask_model, gateway, path, json.dumps(body).encode()) for _ in range(7)]
        wait_until(lambda: len(server.requests) == MOST_IN_FLIGHT)
        time.sleep(0.3)
        assert len(server.requests) == MOST_IN_FLIGHT
        server.released.set()
        assert len([one.result() for one in asked]) == 7
        assert len(server.requests) == 7


@pytest.mark.parametrize("name", PLANNED)
def test_a_made_up_name_of_the_planned_model_stops_no_clock(tmp_path: Path, name: str) -> None:
    """Gateways answer 429 where no deployment has the name, whoever asks. The control is the plan's own name."""
    planned, host = PLANNED[name], HOSTS[name]
    for asked, status in ((f"{planned}-20991231", 404), (planned, 429)):
        folder = tmp_path / asked
        folder.mkdir()
        with gateway_to(folder, host, model=planned, side_models=()) as (gateway, server):
            server.play(Fail(429, "rate_limit_error"))
            assert ask_model(gateway, *asking(host, asked))[0] == status
            time.sleep(0.1)
            assert (gateway.throttled_s() > 0.05) is (status == 429)
            assert (gateway.report().provider_error is not None) is (status == 429)


@pytest.mark.parametrize(
    ("planned", "spelled"),
    [
        ("anthropic/claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("openrouter/anthropic/claude-sonnet-4-6", "anthropic/claude-sonnet-4-6"),
        ("claude-sonnet-4-6[1m]", "claude-sonnet-4-6"),
        ("claude-sonnet-4-6-20260101", "claude-sonnet-4-6-20260101"),
    ],
)
def test_an_agent_may_strip_the_plans_own_prefix(tmp_path: Path, planned: str, spelled: str) -> None:
    host = HOSTS["anthropic"]
    with gateway_to(tmp_path, host, model=planned, side_models=("claude-haiku-*",)) as (gateway, _):
        assert ask_model(gateway, *asking(host, spelled))[0] == 200
        side = f"{planned.rpartition('/')[0]}/claude-haiku-4-5-20251001".lstrip("/")
        assert ask_model(gateway, *asking(host, side))[0] == 200
        report = gateway.report()
    assert (report.turns, report.side_requests, report.foreign_models) == (1, 1, ())


def test_a_date_that_the_provider_names_is_the_planned_model() -> None:
    """Answered once under the plan's name, it may be asked as the answer spells it, and not as another date."""
    tally = RequestTally(Throttle(60.0), "claude-sonnet-4-6", side_models=frozenset())
    answer = ModelAnswer({"model": "claude-sonnet-4-6-20260101"}, complete=True)
    assert not tally.is_declared("claude-sonnet-4-6-20260101")
    tally.succeeded(1.0, chain="c", started=0.0, main=True, answer=answer)
    assert tally.is_main("claude-sonnet-4-6-20260101")
    assert not tally.is_declared("claude-sonnet-4-6-20990101")
    tally.succeeded(1.0, chain="c", started=0.0, main=True, answer=replace(answer, body={"model": "gpt-5.2"}))
    assert not tally.is_declared("gpt-5.2"), "a fallback is another model"


def test_requests_that_the_agent_left_take_no_place_and_stop_no_clock(tmp_path: Path) -> None:
    """A client that gives up on a silent provider asks again on another connection."""
    host = HOSTS["anthropic"]
    path, body = request_for(host, streamed=False)
    data = json.dumps(body).encode()
    with gateway_to(tmp_path, host, model="claude-sonnet-4-6") as (gateway, server):
        server.play(*[Hang()] * MOST_IN_FLIGHT, Say())
        for n in range(MOST_IN_FLIGHT):
            with socket.create_connection(("127.0.0.1", gateway.port or 0)) as connection:
                connection.sendall(head(gateway, path, f"content-length: {len(data)}") + data)
                wait_until(lambda n=n: len(server.requests) == n + 1)
        began = time.monotonic()
        assert ask_model(gateway, path, data)[0] == 200
        assert time.monotonic() - began < 10
    report = gateway.report()
    assert (report.throttled_s, report.provider_error, report.turns) == (0, None, 1)
    assert (report.interrupted, report.estimated_answers) == (MOST_IN_FLIGHT, MOST_IN_FLIGHT), (
        "charged all the same"
    )


def test_a_limit_a_minute_that_the_request_exceeds_stops_no_clock(tmp_path: Path) -> None:
    """It never passes, so that the provider would be blamed for as long as the agent likes."""
    host = HOSTS["chat"]
    for stated, stops in (("900", False), ("90000", True)):
        folder = tmp_path / stated
        folder.mkdir()
        with gateway_to(folder, host, model="gpt-5.2") as (gateway, server):
            server.play(Fail(429, "rate_limit_exceeded", token_limit=stated))
            ask_model(gateway, host.path, with_text(host, WORDS))
            time.sleep(0.1)
            assert (gateway.throttled_s() > 0.05) is stops
            assert (gateway.report().provider_error is not None) is stops


@pytest.mark.parametrize("quota", ["GenerateContentInputTokensPerModelPerMinute-FreeTier", "InputTokensPerMinute"])
def test_so_does_a_quota_a_minute_that_google_states(tmp_path: Path, quota: str) -> None:
    for stated, stops in (("900", False), ("90000", True)):
        folder = tmp_path / stated
        folder.mkdir()
        violations = {"violations": [{"quotaId": quota, "quotaValue": stated}]}
        with gateway_to(folder, HOSTS["gemini"], model="gemini-2.5-pro") as (gateway, server):
            server.play(Fail(429, "RESOURCE_EXHAUSTED", details=(violations,)))
            ask_model(gateway, GEMINI, with_text(HOSTS["gemini"], WORDS))
            time.sleep(0.1)
            assert (gateway.throttled_s() > 0.05) is stops


@pytest.mark.parametrize("everybody", [False, True])
@pytest.mark.parametrize("name", HOSTS)
def test_a_request_that_nobody_answers_is_no_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, everybody: bool
) -> None:
    """Too large for the account, or one that breaks the provider. A request of ours, of a size that was answered
    before, tells it from an outage, which is the control."""
    monkeypatch.setattr(planned_model, "SHORTEST_OUTAGE_S", 0.0)
    host = HOSTS[name]
    path, body = request_for(host, streamed=False)
    model = "claude-sonnet-4-6" if host.path == MESSAGES else str(body.get("model", "gemini-2.5-pro"))
    limit = Fail(429, "ThrottlingException" if name == "bedrock" else "rate_limit_error")
    with gateway_to(tmp_path, host, model=model) as (gateway, server):
        gateway._probe = replace(gateway._probe, delays_s=(0.0, 0.0))  # pyright: ignore[reportPrivateUsage]
        server.play(Say(usage=Usage(input=40, output=3)), *[limit] * 5, then=limit if everybody else Say())
        statuses = [ask_model(gateway, path, json.dumps(body).encode())[0] for _ in range(4)]
        gateway.close()
        gateway.ask_again(threading.Event())
        assert (statuses, len(server.requests)) == ([200, 429, 429, 429], 7)
        assert server.requests[-1].strings.count("word ") == 40
    assert gateway.report().provider_gave_up is everybody


# --- the connection ------------------------------------------------------------------------------------------


def exchange(gateway: Gateway, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", gateway.port or 0), timeout=20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer


def head(gateway: Gateway, path: str, *lines: str, version: str = "1.1") -> bytes:
    given = (f"POST {path} HTTP/{version}", f"x-api-key: {gateway.token}", *lines)
    return "\r\n".join((*given, "", "")).encode()


def chunked(data: bytes, trailers: bytes = b"") -> bytes:
    return b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(data), data, trailers)


def test_framings_of_one_request(tmp_path: Path) -> None:
    host = HOSTS["anthropic"]
    path, body = request_for(host, streamed=True)
    data = json.dumps(body).encode()
    length = f"content-length: {len(data)}"
    with gateway_to(tmp_path, host) as (gateway, server):
        trailers = head(gateway, path, "transfer-encoding: chunked") + chunked(data, b"x-sum: 1\r\n")
        assert exchange(gateway, trailers * 2).count(b"HTTP/1.1 200") == 2, (
            "trailers, and a second request after it"
        )
        assert exchange(gateway, (head(gateway, path, length) + data) * 2).count(b"HTTP/1.1 200") == 2
        old = exchange(gateway, head(gateway, path, length, version="1.0") + data)
        assert old.startswith(b"HTTP/1.1 200")
        assert b"transfer-encoding" not in old.partition(b"\r\n\r\n")[0]
        assert old.rstrip().endswith(b'data: {"type": "message_stop"}')
        assert len(server.requests) == 5


AMBIGUOUS = (
    ("transfer-encoding: chunked", "content-length: 3"),
    ("transfer-encoding: gzip, chunked",),
    ("content-length: 2", "content-length: 3"),
    ("content-length: -2",),
    ("content-length: 2", "content-encoding: gzip"),
    ("transfer-encoding: chunked", "content-encoding: br"),
)


@pytest.mark.parametrize("lines", AMBIGUOUS)
def test_what_two_parsers_may_read_differently_is_refused(tmp_path: Path, lines: tuple[str, ...]) -> None:
    with gateway_to(tmp_path, HOSTS["anthropic"]) as (gateway, server):
        answer = exchange(gateway, head(gateway, MESSAGES, *lines) + chunked(b"{}"))
        assert answer.split()[1] in (b"400", b"411", b"415")
        assert answer.count(b"HTTP/1.1") == 1, "nothing that follows is read as a request"
        assert server.requests == []


def test_a_web_socket_and_huge_headers_are_not_served(tmp_path: Path) -> None:
    upgrade = ("connection: upgrade", "upgrade: websocket", "sec-websocket-key: eA==", "sec-websocket-version: 13")
    with gateway_to(tmp_path, HOSTS["responses"]) as (gateway, server):
        for path in ("/v1/responses", "/v1/models", "/v1/realtime?model=gpt-5.2"):
            request = head(gateway, path, *upgrade).replace(b"POST", b"GET")
            assert b" 101 " not in exchange(gateway, request)
        assert exchange(gateway, head(gateway, MESSAGES, "x: " + "y" * 70_000)).split()[1] == b"431"
        assert exchange(gateway, head(gateway, MESSAGES, *(f"x-{n}: y" for n in range(200)))).split()[1] == b"431"
        assert [one for one in server.requests if one.path != "/v1/models"] == []


@pytest.mark.parametrize(
    "query", ["fields=candidates", "alt=media", "alt=sse&fields=x", "access_token=x", "$alt=sse"]
)
def test_a_query_cannot_change_what_the_provider_answers(tmp_path: Path, query: str) -> None:
    host = HOSTS["gemini"]
    path, body = request_for(host, streamed=True)
    with gateway_to(tmp_path, host) as (gateway, server):
        status, _ = ask_model(gateway, f"{path.partition('?')[0]}?{query}", json.dumps(body).encode())
        assert (status, server.requests) == (400, [])


@pytest.mark.parametrize("name", HOSTS)
def test_headers_cannot_change_how_the_provider_reads_or_answers(tmp_path: Path, name: str) -> None:
    """Another charset would be another request; an answer in another form would look like a broken one."""
    host = HOSTS[name]
    path, body = request_for(host, streamed=True)
    data = json.dumps(body).encode()
    odd = (
        *("content-type: text/plain; charset=utf-16", "accept-encoding: gzip", "anthropic-workspace-id: w"),
        *("x-http-method-override: DELETE", "cookie: a=b", f"content-length: {len(data)}"),
        "accept: application/x-protobuf",
    )
    with gateway_to(tmp_path, host) as (gateway, server):
        assert b" 200 " in exchange(gateway, head(gateway, path, *odd) + data)[:20]
        sent = server.requests[0].headers
    assert (sent["content-type"], sent.get("accept-encoding", "identity")) == ("application/json", "identity")
    assert not {"anthropic-workspace-id", "x-http-method-override", "cookie", "accept"} & set(sent)


@pytest.mark.parametrize("odd", [-1, 0])
@pytest.mark.parametrize("name", HOSTS)
def test_a_limit_on_output_that_is_none_is_replaced(tmp_path: Path, name: str, odd: int) -> None:
    """Some servers read it as no limit."""
    host = HOSTS[name]
    path, body = request_for(host, streamed=False)
    cap = {"chat": "max_tokens", "responses": "max_output_tokens"}.get(name, "max_tokens")
    limited = {"generationConfig": {"maxOutputTokens": odd}} if host.path == GEMINI else {cap: odd}
    body = {key: value for key, value in body.items() if key != "thinking"}
    with gateway_to(tmp_path, host, budget=TrialBudget(max_cost_usd=0.3)) as (gateway, server):
        status, answer = ask_model(gateway, path, json.dumps({**body, **limited}).encode())
        assert status == 200, answer
        sent = server.requests[0].body
    found = sent["generationConfig"]["maxOutputTokens"] if host.path == GEMINI else sent[cap]
    assert 0 < found <= 32_768


def test_of_two_limits_on_output_the_larger_is_paid_for(tmp_path: Path) -> None:
    """A provider may keep either."""
    host = HOSTS["chat"]
    _, body = request_for(host, streamed=False)
    with gateway_to(tmp_path, host, budget=TrialBudget(max_cost_usd=0.2)) as (gateway, server):
        both = {**body, "max_tokens": 1, "max_completion_tokens": 100_000}
        assert ask_model(gateway, host.path, json.dumps(both).encode())[0] == 200
        sent = server.requests[0].body
    assert sent["max_tokens"] == sent["max_completion_tokens"] < 20_000


def test_an_upstream_that_never_answers_many_ends_with_the_gateway(tmp_path: Path) -> None:
    host = HOSTS["anthropic"]
    path, body = request_for(host, streamed=False)
    with gateway_to(tmp_path, host) as (gateway, server):
        server.play(*[Hang()] * MOST_IN_FLIGHT, Say())
        threads = [threading.Thread(target=lambda: _quietly(gateway, path, body), daemon=True) for _ in range(12)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(server.requests) == MOST_IN_FLIGHT)
        began = time.monotonic()
        gateway.close()
        for thread in threads:
            thread.join(10)
        assert time.monotonic() - began < 8
        assert len(server.requests) == MOST_IN_FLIGHT


def _quietly(gateway: Gateway, path: str, body: dict[str, Any]) -> None:
    with suppress(OSError, http.client.HTTPException):
        ask_model(gateway, path, json.dumps(body).encode())
