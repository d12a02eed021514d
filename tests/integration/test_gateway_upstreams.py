"""Bedrock and Vertex AI behind the gateway: what they get, what the agent gets, and who never sees a key."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway_requests import hang_up_after
from tests.support.scripted_bedrock import BEARER, KEY_ID, REGION, SECRET, SESSION, scripted_bedrock
from tests.support.scripted_messages import Break, Fail, Hang, Say, ScriptedMessages, Usage
from tests.support.scripted_vertex import BASE, ScriptedVertex, scripted_vertex
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_runner.gateway import Gateway
from trialfleet_runner.model_access import upstream

MODEL = "claude-sonnet-4-6"
PROFILE = "eu.anthropic.claude-sonnet-4-6-v1:0"
SIGNED = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": SESSION}


@pytest.fixture
def bedrock() -> Iterator[ScriptedMessages]:
    with scripted_bedrock() as played:
        yield played


@pytest.fixture
def vertex() -> Iterator[ScriptedVertex]:
    with scripted_vertex() as played:
        yield played


def on_bedrock(
    tmp_path: Path, url: str, keys: dict[str, str] | None = None, *, model: str = MODEL, **options: Any
) -> Gateway:
    environ = {"AWS_REGION": REGION, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url} | (SIGNED if keys is None else keys)
    spec = AgentSpec(kind="command", options={"provider": "bedrock", "model_ids": {MODEL: PROFILE}})
    return Gateway(upstream(spec, environ), record=tmp_path / "record", model=model, **options)


def on_vertex(tmp_path: Path, url: str, **environ: str) -> Gateway:
    told = {
        "GOOGLE_CLOUD_PROJECT": "my-project",
        "GOOGLE_CLOUD_LOCATION": "europe-west1",
        "VERTEX_BASE_URL": url,
        "TRIALFLEET_KEYS": str(tmp_path / "keys"),
    }
    spec = AgentSpec(kind="command", options={"provider": "vertex"})
    return Gateway(upstream(spec, told | environ), record=tmp_path / "record")


def body(**more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hi"}]
    return {"model": MODEL, "max_tokens": 100, "tools": [{"name": "t"}], "messages": messages, **more}


GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def ask(
    gateway: Gateway, sent: dict[str, Any], path: str = "/v1/messages", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        connection.request("POST", path, json.dumps(sent), {"x-api-key": gateway.token} | headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


# --- Bedrock --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("keys", [SIGNED, {"AWS_BEARER_TOKEN_BEDROCK": BEARER}])
def test_bedrock_gets_a_valid_request_and_the_agent_the_messages_api(
    tmp_path: Path, bedrock: ScriptedMessages, stream: bool, keys: dict[str, str]
) -> None:
    bedrock.play(Say("Grüße", (("Read", {"p": 1}),), Usage(100, 20, cache_read=1000, cache_write=300)))
    betas = "interleaved-thinking-2025-05-14, oauth-2025-04-20"
    with on_bedrock(tmp_path, bedrock.url, keys) as gateway:
        status, text, headers = ask(gateway, body(stream=stream), **{"anthropic-beta": betas})
    assert status == 200, text
    (request,) = bedrock.requests
    action = "invoke-with-response-stream" if stream else "invoke"
    assert request.path == f"/model/eu.anthropic.claude-sonnet-4-6-v1%3A0/{action}"
    sent = body(anthropic_version="bedrock-2023-05-31", anthropic_beta=["interleaved-thinking-2025-05-14"])
    sent.pop("model")
    assert request.body == sent
    assert gateway.token not in json.dumps(request.headers)
    if stream:
        assert headers["content-type"] == "text/event-stream"
        assert text.startswith(b"event: message_start\ndata: {")
        assert text.rstrip().splitlines()[-2] == b"event: message_stop"
    else:
        assert json.loads(text)["content"][0] == {"type": "text", "text": "Grüße"}
    report = gateway.report()
    assert (report.turns, report.input_tokens, report.output_tokens) == (1, 100, 20)
    assert report.cost_usd == pytest.approx((100 * 3 + 20 * 15 + 1000 * 0.3 + 300 * 3.75) / 1e6)


def test_bedrocks_errors_come_in_the_form_of_the_messages_api(tmp_path: Path, bedrock: ScriptedMessages) -> None:
    bedrock.play(
        Fail(429, "ThrottlingException", "Too many tokens, please wait.", retry_after="2"),
        Fail(503, "ServiceUnavailableException", "busy"),
        Fail(424, "ModelErrorException", "the model failed"),
    )
    with on_bedrock(tmp_path, bedrock.url) as gateway:
        answers = [ask(gateway, body(stream=True)) for _ in range(4)]
    assert [status for status, _, _ in answers] == [429, 503, 500, 200]
    assert json.loads(answers[0][1]) == {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": "Too many tokens, please wait."},
    }
    assert answers[0][2]["retry-after"] == "2"
    report = gateway.report()
    assert (report.turns, report.error_count, report.halt, report.provider_error) == (1, 3, None, None)
    assert report.throttled_s > 0


@pytest.mark.parametrize(
    "failure",
    [
        Fail(400, "ValidationException", "The provided model identifier is invalid."),
        Fail(403, "AccessDeniedException", "You don't have access to the model with the specified model ID."),
        Fail(404, "ResourceNotFoundException", "This model version has reached the end of its life."),
    ],
)
def test_a_model_that_bedrock_does_not_serve_halts(
    tmp_path: Path, bedrock: ScriptedMessages, failure: Fail
) -> None:
    bedrock.play(then=failure)
    with on_bedrock(tmp_path, bedrock.url) as gateway:
        assert ask(gateway, body())[0] == failure.status
    assert failure.message in (gateway.report().halt or "")


def test_wrong_keys_halt(tmp_path: Path, bedrock: ScriptedMessages) -> None:
    with on_bedrock(tmp_path, bedrock.url, SIGNED | {"AWS_SECRET_ACCESS_KEY": "another"}) as gateway:
        status, text, _ = ask(gateway, body())
    assert (status, json.loads(text)["error"]["type"]) == (403, "authentication_error")
    assert "signature" in (gateway.report().halt or "")


def test_a_model_without_an_id_and_another_api_are_said_before_anything_is_sent(
    tmp_path: Path, bedrock: ScriptedMessages
) -> None:
    for planned, halts in (("claude-haiku-4-5", True), (MODEL, False)):
        with on_bedrock(tmp_path, bedrock.url, model=planned) as gateway:
            assert ask(gateway, body(model="claude-haiku-4-5"))[0] == 404
            assert ask(gateway, body(), "/v1/messages/count_tokens")[0] == 404
        assert ("agent.options.model_ids" in (gateway.report().halt or "")) is halts
    assert bedrock.requests == []


def test_an_api_that_bedrock_does_not_serve_halts_nothing(tmp_path: Path, bedrock: ScriptedMessages) -> None:
    with on_bedrock(tmp_path, bedrock.url) as gateway:
        assert ask(gateway, body(tools=[]), "/v1/chat/completions")[0] == 404
    assert gateway.report().halt is None


def test_a_cut_stream_of_bedrock_looks_cut(tmp_path: Path, bedrock: ScriptedMessages) -> None:
    bedrock.play(Break())
    with on_bedrock(tmp_path, bedrock.url) as gateway, pytest.raises(http.client.IncompleteRead):
        ask(gateway, body(stream=True))
    assert gateway.report().turns == 0
    assert gateway.report().provider_error is not None


def test_bedrocks_words_pass_while_it_is_silent_about_the_rest(tmp_path: Path, bedrock: ScriptedMessages) -> None:
    bedrock.play(Hang(after_words=True))
    with on_bedrock(tmp_path, bedrock.url) as gateway:
        hang_up_after(b"Let me think", gateway, body(stream=True))
    assert gateway.report().interrupted == 1


def test_no_secret_of_aws_is_recorded(tmp_path: Path, bedrock: ScriptedMessages) -> None:
    bedrock.play(Say(f"{SECRET} {SESSION}"))
    with on_bedrock(tmp_path, bedrock.url) as gateway:
        assert ask(gateway, body(stream=True))[0] == 200
    for file in (tmp_path / "record").iterdir():
        assert SECRET not in file.read_text()
        assert SESSION not in file.read_text()


@pytest.mark.parametrize(
    ("environ", "variable"),
    [({}, "AWS_REGION"), ({"AWS_REGION": "eu west"}, "AWS_REGION")],
)
def test_what_bedrock_lacks_is_named(tmp_path: Path, environ: dict[str, str], variable: str) -> None:
    with pytest.raises(OperatorError, match=variable):
        upstream(AgentSpec(kind="command", options={"provider": "bedrock"}), environ)


# --- Vertex AI ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
def test_claude_on_vertex(tmp_path: Path, vertex: ScriptedVertex, stream: bool) -> None:
    token = tmp_path / "token"
    token.write_text("ya29.first\n")
    vertex.play(Say("hi", (), Usage(100, 20, cache_read=50)))
    with on_vertex(tmp_path, vertex.url, VERTEX_ACCESS_TOKEN_FILE=str(token)) as gateway:
        asked = body(model="claude-sonnet-4-5-20250929", stream=stream)
        assert ask(gateway, asked, **{"anthropic-beta": "b1"})[0] == 200
        assert ask(gateway, body(), "/v1/messages/count_tokens")[0] == 200
    request, counted = vertex.requests
    method = "streamRawPredict" if stream else "rawPredict"
    assert request.path == f"{BASE}/anthropic/models/claude-sonnet-4-5@20250929:{method}"
    assert request.body.get("anthropic_version") == "vertex-2023-10-16"
    assert "model" not in request.body
    assert request.headers["anthropic-beta"] == "b1"
    assert counted.path == f"{BASE}/anthropic/models/count-tokens:rawPredict"
    assert counted.body["model"] == MODEL
    report = gateway.report()
    assert (report.turns, report.input_tokens, report.cache_read_tokens, report.output_tokens) == (1, 100, 50, 20)
    assert report.cost_usd == pytest.approx((100 * 3 + 50 * 0.3 + 20 * 15) / 1e6)


@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent"])
def test_gemini_on_vertex(tmp_path: Path, vertex: ScriptedVertex, method: str) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/VERTEX_ACCESS_TOKEN").write_text("ya29.first")
    vertex.play(Say("hi", (), Usage(100, 20, thoughts=5)))
    with on_vertex(tmp_path, vertex.url) as gateway:
        sent = GEMINI | {"tools": [{"functionDeclarations": [{"name": "t"}]}]}
        assert ask(gateway, sent, f"/v1beta/models/gemini-2.5-pro:{method}")[0] == 200
    assert vertex.requests[0].path == f"{BASE}/google/models/gemini-2.5-pro:{method.partition('?')[0]}"
    assert (gateway.report().turns, gateway.report().output_tokens) == (1, 20)


def test_a_token_that_was_renewed_is_used_at_once_and_a_refused_one_is_renewed_once(
    tmp_path: Path, vertex: ScriptedVertex
) -> None:
    calls, current = tmp_path / "calls", tmp_path / "current"
    current.write_text("ya29.first")
    script = f"open({str(calls)!r}, 'a').write('x'); print(open({str(current)!r}).read())"
    with on_vertex(tmp_path, vertex.url, VERTEX_ACCESS_TOKEN_COMMAND=f'{sys.executable} -c "{script}"') as gateway:
        assert [ask(gateway, body())[0] for _ in range(3)] == [200, 200, 200]
        assert calls.read_text() == "x", "a token that is fresh is kept"
        vertex.valid = {"ya29.second"}
        current.write_text("ya29.second")
        assert ask(gateway, body())[0] == 200
        assert calls.read_text() == "xx"
        vertex.play(Say("ya29.second and ya29.first"))
        assert ask(gateway, body())[0] == 200
        assert (gateway.report().error_count, gateway.report().halt) == (0, None)
        vertex.valid = set()
        assert ask(gateway, body())[0] == 401
    assert "invalid credentials" in (gateway.report().halt or "")
    assert "ya29" not in (tmp_path / "record/model.jsonl").read_text()


def test_a_token_command_that_fails_is_an_outage_and_no_halt(tmp_path: Path, vertex: ScriptedVertex) -> None:
    failing = f"{sys.executable} -c \"import sys; sys.exit('no login')\""
    with on_vertex(tmp_path, vertex.url, VERTEX_ACCESS_TOKEN_COMMAND=failing) as gateway:
        assert ask(gateway, body())[0] == 502
    report = gateway.report()
    assert "no login" in (report.provider_error or "")
    assert report.halt is None


@pytest.mark.parametrize(
    ("failure", "halts"),
    [
        (Fail(404, "NOT_FOUND", "Publisher Model `projects/x/models/claude-x` was not found."), True),
        (Fail(403, "PERMISSION_DENIED", "Permission 'aiplatform.endpoints.predict' denied"), True),
        (Fail(429, "RESOURCE_EXHAUSTED", "Quota exceeded for online prediction tokens per minute"), False),
        (Fail(503, "UNAVAILABLE", "try again"), False),
    ],
)
def test_vertexs_errors_are_told_apart(tmp_path: Path, vertex: ScriptedVertex, failure: Fail, halts: bool) -> None:
    (tmp_path / "token").write_text("ya29.first")
    vertex.play(then=failure)
    with on_vertex(tmp_path, vertex.url, VERTEX_ACCESS_TOKEN_FILE=str(tmp_path / "token")) as gateway:
        assert ask(gateway, body())[0] == failure.status
    assert (gateway.report().halt is not None) is halts


def test_a_cut_stream_of_vertex_is_the_providers(tmp_path: Path, vertex: ScriptedVertex) -> None:
    (tmp_path / "token").write_text("ya29.first")
    vertex.play(Break())
    with (
        on_vertex(tmp_path, vertex.url, VERTEX_ACCESS_TOKEN_FILE=str(tmp_path / "token")) as gateway,
        pytest.raises(http.client.IncompleteRead),
    ):
        ask(gateway, body(stream=True))
    assert "the stream broke" in (gateway.report().provider_error or "")


def test_without_a_token_the_variables_are_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="VERTEX_ACCESS_TOKEN_FILE"):
        on_vertex(tmp_path, "http://127.0.0.1:1")
    with pytest.raises(OperatorError, match="GOOGLE_CLOUD_PROJECT"):
        upstream(AgentSpec(kind="command", options={"provider": "vertex"}), {})


@pytest.mark.parametrize(
    ("provider", "variable", "key"),
    [
        ("openai", "OPENAI_API_KEY", "sk-ant-api03-x"),
        ("anthropic", "ANTHROPIC_API_KEY", "sk-proj-x"),
        ("google", "GEMINI_API_KEY", "sk-ant-x"),
    ],
)
def test_a_key_of_another_provider_is_refused_before_anything_is_paid(
    provider: str, variable: str, key: str
) -> None:
    spec = AgentSpec(kind="command", options={"provider": provider})
    with pytest.raises(OperatorError, match="this is a key of") as raised:
        upstream(spec, {variable: key})
    assert key not in str(raised.value)
    base = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL", "google": "GOOGLE_GEMINI_BASE_URL"}
    assert upstream(spec, {variable: key, base[provider]: "http://litellm:4000"}).key == key
