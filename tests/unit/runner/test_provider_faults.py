"""How answers of providers are classified: by status, type of error and shape, never by their words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_runner.gateway.dialects import DIALECTS
from trialfleet_runner.gateway.faults import Fault, ProviderFailure, error_text, failure_of, fault, stated_wait_s
from trialfleet_runner.gateway.gemini import Gemini
from trialfleet_runner.gateway.planned_model import FailedRequest, PlannedModelRecord, SentRequest

TRANSIENT, FATAL, REQUEST = Fault.TRANSIENT, Fault.FATAL, Fault.REQUEST
DAY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}
MINUTE = {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]}
RATE_LIMIT = "This request would exceed the rate limit of your organization; see your plan and billing details"


def anthropic(kind: str, message: str = "m") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def openai(kind: str, code: str | None = None, message: str = "m") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def google(code: int, status: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": "m", "status": status, "details": list(details)}}


ROWS: list[tuple[int, dict[str, Any], Fault, Fault]] = [
    # status, body, by status and body, by the body alone (inside a stream, or with 200)
    (401, anthropic("authentication_error"), FATAL, FATAL),
    (403, anthropic("permission_error"), FATAL, FATAL),
    (402, anthropic("billing_error"), FATAL, FATAL),
    (
        400,
        anthropic("invalid_request_error", "You have reached your specified API usage limits."),
        REQUEST,
        REQUEST,
    ),
    (404, anthropic("not_found_error", "model: claude-x"), REQUEST, REQUEST),
    (413, anthropic("request_too_large"), REQUEST, REQUEST),
    (429, anthropic("rate_limit_error", RATE_LIMIT), TRANSIENT, TRANSIENT),
    (500, anthropic("api_error"), TRANSIENT, TRANSIENT),
    (504, anthropic("timeout_error"), TRANSIENT, TRANSIENT),
    (529, anthropic("overloaded_error"), TRANSIENT, TRANSIENT),
    (403, anthropic("rate_limit_error", RATE_LIMIT), TRANSIENT, TRANSIENT),
    (400, anthropic("overloaded_error"), TRANSIENT, TRANSIENT),
    (400, openai("requests", "rate_limit_exceeded"), TRANSIENT, TRANSIENT),
    (403, openai("insufficient_quota", "insufficient_quota"), FATAL, FATAL),
    (413, openai("tokens", "rate_limit_exceeded"), REQUEST, TRANSIENT),
    (403, google(403, "RESOURCE_EXHAUSTED", MINUTE), TRANSIENT, TRANSIENT),
    (403, google(403, "RESOURCE_EXHAUSTED", DAY), FATAL, FATAL),
    (401, openai("invalid_request_error", "invalid_api_key"), FATAL, FATAL),
    (403, openai("unsupported_country", "unsupported_country"), FATAL, TRANSIENT),
    (429, openai("insufficient_quota", "insufficient_quota"), FATAL, FATAL),
    (429, openai("requests", "rate_limit_exceeded", RATE_LIMIT), TRANSIENT, TRANSIENT),
    (429, openai("tokens", "rate_limit_exceeded", "billing: credit balance"), TRANSIENT, TRANSIENT),
    (400, openai("billing_not_active"), FATAL, FATAL),
    (404, openai("invalid_request_error", "model_not_found"), FATAL, FATAL),
    (400, openai("invalid_request_error", "context_length_exceeded"), REQUEST, REQUEST),
    (500, openai("server_error"), TRANSIENT, TRANSIENT),
    (
        400,
        openai("budget_exceeded", "400", "Budget has been exceeded! Current cost: 1.0"),
        FATAL,
        FATAL,
    ),  # LiteLLM
    (401, openai("auth_error", "401"), FATAL, FATAL),
    (400, openai("expired_key", "400"), FATAL, FATAL),
    (429, openai("None", "429"), TRANSIENT, TRANSIENT),
    (503, openai("None", "503"), TRANSIENT, TRANSIENT),
    (401, google(401, "UNAUTHENTICATED"), FATAL, FATAL),
    (403, google(403, "PERMISSION_DENIED"), FATAL, FATAL),
    (400, google(400, "INVALID_ARGUMENT", {"reason": "API_KEY_INVALID"}), FATAL, FATAL),
    (400, google(400, "INVALID_ARGUMENT"), REQUEST, REQUEST),
    (404, google(404, "NOT_FOUND"), REQUEST, REQUEST),
    (429, google(429, "RESOURCE_EXHAUSTED", DAY), FATAL, FATAL),
    (429, google(429, "RESOURCE_EXHAUSTED", MINUTE), TRANSIENT, TRANSIENT),
    (503, google(503, "UNAVAILABLE"), TRANSIENT, TRANSIENT),
    (302, {}, TRANSIENT, TRANSIENT),
    (502, {"message": "<html>bad gateway</html>"}, TRANSIENT, TRANSIENT),
    (408, {}, TRANSIENT, TRANSIENT),
    (401, {"error": "unauthorized"}, FATAL, TRANSIENT),
]


@pytest.mark.parametrize(("status", "body", "whole", "inside"), ROWS)
def test_every_row_is_classified(status: int, body: dict[str, Any], whole: Fault, inside: Fault) -> None:
    assert fault(status, body) is whole
    assert fault(None, body) is inside


WORDS = st.sampled_from(
    ["credit balance is too low", "billing", "insufficient_quota", "exceeded your current quota", "model: x"]
)


@given(st.sampled_from(ROWS), WORDS)
def test_no_words_change_the_class(row: tuple[int, dict[str, Any], Fault, Fault], words: str) -> None:
    status, body, whole, inside = row
    said = json.loads(json.dumps(body))
    if isinstance(said.get("error"), dict):
        said["error"]["message"] = words
    assert (fault(status, said), fault(None, said)) == (whole, inside)


# --- each wire format ------------------------------------------------------------------------------------

GEMINI = Gemini("/v1beta/models/g:streamGenerateContent", "g", stream=True, events=True)


def events(*bodies: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies)


OPENINGS: dict[str, dict[str, Any]] = {
    "/v1/messages": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I "}},
    "/v1/chat/completions": {"choices": [{"index": 0, "delta": {"content": "I "}}]},
    "/v1/responses": {"type": "response.output_text.delta", "delta": "I "},
    GEMINI.path: {"candidates": [{"content": {"parts": [{"text": "I "}]}}]},
}


BEGUN: dict[str, list[Any]] = {
    "/v1/messages": [{"type": "message_start", "message": {"id": "m"}}],
    "/v1/chat/completions": [{"choices": [{"delta": {"content": "I"}}]}],
    "/v1/responses": [{"type": "response.created", "response": {"id": "r"}}],
}


def in_stream(path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The forms in which the API says an error inside a stream."""
    if path == "/v1/messages":
        return [{"type": "error", "error": body["error"]}]
    if path == "/v1/responses":
        return [{"type": "response.failed", "response": body}, {"type": "error", **body["error"], **_coded(body)}]
    return [body]


