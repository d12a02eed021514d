"""Google's Gemini API: model and method are in the path, answers stream as events or as one JSON array."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trialfleet_ledger.token_usage import count, gemini_usage
from trialfleet_ledger.untrusted import json_object, mapping, objects
from trialfleet_runner.gateway.answers import (
    MAX_EVENT_BYTES,
    Assembler,
    ModelAnswer,
    whole_answer,
)
from trialfleet_runner.gateway.conversations import Opening
from trialfleet_runner.gateway.dialects import Body, Dialect, ToolCall, texts
from trialfleet_runner.gateway.requests.gemini_fields import GEMINI

_COUNTS = "usageMetadata"
_MARK = re.compile(rb'["\\{}]')
# Google reads both spellings of every field.
_FUNCTIONS = ("functionDeclarations", "function_declarations")
_CONFIGS = ("generationConfig", "generation_config")
_CAPS = ("maxOutputTokens", "max_output_tokens")
_STATUS = {
    "invalid_request_error": (400, "INVALID_ARGUMENT"),
    "authentication_error": (401, "UNAUTHENTICATED"),
    "not_found_error": (404, "NOT_FOUND"),
    "request_too_large": (413, "INVALID_ARGUMENT"),
    "api_error": (502, "UNAVAILABLE"),
}


class ArrayParser:
    """Feed the bytes of a JSON array in any cut; get its objects as they close.

    Text outside of objects is skipped, an object larger than `MAX_EVENT_BYTES` too.
    """

    def __init__(self) -> None:
        self._data = bytearray()  # from the first byte of the open object
        self._seen = self._depth = 0
        self._quoted = False

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        self._data += chunk
        while found := _MARK.search(self._data, self._seen):
            self._seen = found.end()
            if self._closed(found[0], found.start()):
                event = json_object(bytes(self._data[: self._seen]))
                del self._data[: self._seen]
                self._seen = 0
                if event:
                    yield event
        self._seen = max(self._seen, len(self._data))
        if self._depth == 0 or len(self._data) > MAX_EVENT_BYTES:
            self._seen -= len(self._data)  # 1 when the last byte escapes the next
            self._data.clear()

    def _closed(self, mark: bytes, at: int) -> bool:
        """Take one mark; whether it closes the array's object."""
        if self._quoted:
            self._seen += mark == b"\\"
            self._quoted = mark != b'"'
        elif mark == b'"':
            self._quoted = self._depth > 0
        elif mark == b"{":
            if self._depth == 0:
                del self._data[:at]
                self._seen = 1
            self._depth += 1
        elif mark == b"}" and self._depth:
            self._depth -= 1
            return self._depth == 0
        return False


@dataclass
class GeminiAssembler(Assembler):
    """Each chunk is a complete answer: parts add up, counts are cumulative, the last has a `finishReason`."""

    head: dict[str, Any] = field(default_factory=dict[str, Any])
    parts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    finish: str | None = None
    read_usage = gemini_usage
    counts = _COUNTS

    def take(self, event: dict[str, Any]) -> None:
        if "error" in event:
            self.fail(event)
            return
        self.head |= {key: event[key] for key in ("responseId", "modelVersion", "promptFeedback") if key in event}
        self.usage |= {key: value for key, value in mapping(event.get(_COUNTS)).items() if value is not None}
        for candidate in objects(event.get("candidates"))[:1]:
            for part in objects(mapping(candidate.get("content")).get("parts")):
                self._part(part)
            if isinstance(candidate.get("finishReason"), str):
                self.finish = candidate["finishReason"]
        self.ended = _ended(event) or self.ended

    def _part(self, part: dict[str, Any]) -> None:
        text, last = part.get("text"), self.parts[-1] if self.parts else {}
        self.begun = self.begun or text != ""
        self.chars += len(text) if isinstance(text, str) else len(json.dumps(part.get("functionCall", "")))
        if isinstance(text, str) and "text" in last and last.get("thought") == part.get("thought"):
            self.parts[-1] = {**last, **part, "text": str(last["text"]) + text}
        else:
            self.parts.append(part)

    def body(self) -> dict[str, Any]:
        content = {"role": "model", "parts": self.parts}
        candidate = {"index": 0, "content": content, "finishReason": self.finish}
        return {**self.head, "candidates": [candidate], _COUNTS: self.usage}


