"""The gateway over real sockets: who is served, what passes, what is cut, and what it says afterwards."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway_requests import hang_up_after
from tests.support.ports import reserved_port
from tests.support.scripted_messages import Break, Fail, Hang, Say, ScriptedMessages, Usage
from tests.support.waiting import wait_until
from trialfleet_deliveries.received_texts import DeclaredText
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_runner.gateway import Canaries, Gateway, TrialBudget, Upstream, planned_model
from trialfleet_runner.gateway.provider_probe import ProviderProbe
from trialfleet_sandbox import forwarder

KEY = "sk-the-real-key"
MODEL = "claude-sonnet-4-6"
FORWARDER = Path(forwarder.__file__)


@contextmanager
def opened(tmp_path: Path, url: str, *, idle_timeout_s: float = 60, **options: Any) -> Iterator[Gateway]:
    upstream = Upstream(url, KEY, idle_timeout_s=idle_timeout_s, whole_timeout_s=120)
    with Gateway(upstream, record=tmp_path / "record", **options) as gateway:
        yield gateway


def body(**more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hi"}]
    return {"model": MODEL, "max_tokens": 100, "tools": [{"name": "t"}], "messages": messages, **more}


def ask(
    gateway: Gateway,
    sent: dict[str, Any] | bytes,
    *,
    path: str = "/v1/messages",
    method: str = "POST",
    headers: dict[str, str] | None = None,
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=100)
    data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    try:
        given = {"x-api-key": gateway.token, "content-type": "application/json"} | (headers or {})
        connection.request(method, path, data, given)
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


# --- who is served --------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"x-api-key": "guess"}, {"x-api-key": "", "authorization": "Bearer "}])
def test_without_the_token_nobody_is_served(
    tmp_path: Path, provider: ScriptedMessages, given: dict[str, str]
) -> None:
    with opened(tmp_path, provider.url) as gateway:
        assert ask(gateway, body(), headers=given)[0] == 401
        assert (
            ask(gateway, body(), headers={"x-api-key": "", "authorization": f"Bearer {gateway.token}"})[0] == 200
        )
    assert (len(provider.requests), gateway.report().unauthorised) == (1, 1)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/messages/batches", 404),
        ("POST", "/v1/files", 404),
        ("POST", "/v1/messages/../files", 404),
        ("POST", "//other.host/v1/messages", 404),
        ("GET", "/v1/messages", 404),
        ("GET", "/v1/models", 200),
        ("GET", "/v1/models/claude-sonnet-4-6", 200),
        ("GET", "/v1/models/../../secret", 404),
        ("POST", "/v1/messages?beta=true", 200),
        ("POST", "/v1/messages?x=%0d%0a", 400),
        ("POST", "/v1/messages/count_tokens", 200),
    ],
)
def test_only_named_paths_are_served(
    tmp_path: Path, provider: ScriptedMessages, method: str, path: str, status: int
) -> None:
    with opened(tmp_path, provider.url) as gateway:
        assert ask(gateway, body(), method=method, path=path)[0] == status


def test_sizes_and_forms_of_requests_are_bounded(tmp_path: Path, provider: ScriptedMessages) -> None:
    with opened(tmp_path, provider.url) as gateway:
        assert ask(gateway, b"[1]")[0] == 400
        assert ask(gateway, b"[" * 100_000)[0] == 400
        assert ask(gateway, b"", headers={"content-length": "99999999999"})[0] == 413
        assert ask(gateway, b"x", headers={"content-encoding": "gzip"})[0] == 415
    assert provider.requests == []


def test_a_chunked_request_is_read_whole(tmp_path: Path, provider: ScriptedMessages) -> None:
    data = json.dumps(body()).encode()
    with opened(tmp_path, provider.url) as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=100)
        pieces = (data[start : start + 17] for start in range(0, len(data), 17))
        connection.request("POST", "/v1/messages", pieces, {"x-api-key": gateway.token}, encode_chunked=True)
        assert connection.getresponse().status == 200
        connection.close()
    assert provider.requests[0].body == body()


@pytest.mark.parametrize(
    ("framing", "begun"),
    [
        ("content-length: 100", b'{"mod'),
        ("transfer-encoding: chunked", b'5\r\n{"mod'),
        ("transfer-encoding: chunked", b'5\r\n{"mod\r\n'),
    ],
)
@pytest.mark.parametrize("by_agent", [True, False])
def test_a_request_that_breaks_off_was_not_sent(
    tmp_path: Path, provider: ScriptedMessages, framing: str, begun: bytes, by_agent: bool
) -> None:
    """An agent that ends in the middle of its first request has crashed, whoever hangs up."""
    with opened(tmp_path, provider.url) as gateway:
        with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
            head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {gateway.token}\r\n{framing}\r\n\r\n"
            connection.sendall(head.encode() + begun)
            wait_until(lambda: gateway.report().received == 1)
            if not by_agent:
                gateway.close()
        if by_agent:
            wait_until(lambda: gateway.report().received == 0)
    assert gateway.report().received == 0
    assert provider.requests == []


def test_tools_that_the_provider_runs_are_refused(tmp_path: Path, provider: ScriptedMessages) -> None:
    searching = body(tools=[{"type": "web_search_20250305", "name": "web_search"}])
    with opened(tmp_path, provider.url) as gateway:
        status, text, _ = ask(gateway, searching)
    assert (status, b"web_search" in text, provider.requests) == (400, True, [])


# --- what passes ----------------------------------------------------------------------------------------


def test_the_agents_request_reaches_the_provider_with_the_real_key(
    tmp_path: Path, provider: ScriptedMessages
) -> None:
    with opened(tmp_path, provider.url) as gateway:
        ask(gateway, body(metadata={"user_id": "ünï \u0000"}), headers={"anthropic-beta": "b1", "cookie": "c=1"})
    request = provider.requests[0]
    assert request.body == body(metadata={"user_id": "ünï \u0000"})
    assert (request.headers["x-api-key"], request.headers["anthropic-beta"]) == (KEY, "b1")
    assert "cookie" not in request.headers
    assert gateway.token not in json.dumps(request.headers)


def test_a_stream_passes_as_it_comes(tmp_path: Path, provider: ScriptedMessages) -> None:
    """The first words arrive while the provider is still silent about the rest, which is given up at last."""
    provider.play(Hang(after_words=True))
    with opened(tmp_path, provider.url) as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        connection.request("POST", "/v1/messages", json.dumps(body(stream=True)), {"x-api-key": gateway.token})
        answer = connection.getresponse()
        assert b"message_start" in answer.read1()
        assert gateway.report().error_count == 0, "the provider has not been given up yet"
        provider.released.set()
        with pytest.raises(http.client.IncompleteRead):  # the cut stays visible to the agent
            answer.read()
        connection.close()
    report = gateway.report()
    assert (report.turns, report.error_count) == (0, 1)
    assert report.provider_error is not None


def test_a_provider_that_is_silent_for_too_long_is_given_up(tmp_path: Path, provider: ScriptedMessages) -> None:
    provider.play(Hang(after_words=True))
    with opened(tmp_path, provider.url, idle_timeout_s=1) as gateway:
        with pytest.raises(http.client.IncompleteRead):
            ask(gateway, body(stream=True))
        assert not provider.released.is_set()
    report = gateway.report()
    assert (report.turns, report.error_count) == (0, 1)
    assert "the stream broke" in (report.provider_error or "")


def test_retry_after_and_status_pass_back(tmp_path: Path, provider: ScriptedMessages) -> None:
    provider.play(Fail(429, "rate_limit_error", retry_after="7"))
    with opened(tmp_path, provider.url) as gateway:
        status, text, headers = ask(gateway, body())
    assert (status, headers["retry-after"], headers["request-id"]) == (429, "7", "req_scripted")
    assert json.loads(text)["error"]["type"] == "rate_limit_error"


def test_in_an_outage_the_agent_is_asked_to_wait(tmp_path: Path, provider: ScriptedMessages) -> None:
    """Some clients repeat a request five times within half a minute. The provider's own wait comes first."""
    own = Fail(529, "overloaded_error", retry_after="7")
    provider.play(*[Fail(529, "overloaded_error")] * 3, own, Say("Again."), Fail(529, "overloaded_error"))
    with opened(tmp_path, provider.url) as gateway:
        waits = [ask(gateway, body())[2].get("retry-after") for _ in range(6)]
    assert waits == [None, "30", "30", "7", None, None]