def _coded(body: dict[str, Any]) -> dict[str, Any]:
    """The `error` event of the Responses API: its `type` is the event's, the error's name is its `code`."""
    names = [body["error"].get(key) for key in ("code", "type", "status")]
    return {"type": "error", "code": next(name for name in names if name and not str(name).isdigit())}


@pytest.mark.parametrize("path", OPENINGS)
@pytest.mark.parametrize("after_words", [False, True], ids=["before the first byte", "after words"])
@pytest.mark.parametrize(("status", "body", "whole", "inside"), [row for row in ROWS if "error" in row[1]])
def test_an_error_inside_a_stream_is_classified_in_every_api(
    path: str, after_words: bool, status: int, body: dict[str, Any], whole: Fault, inside: Fault
) -> None:
    if not isinstance(body["error"], dict):
        return
    dialect = GEMINI if path == GEMINI.path else DIALECTS[path]
    for event in in_stream(path, body):
        assembler = dialect.stream("text/event-stream")
        assert assembler is not None
        assembler.feed(events(*([OPENINGS[path]] if after_words else []), event))
        answer = assembler.answer()
        assert not answer.complete
        assert fault(None, answer.failed) is inside


@pytest.mark.parametrize("path", OPENINGS)
@pytest.mark.parametrize("body", [{"message": "<html>"}, {}, {"error": {"type": "server_error"}}, {"id": "x"}])
def test_an_answer_without_its_parts_is_none(path: str, body: dict[str, Any]) -> None:
    """An error page, JSON that was cut, an error that is said with 200."""
    dialect = GEMINI if path == GEMINI.path else DIALECTS[path]
    assert not dialect.whole(body).complete
    assert fault(None, body) is TRANSIENT


EMPTY: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"choices": []}),
    ("/v1/chat/completions", {"choices": [{}]}),
    ("/v1/chat/completions", {"choices": [None]}),
    ("/v1/chat/completions", {"choices": [{"message": None}]}),
    *(("/v1/responses", {"output": [], "status": each}) for each in ("failed", "cancelled", "queued")),
]


@pytest.mark.parametrize(("path", "body"), EMPTY)
def test_parts_that_say_nothing_are_no_answer(path: str, body: dict[str, Any]) -> None:
    assert not DIALECTS[path].whole(body).complete


