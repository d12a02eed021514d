"""The gateway's pure parts: streams, dialects, faults, throttled time, canaries, the record."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger.token_usage import TokenUsage
from trialfleet_runner.gateway.answers import (
    ChatAssembler,
    EventParser,
    MessagesAssembler,
    ResponsesAssembler,
)
from trialfleet_runner.gateway.canary import Canaries, look
from trialfleet_runner.gateway.conversations import Opening
from trialfleet_runner.gateway.dialects import DIALECTS, ToolCall
from trialfleet_runner.gateway.gemini import ArrayParser
from trialfleet_runner.gateway.listener import Room
from trialfleet_runner.gateway.record import JsonLinesFile, capped
from trialfleet_runner.gateway.routes import dialect_of
from trialfleet_runner.gateway.tally import Throttle
from trialfleet_runner.gateway.upstream import Upstream, passed_back


def sse(*events: dict[str, Any], end: bytes = b"\n") -> bytes:
    return b"".join(b"event: x" + end + b"data: " + json.dumps(event).encode() + end + end for event in events)


# --- streams --------------------------------------------------------------------------------------------

MESSAGE = (
    {
        "type": "message_start",
        "message": {"id": "msg_1", "model": "m", "usage": {"input_tokens": 7, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "you"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "name": "Read", "input": {}},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": " 1}"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 42}},
    {"type": "message_stop"},
)


@given(st.integers(1, 40), st.sampled_from([b"\n", b"\r\n"]))
def test_a_message_is_assembled_however_its_stream_is_cut(size: int, end: bytes) -> None:
    data, assembler = sse(*MESSAGE, end=end), MessagesAssembler()
    for start in range(0, len(data), size):
        assembler.feed(data[start : start + size])
    answer = assembler.answer()
    assert (answer.complete, answer.id, answer.model) == (True, "msg_1", "m")
    assert answer.usage == TokenUsage(input=7, output=42)
    assert answer.body["content"] == [
        {"type": "text", "text": "Grüße you"},
        {"type": "tool_use", "name": "Read", "input": {"a": 1}},
    ]
    assert answer.streamed_chars == len("Grüße you") + len('{"a": 1}')


def test_a_cut_message_is_incomplete_and_keeps_what_came() -> None:
    assembler = MessagesAssembler()
    assembler.feed(sse(*MESSAGE[:8]))
    answer = assembler.answer()
    assert not answer.complete
    assert answer.usage == TokenUsage(input=7, output=1)
    assert answer.body["content"][1]["input"] == '{"a":'


def test_an_error_inside_a_stream_is_no_answer() -> None:
    assembler = MessagesAssembler()
    assembler.feed(sse(*MESSAGE[:3], {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}))
    assert assembler.answer().error == "overloaded_error: busy"
    assert not assembler.answer().complete


def test_chat_deltas_become_one_answer() -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "run", "arguments": '{"x"'}}
    assembler = ChatAssembler()
    assembler.feed(
        sse(
            {"id": "c", "model": "gpt-5", "choices": [{"delta": {"content": "Hel"}}]},
            {"id": "c", "choices": [{"delta": {"content": "lo", "tool_calls": [call]}}]},
            {"id": "c", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}}]},
            {"id": "c", "choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
            {"id": "c", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 4}},
        )
        + b"data: [DONE]\n\n"
    )
    answer = assembler.answer()
    assert (answer.complete, answer.usage) == (True, TokenUsage(input=10, output=4))
    message = answer.body["choices"][0]["message"]
    assert message["content"] == "Hello"
    assert message["tool_calls"] == [{"id": "c1", "function": {"name": "run", "arguments": '{"x":1}'}}]


def test_a_responses_stream_ends_with_the_whole_response() -> None:
    usage = {"input_tokens": 9, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 5}}
    assembler = ResponsesAssembler()
    assembler.feed(sse({"type": "response.output_text.delta", "delta": "abc"}))
    assert not assembler.answer().complete
    assembler.feed(sse({"type": "response.completed", "response": {"id": "r", "model": "gpt-5", "usage": usage}}))
    answer = assembler.answer()
    assert (answer.complete, answer.id, answer.streamed_chars) == (True, "r", 3)
    assert answer.usage == TokenUsage(input=4, output=3, cache_read=5)


@given(st.binary(max_size=300))
def test_no_bytes_break_the_parser(data: bytes) -> None:
    assert all(isinstance(event, dict) for event in EventParser().feed(b"data: " + data + b"\n\n"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('{}[]"\\a,ü'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('{}"\\a'), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text('{}"\\a', min_size=1), JSON, min_size=1), max_size=4), st.integers(1, 9))
def test_an_arrays_objects_come_out_whole_however_it_is_cut(rows: list[dict[str, Any]], size: int) -> None:
    for data in (json.dumps(rows).encode(), json.dumps(rows, indent=1, ensure_ascii=False).encode()):
        parser, found = ArrayParser(), list[dict[str, Any]]()
        for start in range(0, len(data), size):
            found += parser.feed(data[start : start + size])
        assert found == rows


@given(st.lists(st.binary(max_size=40), max_size=9))
def test_no_bytes_break_the_array_parser(chunks: list[bytes]) -> None:
    parser = ArrayParser()
    assert all(isinstance(event, dict) for chunk in chunks for event in parser.feed(b"[{" + chunk))


# --- dialects -------------------------------------------------------------------------------------------


OPENINGS = {
    "/v1/messages": {
        "system": "changes",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            {"role": "assistant", "content": "x"},
            {"role": "user", "content": "later"},
        ],
        "tools": [{"name": "read"}, {"type": "bash_20250124", "name": "bash"}],
    },
    "/v1/chat/completions": {
        "messages": [
            {"role": "system", "content": "changes"},
            {"role": "user", "content": "one\ntwo"},
            {"role": "assistant", "tool_calls": []},
            {"role": "user", "content": "later"},
        ],
        "tools": [{"type": "function", "function": {"name": n}} for n in ("read", "bash")],
    },
    "/v1/responses": {
        "input": [
            {"role": "developer", "content": [{"type": "input_text", "text": "changes"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]},
            {"role": "user", "content": "two"},
            {"type": "function_call", "name": "read", "arguments": "{}"},
            {"role": "user", "content": "later"},
        ],
        "tools": [{"type": "function", "name": "read"}, {"type": "bash"}],
    },
    "/v1beta/models/m:generateContent": {
        "systemInstruction": {"parts": [{"text": "changes"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "one"}, {"text": "two"}]},
            {"role": "model", "parts": [{"text": "x"}]},
            {"role": "user", "parts": [{"text": "later"}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "read"}, {"name": "bash"}]}],
    },
}


@pytest.mark.parametrize("path", OPENINGS)
def test_a_conversation_is_known_by_its_opening_in_every_api(path: str) -> None:
    dialect = dialect_of(path, "")
    assert dialect is not None
    assert dialect.opening(OPENINGS[path]) == Opening("one\ntwo", frozenset({"read", "bash"}))
    assert dialect.opening({}) == Opening("", frozenset())


CALL = ToolCall("task", {"prompt": "Look around."})
ANSWERS = {
    "/v1/messages": {"content": [{"type": "text"}, {"type": "tool_use", "name": "task", "input": CALL.input}]},
    "/v1/chat/completions": {
        "choices": [
            {"message": {"tool_calls": [{"function": {"name": "task", "arguments": json.dumps(CALL.input)}}]}}
        ]
    },
    "/v1/responses": {
        "output": [{"type": "function_call", "name": "task", "arguments": json.dumps(CALL.input)}, {"type": "x"}]
    },
    "/v1beta/models/m:generateContent": {
        "candidates": [{"content": {"parts": [{"functionCall": {"name": "task", "args": CALL.input}}]}}]
    },
}


@pytest.mark.parametrize("path", ANSWERS)
def test_what_an_answer_calls_is_known_in_every_api(path: str) -> None:
    dialect = dialect_of(path, "")
    assert dialect is not None
    assert dialect.calls(ANSWERS[path]) == [CALL]
    assert dialect.calls({}) == []


def test_a_thinking_budget_is_not_cut_through() -> None:
    messages = DIALECTS["/v1/messages"]
    body = {"max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 4000}}
    assert messages.with_cap(body, 5000) == {**body, "max_tokens": 5000}
    assert messages.with_cap(body, 4000) is None


def test_streamed_chat_requests_ask_for_their_counts() -> None:
    chat = DIALECTS["/v1/chat/completions"]
    assert chat.prepared({"stream": True})["stream_options"] == {"include_usage": True}
    whole = {"stream": False}
    assert chat.prepared(whole) is whole


# --- faults, waiting ------------------------------------------------------------------------------------


def test_waiting_counts_from_the_first_failure_to_the_success() -> None:
    throttle = Throttle(patience_s=100)
    throttle.failed("m", 10)
    throttle.failed("m", 12)
    assert throttle.seconds(15) == 5
    throttle.succeeded("m", 20)
    assert throttle.seconds(99) == 10
    assert not throttle.is_open("m")


def test_an_older_request_that_succeeds_late_proves_nothing() -> None:
    throttle = Throttle(patience_s=100)
    throttle.failed("m", 10)
    throttle.succeeded("m", 9)
    assert throttle.is_open("m")


def test_an_agent_that_goes_on_is_not_waiting_for_a_title() -> None:
    throttle = Throttle(patience_s=100)
    throttle.failed("title", 10)
    throttle.succeeded("main", 12, main=True)
    assert throttle.seconds(99) == 2
    throttle.failed("main", 20)
    throttle.succeeded("title", 21)
    assert throttle.seconds(30) == 12


def test_a_stated_wait_is_the_providers_and_what_follows_is_not() -> None:
    throttle = Throttle(patience_s=100)
    throttle.failed("m", 10, until=15)
    assert throttle.seconds(99) == 5
    throttle.failed("m", 40, until=42)
    assert throttle.seconds(99) == 7
    throttle.succeeded("m", 41)
    assert throttle.seconds(99) == 6


def test_all_failures_together_add_no_more_than_the_patience() -> None:
    throttle = Throttle(patience_s=60)
    for began in range(0, 900, 100):
        throttle.failed("m", began)
        throttle.succeeded("m", began + 50)
    assert throttle.seconds(1000) == 60


def test_a_provider_that_is_down_for_good_gives_no_endless_time() -> None:
    throttle = Throttle(patience_s=60)
    throttle.failed("m", 0)
    assert throttle.seconds(10_000) == 60


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans(), st.floats(0, 9)), max_size=20))
def test_throttled_time_never_exceeds_the_clock(events: list[tuple[str, bool, float]]) -> None:
    throttle, now, before = Throttle(patience_s=1000), 0.0, 0.0
    for chain, good, step in events:
        now += step
        (throttle.succeeded if good else throttle.failed)(chain, now)
        total = throttle.seconds(now)
        assert before - 1e-9 <= total <= now + 1e-9
        before = total


# --- canaries -------------------------------------------------------------------------------------------


def reminder(path: str, suffix: str = "") -> dict[str, Any]:
    return {"type": "text", "text": f"<system-reminder>\nContents of {path}{suffix}:\n\nrules\n</system-reminder>"}


def test_memory_files_are_declared_by_path() -> None:
    canaries = Canaries(files=frozenset({"/workspace/CLAUDE.md"}))
    content = [
        reminder("/workspace/CLAUDE.md", " (project instructions, checked into the codebase)"),
        reminder("/home/agent/.claude/CLAUDE.md", " (user's private global instructions for all projects)"),
        reminder("/workspace/lib/CLAUDE.md"),
    ]
    found = look({"messages": [{"role": "user", "content": content}]}, canaries)
    assert found.claimed == {"/home/agent/.claude/CLAUDE.md", "/workspace/lib/CLAUDE.md"}


def test_a_reminder_on_the_end_of_a_tools_result_is_the_programs() -> None:
    """Claude Code hangs the memory files of a folder on the result of the read that led there."""
    hung = "1\tx = 1\n\n" + "\n".join(reminder(f"/w/{name}/CLAUDE.md")["text"] for name in "ab")
    for content in (hung, [{"type": "text", "text": hung}]):
        body = {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": content}]}]}
        assert look(body, Canaries()).claimed == {"/w/a/CLAUDE.md", "/w/b/CLAUDE.md"}


def test_a_memory_file_that_a_plugin_of_the_program_adds_is_claimed() -> None:
    words = "tool.call hook additional context: Contents of /w/a/AGENTS.md:\n\nrules"
    hung = f"1\tx = 1\n\n<system-reminder>\n{words}\n\n</system-reminder>"
    body = {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": hung}]}]}
    assert look(body, Canaries()).claimed == {"/w/a/AGENTS.md"}


def test_what_a_declared_file_imports_is_declared_with_it() -> None:
    paths = ("/w/docs/style.md", "/home/agent/.claude/rules/x.md", "/w/CLAUDE.local.md")
    body = {"messages": [{"role": "user", "content": [reminder(path) for path in paths]}]}
    assert look(body, Canaries()).claimed == set(paths[1:])


def test_the_same_words_in_a_file_or_in_the_prompt_claim_nothing() -> None:
    words = "Contents of /etc/CLAUDE.md:\n\nrules"
    quoted = f"<system-reminder>\n{words}\n</system-reminder>\nmore of the file"
    result = {"type": "tool_result", "content": [{"type": "text", "text": quoted}]}
    body = {"messages": [{"role": "user", "content": [result, {"type": "text", "text": words}]}]}
    assert look(body, Canaries()).claimed == frozenset()
    assert look({"system": words}, Canaries()).claimed == {"/etc/CLAUDE.md"}  # the positive control


def test_forbidden_lines_are_found_in_any_decoded_string() -> None:
    canaries = Canaries(forbidden={"bait": ("B41T",), "said": ('say "hi" — now',), "hook": ("absent",)})
    body = json.loads(json.dumps({"input": [{"content": 'x say "hi" — now y'}], "metadata": {"B41T": 1}}))
    assert look(body, canaries).undeclared == {"bait", "said"}


def test_large_requests_wait_for_one_another_and_one_alone_always_fits() -> None:
    room, order = Room(limit=10), list[str]()

    def second() -> None:
        with room.take(4):
            order.append("second")

    with room.take(50):
        waiting = threading.Thread(target=second)
        waiting.start()
        waiting.join(0.05)
        order.append("first")
    waiting.join(60)
    assert order == ["first", "second"]


# --- the record, the upstream ---------------------------------------------------------------------------


def test_secrets_go_by_value_also_where_json_escapes_them(tmp_path: Path) -> None:
    rows = JsonLinesFile(tmp_path / "x.jsonl", ('se"cret', "tok"))
    rows.write({"a": 'a se"cret b', "tok": ["xtokx"]})
    rows.close()
    text = (tmp_path / "x.jsonl").read_text()
    assert json.loads(text) == {"a": "a [redacted] b", "[redacted]": ["x[redacted]x"]}


def test_a_full_record_says_how_much_is_missing(tmp_path: Path) -> None:
    rows = JsonLinesFile(tmp_path / "x.jsonl", (), limit=30)
    for number in range(9):
        rows.write({"row": number, "pad": "x" * 5})
    rows.close()
    kept = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert kept[-1] == {"missing_lines": 9 - (len(kept) - 1)}
    assert capped({"big": 1}, 10**9) == {"omitted_bytes": 10**9}


def test_only_named_headers_travel() -> None:
    upstream = Upstream("https://host/base/v1/", "key")
    given = {
        "anthropic-beta": "x",
        "authorization": "Bearer tf-1",
        "cookie": "c",
        "x-api-key": "tf-1",
        "host": "h",
    }
    assert upstream.headers(given) == {"anthropic-beta": "x", "accept-encoding": "identity", "x-api-key": "key"}
    assert upstream.prefix == "/base"
    assert "key" not in repr(upstream).replace("x-api-key", "")
    assert passed_back([("Set-Cookie", "c"), ("Retry-After", "3"), ("Server", "s")]) == {"retry-after": "3"}


# --- where an answer begins ------------------------------------------------------------------------------

_CALLED = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
BEGINNINGS: list[tuple[str, dict[str, object], bool]] = [
    ("/v1/messages", {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3}}}, False),
    (
        "/v1/messages",
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        False,
    ),
    ("/v1/messages", {"type": "content_block_start", "index": 0, "content_block": _CALLED}, True),
    ("/v1/messages", {"type": "content_block_delta", "index": 0, "delta": {"text": "a"}}, True),
    ("/v1/chat/completions", {"choices": [{"delta": {"role": "assistant", "content": ""}}]}, False),
    ("/v1/chat/completions", {"choices": [{"delta": {"refusal": "no"}}]}, True),
    ("/v1/chat/completions", {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "1"}]}}]}, True),
    ("/v1/responses", {"type": "response.created", "response": {"id": "r"}}, False),
    ("/v1/responses", {"type": "response.output_item.added", "item": {"type": "message"}}, False),
    (
        "/v1/responses",
        {"type": "response.output_item.added", "item": {"type": "function_call", "name": "f"}},
        True,
    ),
    ("/v1/responses", {"type": "response.output_text.delta", "delta": "a"}, True),
]


@pytest.mark.parametrize(("path", "event", "begun"), BEGINNINGS)
def test_an_answer_has_begun_with_a_tools_name(path: str, event: dict[str, object], *, begun: bool) -> None:
    """Which tool the model calls is an answer: a stream that is left after that is a turn."""
    assembler = DIALECTS[path].stream("text/event-stream")
    assert assembler is not None
    assembler.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    assert assembler.answer().begun is begun
