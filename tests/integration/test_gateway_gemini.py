"""Gemini's API through the gateway, over real sockets, against a server that plays a script."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_gemini import scripted_gemini
from tests.support.scripted_messages import Break, Fail, Hang, Say, ScriptedMessages, Usage
from trialfleet_deliveries.received_texts import DeclaredText
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_runner.gateway import Canaries, Gateway, TrialBudget, Upstream

KEY = "AIza-the-real-key"
MODEL = "gemini-2.5-pro"
AT = f"/v1beta/models/{MODEL}"
STREAMS = (f"{AT}:streamGenerateContent?alt=sse", f"{AT}:streamGenerateContent")
ALL = (f"{AT}:generateContent", f"{AT}:generateContent?alt=sse", *STREAMS)
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "6.2s"}
MINUTE = {"@type": "t/google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerMinutePerProject"}]}
DAY = {"@type": "t/google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}
QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.fixture
def google() -> Iterator[ScriptedMessages]:
    with scripted_gemini() as played:
        yield played


@contextmanager
def opened(tmp_path: Path, url: str, **options: Any) -> Iterator[Gateway]:
    upstream = Upstream(url, KEY, auth="x-goog-api-key")
    with Gateway(upstream, record=tmp_path / "record", **options) as gateway:
        yield gateway


def body(**more: Any) -> dict[str, Any]:
    tools = [{"functionDeclarations": [{"name": "read_file"}]}]
    return {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": tools, **more}


def ask(
    gateway: Gateway, path: str, sent: dict[str, Any], headers: dict[str, str] | None = None, method: str = "POST"
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        given = {"x-goog-api-key": gateway.token} if headers is None else headers
        connection.request(method, path, json.dumps(sent), {"content-type": "application/json"} | given)
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


@pytest.mark.parametrize("path", ALL)
def test_every_form_passes_and_is_counted(tmp_path: Path, google: ScriptedMessages, path: str) -> None:
    counts = Usage(input=1000, output=50, cache_read=400, thoughts=20)
    google.play(Say("Hel", (("read_file", {"path": 'a"}\\'}),), counts))
    with opened(tmp_path, google.url) as gateway:
        status, text, _ = ask(gateway, path, body())
    report = gateway.report()
    assert (status, b"Hel" in text) == (200, True)
    assert (report.turns, report.input_tokens, report.cache_read_tokens, report.output_tokens) == (
        1,
        1000,
        400,
        50,
    )
    assert report.cost_usd == pytest.approx((1000 * 1.25 + 400 * 0.125 + 50 * 10) / 1e6)
    assert (report.models, report.main_model) == ((MODEL,), MODEL)
    row = json.loads((tmp_path / "record/answers.jsonl").read_text())
    assert (row["id"], row["tools"], row["turn"]) == ("r000001", ["read_file"], 1)
    recorded = json.loads((tmp_path / "record/model.jsonl").read_text())
    call = {"functionCall": {"name": "read_file", "args": {"path": 'a"}\\'}}}
    assert call in recorded["response"]["candidates"][0]["content"]["parts"]


@pytest.mark.parametrize("named", ["header", "query", "bearer"])
def test_the_key_travels_in_the_header_only(tmp_path: Path, google: ScriptedMessages, named: str) -> None:
    with opened(tmp_path, google.url) as gateway:
        headers = {
            "header": {"x-goog-api-key": gateway.token},
            "query": {},
            "bearer": {"authorization": f"Bearer {gateway.token}"},
        }[named]
        key = f"&key={gateway.token}" if named == "query" else ""
        assert ask(gateway, STREAMS[0] + key, body(), headers)[0] == 200
        assert ask(gateway, STREAMS[0] + "&key=guess", body(), {})[0] == 401
    (request,) = google.requests
    assert request.headers["x-goog-api-key"] == KEY
    assert gateway.token not in json.dumps(request.headers) + request.path
    for file in (tmp_path / "record").iterdir():
        assert KEY not in file.read_text()
        assert gateway.token not in file.read_text()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", f"{AT}:countTokens", 200),
        ("GET", "/v1beta/models", 200),
        ("GET", AT, 200),
        ("POST", f"{AT}:embedContent", 404),
        ("POST", "/v1beta/cachedContents", 404),
        ("POST", "/upload/v1beta/files", 404),
        ("POST", "/v1beta/models/../files:generateContent", 404),
        ("POST", f"/v1{AT.removeprefix('/v1beta')}:generateContent", 200),
    ],
)
def test_only_named_paths_are_served(
    tmp_path: Path, google: ScriptedMessages, method: str, path: str, status: int
) -> None:
    with opened(tmp_path, google.url) as gateway:
        found, text, _ = ask(gateway, path, body(), method=method)
    assert found == status
    if status == 404 and path.startswith("/v1beta"):
        assert json.loads(text)["error"]["status"] == "NOT_FOUND"
    assert gateway.report().requests == (1 if "generateContent" in path and status == 200 else 0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"tools": [{"google_search": {}}]}, "google_search"),
        ({"tools": [{"functionDeclarations": []}, {"googleSearchRetrieval": {}}]}, "googleSearchRetrieval"),
        ({"tools": [{"functionDeclarations": [], "url_context": {}}]}, "url_context"),
        ({"tools": [{"codeExecution": {}}]}, "codeExecution"),
        ({"contents": [{"parts": [{"fileData": {"fileUri": "https://x"}}]}]}, "contents.parts.fileData"),
        ({"contents": [{"parts": [{"file_data": {"file_uri": "https://x"}}]}]}, "contents.parts.file_data"),
        ({"contents": {"parts": {"file_data": {"file_uri": "https://x"}}}}, "must be an array"),
        ({"cachedContent": "cachedContents/x"}, "cached"),
        ({"generationConfig": {"candidateCount": 4}}, "candidate"),
    ],
)
def test_hosted_tools_and_hidden_content_are_refused_in_googles_form(
    tmp_path: Path, google: ScriptedMessages, more: dict[str, Any], words: str
) -> None:
    with opened(tmp_path, google.url) as gateway:
        status, text, _ = ask(gateway, STREAMS[0], body(**more))
        listed = json.loads(ask(gateway, STREAMS[1], body(**more))[1])
    error = json.loads(text)["error"]
    assert (status, error["code"], error["status"], google.requests) == (400, 400, "INVALID_ARGUMENT", [])
    assert words in error["message"]
    assert listed == [{"error": error}]
    assert any(words in reason for reason in gateway.report().refused)


@pytest.mark.parametrize("config", ["generationConfig", "generation_config"])
def test_money_lowers_the_output_limit(tmp_path: Path, google: ScriptedMessages, config: str) -> None:
    with opened(tmp_path, google.url, budget=TrialBudget(max_cost_usd=0.02)) as gateway:
        ask(gateway, ALL[0], body(**{config: {"temperature": 1}}))
    sent = google.requests[0].body[config]
    cap = sent["maxOutputTokens"]
    assert (sent["temperature"], 1500 < cap < 2000) == (1, True)  # 0.02 dollars pay for 2,000 tokens


def test_turns_end_in_googles_form(tmp_path: Path, google: ScriptedMessages) -> None:
    with opened(tmp_path, google.url, budget=TrialBudget(max_turns=1)) as gateway:
        assert ask(gateway, STREAMS[0], body())[0] == 200
        status, text, _ = ask(gateway, STREAMS[0], body())
    assert (status, json.loads(text)["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert gateway.report().stop is Stop.MAX_TURNS


def test_a_busy_provider_says_when_to_come_back(tmp_path: Path, google: ScriptedMessages) -> None:
    google.play(
        Fail(429, "RESOURCE_EXHAUSTED", QUOTA, details=(MINUTE, RETRY_INFO)),
        Fail(429, "RESOURCE_EXHAUSTED", QUOTA, retry_after="3", details=(RETRY_INFO,)),
        Fail(503, "UNAVAILABLE", "The model is overloaded."),
    )
    with opened(tmp_path, google.url) as gateway:
        answers = [ask(gateway, STREAMS[0], body()) for _ in range(4)]
    assert [(status, headers.get("retry-after")) for status, _, headers in answers] == [
        (429, "7"),
        (429, "3"),
        (503, "30"),  # ours: the third failure in a row
        (200, None),
    ]
    assert json.loads(answers[0][1])["error"]["details"] == [MINUTE, RETRY_INFO]
    report = gateway.report()
    assert (report.turns, report.error_count, report.halt, report.provider_error) == (1, 3, None, None)
    assert report.throttled_s > 0


@pytest.mark.parametrize(
    "failure",
    [
        Fail(400, "INVALID_ARGUMENT", "API key not valid.", details=({"reason": "API_KEY_INVALID"},)),
        Fail(403, "PERMISSION_DENIED", "no access"),
        Fail(404, "NOT_FOUND", "models/gemini-9 is not found for API version v1beta, or is not supported"),
        Fail(429, "RESOURCE_EXHAUSTED", QUOTA, details=(DAY,)),
    ],
)
def test_a_key_or_model_that_google_does_not_know_halts(
    tmp_path: Path, google: ScriptedMessages, failure: Fail
) -> None:
    google.play(then=failure)
    with opened(tmp_path, google.url) as gateway:
        assert ask(gateway, ALL[0], body())[0] == failure.status
    assert failure.message in (gateway.report().halt or "")


@pytest.mark.parametrize("path", STREAMS)
def test_a_cut_stream_is_the_providers(tmp_path: Path, google: ScriptedMessages, path: str) -> None:
    google.play(Break())
    with opened(tmp_path, google.url) as gateway, pytest.raises(http.client.IncompleteRead):
        ask(gateway, path, body())
    report = gateway.report()
    assert "the stream broke" in (report.provider_error or "")
    assert (report.turns, report.input_tokens, report.estimated_output_tokens) == (0, 10, 3)


@pytest.mark.parametrize("path", STREAMS)
def test_words_pass_while_the_provider_is_silent_about_the_rest(
    tmp_path: Path, google: ScriptedMessages, path: str
) -> None:
    google.play(Hang(after_words=True))
    with opened(tmp_path, google.url) as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        connection.request("POST", path, json.dumps(body()), {"x-goog-api-key": gateway.token})
        assert b"Let me think" in connection.getresponse().read1()
        connection.close()
    assert gateway.report().interrupted == 1


def test_deliveries_and_baits_are_seen(tmp_path: Path, google: ScriptedMessages) -> None:
    canaries = Canaries(declared=(DeclaredText("file", "NEEDLE"),), forbidden={"bait": ("B41T",)})
    result = {"functionResponse": {"name": "read_file", "response": {"output": "x NEEDLE B41T"}}}
    with opened(tmp_path, google.url, canaries=canaries) as gateway:
        ask(gateway, ALL[0], body(contents=[{"role": "user", "parts": [result]}]))
    assert (gateway.report().reached, gateway.report().undeclared) == ({"file": True}, ("bait",))