@pytest.mark.parametrize(
    ("path", "pieces"),
    [
        ("/v1/messages", [{"type": "message_stop"}]),
        ("/v1/chat/completions", ["[DONE]"]),
        ("/v1/chat/completions", ["<html>", "[DONE]"]),
        ("/v1/chat/completions", [{"choices": [{"delta": {"role": "assistant"}}]}, "[DONE]"]),
        ("/v1/responses", [{"type": "response.completed"}]),
        ("/v1/responses", [{"type": "response.completed", "response": {"status": "failed"}}]),
    ],
)
def test_the_end_of_a_stream_alone_is_no_answer(path: str, pieces: list[Any]) -> None:
    """The control is an answer that begins before it ends."""
    for before, complete in (([], False), ([*BEGUN[path]], True)):
        assembler = DIALECTS[path].stream("text/event-stream")
        assert assembler is not None
        texts = (each if isinstance(each, str) else json.dumps(each) for each in [*before, *pieces])
        assembler.feed("".join(f"data: {text}\n\n" for text in texts).encode())
        assert assembler.answer().complete is (complete and "failed" not in str(pieces))


def test_errors_are_named_in_every_form() -> None:
    assert error_text(anthropic("overloaded_error", "busy")) == "overloaded_error: busy"
    assert error_text({"error": "unauthorized"}) == "error: unauthorized"
    assert error_text({"type": "error", "code": "server_error", "message": "oops"}) == "server_error: oops"
    assert error_text({}) == "error: no message"
    assert failure_of(400, openai("None", "400")).message == "400 None: m"


def test_a_stated_wait_is_read_from_header_or_body() -> None:
    kind = "type.googleapis.com/google.rpc.RetryInfo"
    body = {"error": {"details": [{"@type": kind, "retryDelay": "6.2s"}]}}
    assert [stated_wait_s(header, body) for header in ("3", None, "soon")] == [3, 7, 7]
    assert stated_wait_s("9" * 30, {}) is None


# --- what is the same, and what remains unanswered -----------------------------------------------------------


def test_only_the_same_failure_confirms_another() -> None:
    limit = failure_of(400, anthropic("invalid_request_error", "You have reached your API usage limits"))
    too_long = failure_of(400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens"))
    bad_key, no_credit = failure_of(401, {}), failure_of(402, {})
    assert limit.repeats(limit)
    assert not limit.repeats(too_long)
    inside = replace(failure_of(None, anthropic("invalid_request_error", limit.words)), status=200)
    assert inside.repeats(limit)
    assert (limit.message, inside.message) == (f"400 invalid_request_error: {limit.words}", limit.message[4:])
    assert failure_of(400, {}).repeats(failure_of(400, {}))
    assert not failure_of(400, {}).repeats(failure_of(422, {})), "nothing tells that it is the same"
    assert bad_key.repeats(no_credit)
    assert not failure_of(529, {}).repeats(failure_of(529, {}))
    assert not limit.repeats(bad_key)


@pytest.mark.parametrize(
    "one", ["req_011CSHoEeqs5C35K2UUqR7Fy", "request-0123456789abcdef", "458f32ef-2f04-44bc-ac1c-a940699354b7"]
)
def test_the_id_of_a_request_in_the_words_makes_no_difference(one: str) -> None:
    """LiteLLM quotes Anthropic's whole error, which names the request."""
    quoted = 'AnthropicException - {"type":"error","error":{"message":"API usage limits"},"request_id":"%s"}'
    first, second = (failure_of(400, openai("None", "400", quoted % each)) for each in (one, one[:-2] + "00"))
    assert first.repeats(second)
    assert not first.repeats(failure_of(400, openai("None", "400", quoted % "me and you")))


def failed(started: float, which: Fault) -> FailedRequest:
    sent = SentRequest(DIALECTS["/v1/messages"], "", {}, {})
    return FailedRequest(started, sent, ProviderFailure(which, 200, (), f"at {started}"))


@pytest.mark.parametrize(
    ("starts", "outage"),
    [
        ((0, 1), False),
        ((0, 30, 59), False),
        ((0, 30, 60), True),
        ((0, 1, 2, 90), True),
        ((0,), False),
    ],
)
def test_an_outage_is_three_failures_over_a_minute(starts: tuple[float, ...], outage: bool) -> None:
    record = PlannedModelRecord()
    for start in starts:
        record.add(failed(start, TRANSIENT))
    assert (record.outage is not None) is outage
    assert record.error == f"at {starts[-1]}"


@pytest.mark.parametrize("ending", ["answer", "refusal"])
def test_an_answer_ends_an_outage(ending: str) -> None:
    record = PlannedModelRecord()
    for start in (0, 30, 60):
        record.add(failed(start, TRANSIENT))
    record.answered(-1)
    assert record.outage is not None, "an answer to an older request proves nothing"
    if ending == "answer":
        record.answered(70)
    else:
        record.add(failed(70, REQUEST))
    assert (record.outage, record.error) == (None, None)


def test_a_permanent_failure_is_suspected_until_an_answer() -> None:
    record = PlannedModelRecord()
    record.add(failed(5, FATAL))
    record.add(failed(6, TRANSIENT))
    assert record.suspect is not None
    record.answered(7)
    assert (record.suspect, record.error) == (None, None)