def test_without_a_provider_the_agent_is_asked_to_wait(tmp_path: Path) -> None:
    with opened(tmp_path, "http://127.0.0.1:9") as gateway:
        assert [ask(gateway, body())[2].get("retry-after") for _ in range(3)] == [None, "30", "30"]


def test_a_redirect_is_not_followed(tmp_path: Path, provider: ScriptedMessages) -> None:
    provider.play(Fail(307))
    with opened(tmp_path, provider.url) as gateway:
        assert ask(gateway, body())[0] == 502
    assert len(provider.requests) == 1


def test_a_provider_that_is_not_there(tmp_path: Path) -> None:
    with reserved_port() as port, opened(tmp_path, f"http://127.0.0.1:{port}") as gateway:
        assert ask(gateway, body())[0] == 502
    assert "no answer" in (gateway.report().provider_error or "")


# --- what it says ---------------------------------------------------------------------------------------


def test_side_requests_cost_but_are_no_turns(tmp_path: Path, provider: ScriptedMessages) -> None:
    provider.play(Say("a", (), Usage(100, 10)), Say("b", (), Usage(100, 10)))
    with opened(tmp_path, provider.url, model=MODEL) as gateway:
        ask(gateway, body())
        ask(gateway, body(tools=[]))  # a summary: no tools
        ask(gateway, body(model="claude-haiku-4-5"))  # a sub-agent on a smaller model
        report = gateway.report()
    assert (report.requests, report.turns, report.side_requests) == (3, 1, 2)
    assert report.input_tokens == 210
    assert report.cost_usd == pytest.approx((110 * 3 + 15 * 15 + 100 * 1 + 10 * 5) / 1e6)
    assert report.models == ("claude-haiku-4-5", MODEL)