def _ended(event: dict[str, Any]) -> bool:
    """The answer is complete, or the prompt was blocked."""
    blocked = isinstance(mapping(event.get("promptFeedback")).get("blockReason"), str)
    return blocked or any(isinstance(one.get("finishReason"), str) for one in objects(event.get("candidates")))


class Gemini(Dialect):
    """One request's form: `path` names the model and whether its answer streams; `events`: as SSE (`alt=sse`)."""

    fields = GEMINI
    assembler = GeminiAssembler
    labelled = "labels"

    def __init__(self, path: str, model: str, *, stream: bool, events: bool) -> None:
        self.path, self._model, self._stream, self._events = path, model, stream, events

    def model(self, body: Body) -> str:
        return self._model

    def streamed(self, body: Body) -> bool:
        return self._stream

    def stream(self, content_type: str) -> Assembler | None:
        """With `alt=sse` an answer that is not streamed may come as one event."""
        if content_type == "text/event-stream":
            return GeminiAssembler()
        return GeminiAssembler(parser=ArrayParser()) if self._stream else None

    def whole(self, body: Body) -> ModelAnswer:
        return whole_answer(body, gemini_usage, complete=_ended(body), counts=_COUNTS)

    def refusal(self, message: str, kind: str) -> Any:
        error = google_error(message, kind)
        return [error] if self._stream and not self._events else error

    def output_cap(self, body: Body) -> int | None:
        found = [count(config, cap) for config in _configs(body) for cap in _CAPS]
        return min((cap for cap in found if cap), default=None)

    def with_cap(self, body: Body, tokens: int) -> Body | None:
        """Thoughts count as output: a fixed thinking budget must stay below the limit."""
        if any(_thinking(config) >= tokens for config in _configs(body)):
            return None
        kept = {name: body[name] for name in _CONFIGS if name in body} or {_CONFIGS[0]: {}}
        return {**body, **{name: _capped(mapping(config), tokens) for name, config in kept.items()}}

    def calls(self, body: Body) -> list[ToolCall]:
        first = mapping((objects(body.get("candidates")) or [{}])[0].get("content"))
        called = (mapping(part.get("functionCall")) for part in objects(first.get("parts")))
        return [ToolCall(str(call["name"]), call.get("args")) for call in called if "name" in call]

    def opening(self, body: Body) -> Opening:
        told: list[str] = []
        for content in objects(body.get("contents")):
            if content.get("role") == "model":
                break
            told += texts(objects(content.get("parts")))
        declared = (
            one for tool in objects(body.get("tools")) for name in _FUNCTIONS for one in objects(tool.get(name))
        )
        return Opening("\n".join(told), frozenset(str(one.get("name")) for one in declared))


def google_error(message: str, kind: str, code: int | None = None) -> Body:
    """An error in the form of Google's APIs; `code`: the HTTP status if it is not the usual one of `kind`."""
    usual, status = _STATUS[kind]
    return {"error": {"code": code or usual, "message": message, "status": status}}


def _configs(body: Body) -> list[Body]:
    return [mapping(body.get(name)) for name in _CONFIGS if name in body]


def _capped(config: Body, tokens: int) -> Body:
    given = [cap for cap in _CAPS if cap in config] or [_CAPS[0]]
    return {**config, **dict.fromkeys(given, tokens)}


def _thinking(config: Body) -> int:
    thinking = mapping(config.get("thinkingConfig")) or mapping(config.get("thinking_config"))
    return count(thinking, "thinkingBudget") or count(thinking, "thinking_budget")