def test_waiting_ends_with_the_next_success_of_the_same_model(tmp_path: Path, provider: ScriptedMessages) -> None:
    provider.play(Fail(529), Say())
    began = time.monotonic()
    with opened(tmp_path, provider.url) as gateway:
        ask(gateway, body())
        time.sleep(0.3)
        open_so_far = gateway.throttled_s()
        ask(gateway, body(model="claude-haiku-4-5", tools=[]))
        assert gateway.report().provider_error is not None
        ask(gateway, body())
        done, passed = gateway.throttled_s(), time.monotonic() - began
        time.sleep(0.1)
        assert gateway.throttled_s() == done
    assert 0.3 <= open_so_far <= done < passed
    assert gateway.report().provider_error is None


@pytest.mark.parametrize(
    "failure",
    [
        Fail(401, "authentication_error", "invalid x-api-key"),
        Fail(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
        Fail(404, "not_found_error", "model: claude-sonnet-4-6"),
    ],
)
def test_what_no_trial_can_survive_halts(tmp_path: Path, provider: ScriptedMessages, failure: Fail) -> None:
    provider.play(then=failure)
    with opened(tmp_path, provider.url) as gateway:
        assert ask(gateway, body())[0] == failure.status
    assert failure.message in (gateway.report().halt or "")


def test_what_a_request_of_our_own_does_not_meet_halts_nothing(tmp_path: Path, provider: ScriptedMessages) -> None:
    """A beta header, a size or a text of the agent's can bring the same answers."""
    for failure in (Fail(403, "permission_error", "this beta is not yours"), Fail(404, "not_found_error", "none")):
        provider.play(failure)
        with opened(tmp_path, provider.url) as gateway:
            assert ask(gateway, body())[0] == failure.status
        assert gateway.report().halt is None


def test_a_failure_that_an_answer_follows_is_not_asked_about(tmp_path: Path, provider: ScriptedMessages) -> None:
    provider.play(Fail(403, "permission_error"), Say(), then=Fail(401))
    with opened(tmp_path, provider.url) as gateway:
        assert [ask(gateway, body())[0] for _ in range(2)] == [403, 200]
    assert (gateway.report().halt, len(provider.requests)) == (None, 2)


def test_the_names_and_paths_that_an_agent_chooses_halt_nothing(
    tmp_path: Path, provider: ScriptedMessages
) -> None:
    provider.play(Say(), then=Fail(403, "permission_error", "model: not yours"))
    with opened(tmp_path, provider.url, model=MODEL) as gateway:
        assert ask(gateway, body())[0] == 200
        assert ask(gateway, body(model="claude-nope"))[0] == 403
        assert ask(gateway, body(), path="/v1/messages/count_tokens")[0] in (200, 403)
    report = gateway.report()
    assert (report.halt, report.provider_error, report.throttled_s) == (None, None, 0)
    provider.play(then=Fail(403, "permission_error", "no such beta"))
    with opened(tmp_path, provider.url, model=MODEL) as gateway:  # the control: the planned model
        ask(gateway, body())
    assert "no such beta" in (gateway.report().halt or "")


def test_a_side_models_limit_stops_no_clock(tmp_path: Path, provider: ScriptedMessages) -> None:
    for model, stops in (("claude-haiku-4-5", False), (MODEL, True)):
        provider.play(Fail(429, "rate_limit_error"))
        with opened(tmp_path, provider.url, model=MODEL) as gateway:
            ask(gateway, body(model=model))
            time.sleep(0.1)
            assert (gateway.throttled_s() > 0.05) is stops


@pytest.mark.parametrize(
    ("then", "gave_up"), [(Fail(529, "overloaded_error"), True), (Fail(400), False), (None, False)]
)
def test_an_outage_is_one_only_if_our_repetition_of_the_last_request_meets_it(
    tmp_path: Path,
    provider: ScriptedMessages,
    monkeypatch: pytest.MonkeyPatch,
    then: Fail | None,
    gave_up: bool,
) -> None:
    monkeypatch.setattr(planned_model, "SHORTEST_OUTAGE_S", 0.0)
    provider.play(*[Fail(529, "overloaded_error")] * 3, then=then)
    probe = ProviderProbe(Upstream(provider.url, KEY), delays_s=(0.0, 0.01))
    with opened(tmp_path, provider.url, probe=probe) as gateway:
        assert [ask(gateway, body(max_tokens=900))[0] for _ in range(3)] == [529] * 3
    gateway.ask_again(threading.Event())
    assert gateway.report().provider_gave_up is gave_up
    repeated = provider.requests[3:]
    assert len(repeated) == (2 if gave_up else 1)
    assert {request.body["messages"][0]["content"] for request in repeated} == {"hi"}
    assert all(request.body["max_tokens"] < 100 for request in repeated)


def test_fewer_failures_or_a_stop_are_no_outage(
    tmp_path: Path, provider: ScriptedMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned_model, "SHORTEST_OUTAGE_S", 0.0)
    stop = threading.Event()
    for failures, stopped in ((2, False), (3, True)):
        provider.play(then=Fail(529, "overloaded_error"))
        with opened(tmp_path, provider.url) as gateway:
            for _ in range(failures):
                ask(gateway, body())
        if stopped:
            stop.set()
        gateway.ask_again(stop)
        assert not gateway.report().provider_gave_up


def test_a_page_in_place_of_an_answer_is_the_providers_and_no_turn(
    tmp_path: Path, provider: ScriptedMessages
) -> None:
    provider.play(Fail(200, "overloaded_error"), Say())
    with opened(tmp_path, provider.url) as gateway:
        assert [ask(gateway, body())[0] for _ in range(2)] == [502, 200]
    report = gateway.report()
    assert (report.turns, report.error_count, report.provider_error) == (1, 1, None)


def test_a_stated_wait_ends_the_clock(tmp_path: Path, provider: ScriptedMessages) -> None:
    for wait, least, most in (("0", 0.0, 0.2), (None, 0.5, 5.0)):
        provider.play(Fail(429, "rate_limit_error", retry_after=wait))
        with opened(tmp_path, provider.url) as gateway:
            ask(gateway, body())
            time.sleep(0.5)
            assert least <= gateway.throttled_s() <= most


def test_a_request_that_is_the_agents_own_fault_is_no_loss(tmp_path: Path, provider: ScriptedMessages) -> None:
    provider.play(Fail(400, "invalid_request_error", "prompt is too long"))
    with opened(tmp_path, provider.url) as gateway:
        ask(gateway, body())
    report = gateway.report()
    assert (report.error_count, report.provider_error, report.halt, report.throttled_s) == (1, None, None, 0)


def test_an_agent_that_hangs_up_stops_the_spending_and_is_charged(
    tmp_path: Path, provider: ScriptedMessages
) -> None:
    provider.play(Hang(after_words=True))
    with opened(tmp_path, provider.url) as gateway:
        hang_up_after(b"Let me think", gateway, body(stream=True))
    report = gateway.report()  # closing the gateway hung up on the provider
    assert (report.interrupted, report.error_count, report.provider_error) == (1, 0, None)
    assert (report.input_tokens, report.output_tokens, report.estimated_output_tokens) == (10, 1, 2)


def test_a_broken_stream_is_the_providers(tmp_path: Path, provider: ScriptedMessages) -> None:
    provider.play(Break())
    with opened(tmp_path, provider.url) as gateway, pytest.raises(http.client.IncompleteRead):
        ask(gateway, body(stream=True))
    assert "the stream broke" in (gateway.report().provider_error or "")


def test_a_delivery_counts_when_the_model_answered_and_not_before(
    tmp_path: Path, provider: ScriptedMessages
) -> None:
    provider.play(Fail(529), Say())
    canaries = Canaries(declared=(DeclaredText("inline", "NEEDLE"),), forbidden={"bait": ("B41T",)})
    with opened(tmp_path, provider.url, canaries=canaries) as gateway:
        needle = body(system="NEEDLE and B41T")
        ask(gateway, needle)
        assert gateway.report().reached == {"inline": False}
        ask(gateway, needle)
    assert gateway.report().reached == {"inline": True}
    assert gateway.report().undeclared == ("bait",)


def test_a_refused_request_reaches_nobody(tmp_path: Path, provider: ScriptedMessages) -> None:
    canaries = Canaries(declared=(DeclaredText("inline", "NEEDLE"),))
    with opened(tmp_path, provider.url, canaries=canaries, budget=TrialBudget(max_turns=1)) as gateway:
        ask(gateway, body())
        status, text, headers = ask(gateway, body(system="NEEDLE"))
    report = gateway.report()
    assert (status, headers["x-should-retry"], b"turns are spent" in text) == (400, "false", True)
    assert (report.stop, report.reached, len(provider.requests)) == (Stop.MAX_TURNS, {"inline": False}, 1)


def test_the_record_holds_bodies_without_secrets(tmp_path: Path, provider: ScriptedMessages) -> None:
    provider.play(Say(f"your key is {KEY}"))
    with opened(tmp_path, provider.url) as gateway:
        ask(gateway, body(system=f"token {gateway.token}"))
    text = (tmp_path / "record/model.jsonl").read_text()
    row = json.loads(text)
    assert row["request"]["system"] == "token [redacted]"
    assert row["response"]["content"] == [{"type": "text", "text": "your key is [redacted]"}]
    assert KEY not in text
    assert gateway.token not in text


def test_odd_bodies_break_neither_record_nor_budget(tmp_path: Path, provider: ScriptedMessages) -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    with opened(tmp_path, provider.url, budget=TrialBudget(max_cost_usd=0.1)) as gateway:
        assert ask(gateway, body(max_tokens=50_000, metadata={"lone": "\ud800"}))[0] == 200
        ask(gateway, body(max_tokens=50_000, metadata={"deep": deep}))
        assert ask(gateway, body())[0] == 200  # nothing is held for ever
    assert len((tmp_path / "record/model.jsonl").read_text().splitlines()) == gateway.report().requests


def test_a_money_budget_without_a_price_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"options\.prices"):
        Gateway(
            Upstream("http://127.0.0.1:1", KEY),
            record=tmp_path,
            budget=TrialBudget(max_cost_usd=1),
            model="house-model",
        )


# --- OpenAI's APIs --------------------------------------------------------------------------------------


class _OpenAI(BaseHTTPRequestHandler):
    """Both of OpenAI's APIs, streamed, with counts only when asked for them."""

    seen: list[dict[str, Any]]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append({"body": asked, "authorization": self.headers["authorization"], "path": self.path})
        usage = {"prompt_tokens": 20, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}
        if self.path.endswith("/responses"):
            usage = {"input_tokens": 20, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 5}}
            done = {"id": "r1", "model": "gpt-5", "usage": usage}
            rows = [{"type": "response.completed", "response": done}]
        else:
            rows = [
                {"id": "c1", "model": "gpt-5", "choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}
            ]
            rows += [{"id": "c1", "choices": [], "usage": usage}] if "stream_options" in asked else []
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"".join(b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows))
        self.wfile.write(b"data: [DONE]\n\n")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_openai_apis_stream_and_count(tmp_path: Path, path: str) -> None:
    class Handler(_OpenAI):
        seen: list[dict[str, Any]] = []  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/proxy/v1"
    try:
        with Gateway(Upstream(url, KEY, auth="bearer"), record=tmp_path, model="gpt-5") as gateway:
            asked = "input" if path == "/v1/responses" else "messages"
            sent = {"model": "gpt-5", "stream": True, "tools": [{"type": "function"}], asked: []}
            status, text, _ = ask(gateway, sent, path=path)
    finally:
        server.shutdown()
        server.server_close()
    report = gateway.report()
    assert (status, text.endswith(b"data: [DONE]\n\n")) == (200, True)
    assert (report.turns, report.input_tokens, report.cache_read_tokens, report.output_tokens) == (1, 15, 5, 4)
    assert report.cost_usd == pytest.approx((15 * 1.25 + 5 * 0.125 + 4 * 10) / 1e6)
    assert (Handler.seen[0]["authorization"], Handler.seen[0]["path"]) == (f"Bearer {KEY}", f"/proxy{path}")


# --- the way out of a sandbox ---------------------------------------------------------------------------


def forward(listen: Path, port: int, *argv: str) -> subprocess.Popen[str]:
    with Path(os.devnull).open("wb") as report:
        told = ("--socket", str(listen), "--port", str(port), "--report", str(report.fileno()), "--", *argv)
        program = [sys.executable, "-I", "-S", str(FORWARDER), *told]
        return subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=(report.fileno(),),
        )


CLIENT = """
import http.client, json, sys, threading
port, token, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
body = json.loads(sys.stdin.read())
def ask(found):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    connection.request("POST", "/v1/messages", json.dumps(body), {"x-api-key": token})
    found.append((connection.getresponse().status))
found = []
threads = [threading.Thread(target=ask, args=(found,)) for _ in range(count)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sorted(found))
sys.exit(7)
"""


def test_many_connections_pass_the_forwarder_from_a_deep_folder(
    tmp_path: Path, provider: ScriptedMessages
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with reserved_port() as port, opened(tmp_path, provider.url, listen=deep / "gateway.sock") as gateway:
        program = forward(
            deep / "gateway.sock", port, sys.executable, "-c", CLIENT, str(port), gateway.token, "40"
        )
        out, _ = program.communicate(json.dumps(body(metadata={"pad": "x" * 200_000})), timeout=120)
    assert out.strip() == str([200] * 40)
    assert program.returncode == 7
    assert gateway.report().turns == 40
    assert not (deep / "gateway.sock").exists()


def test_the_forwarder_passes_signals_and_codes_on(tmp_path: Path) -> None:
    script = "trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    with reserved_port() as port:
        program = forward(tmp_path / "none.sock", port, "bash", "-c", script)
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        program.terminate()
        assert program.communicate(timeout=60)[0] == "told\n"
    assert program.returncode == 3


@pytest.mark.parametrize(("argv", "code"), [(("bash", "-c", "kill -9 $$"), 137), (("/nonexistent",), 127)])
def test_the_forwarder_says_how_its_program_ended(tmp_path: Path, argv: tuple[str, ...], code: int) -> None:
    with reserved_port() as port:
        program = forward(tmp_path / "none.sock", port, *argv)
        program.communicate(timeout=60)
    assert program.returncode == code


def test_half_closed_connections_still_get_their_answer(tmp_path: Path) -> None:
    """A client that has sent everything and closed its sending side waits for an answer that comes later."""
    path = tmp_path / "echo.sock"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def echo() -> None:
        connection, _ = listening.accept()
        with connection:
            data = b""
            while piece := connection.recv(65536):
                data += piece
            time.sleep(0.1)
            connection.sendall(data[::-1])

    threading.Thread(target=echo, daemon=True).start()
    client = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"abc" * 100000)
s.shutdown(socket.SHUT_WR)
data = b""
while piece := s.recv(65536): data += piece
print(len(data), data[:3])
"""
    with reserved_port() as port:
        program = forward(path, port, sys.executable, "-c", client, str(port))
        out, _ = program.communicate(timeout=60)
    listening.close()
    assert out.strip() == "300000 b'cba'"


def test_requests_are_watched_only_while_somebody_watches(tmp_path: Path, provider: ScriptedMessages) -> None:
    turns = list[int]()

    def look(turn: int) -> Callable[[], None]:
        turns.append(turn)
        return lambda: None

    with opened(tmp_path, provider.url) as gateway:
        with gateway.watch_requests(look):
            assert ask(gateway, body())[0] == 200
        assert ask(gateway, body())[0] == 200
    assert turns == [0]
