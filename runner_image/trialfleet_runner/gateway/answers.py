"""Answers of a model, assembled from streams or read whole: for the record, the counts and the faults."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Protocol

from trialfleet_runner.gateway.sse import EventParser
from trialfleet_runner.gateway.usage import Usage, mapping, messages_usage, objects, openai_usage


@dataclass(frozen=True)
class Answer:
    """`complete`: the provider ended it properly. `usage`: None when it was cut before any count came.

    `streamed_chars` is the length of generated text and tool input so far, for an estimate of what an
    interrupted answer cost.
    """

    body: dict[str, Any]
    complete: bool
    usage: Usage | None = None
    model: str | None = None
    error: str | None = None
    streamed_chars: int = 0

    @property
    def id(self) -> str | None:
        found = self.body.get("id")
        return found if isinstance(found, str) else None


class Assembler(Protocol):
    def feed(self, chunk: bytes) -> None: ...

    def answer(self) -> Answer: ...


@dataclass
class MessagesAssembler:
    """The Messages API's stream: `message_start`, blocks, `message_delta`, `message_stop`, or `error`."""

    parser: EventParser = field(default_factory=EventParser)
    message: dict[str, Any] = field(default_factory=dict[str, Any])
    blocks: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    partial: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    stopped: bool = False
    error: str | None = None
    chars: int = 0

    def feed(self, chunk: bytes) -> None:
        for event in self.parser.feed(chunk):
            self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        index = event.get("index")
        match event.get("type"):
            case "message_start":
                self.message = mapping(event.get("message"))
                self._count(self.message.get("usage"))
            case "content_block_start" if isinstance(index, int):
                self.blocks[index] = dict(mapping(event.get("content_block")))
            case "content_block_delta" if isinstance(index, int):
                self._delta(index, mapping(event.get("delta")))
            case "content_block_stop" if isinstance(index, int):
                self._close(index)
            case "message_delta":
                self.message |= mapping(event.get("delta"))
                self._count(event.get("usage"))
            case "message_stop":
                self.stopped = True
            case "error":
                self.error = error_text(event)
            case _:
                pass

    def _count(self, usage: object) -> None:
        """Later counts replace earlier ones: `message_delta` is cumulative."""
        self.usage |= {key: value for key, value in mapping(usage).items() if value is not None}

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        block = self.blocks.setdefault(index, {})
        for key in ("text", "thinking", "signature", "partial_json"):
            piece = delta.get(key)
            if not isinstance(piece, str):
                continue
            self.chars += 0 if key == "signature" else len(piece)
            if key == "partial_json":
                self.partial.setdefault(index, []).append(piece)
            else:
                block[key] = str(block.get(key, "")) + piece

    def _close(self, index: int) -> None:
        pieces = self.partial.pop(index, None)
        if pieces is None:
            return
        text = "".join(pieces)
        try:
            self.blocks[index]["input"] = json.loads(text)
        except (ValueError, RecursionError):
            self.blocks[index]["input"] = text

    def answer(self) -> Answer:
        for index in list(self.partial):
            self._close(index)
        content = [self.blocks[index] for index in sorted(self.blocks)]
        body = {**self.message, "content": content, "usage": self.usage}
        model = self.message.get("model")
        return Answer(
            body=body,
            complete=self.stopped and self.error is None,
            usage=messages_usage(self.usage) if self.usage else None,
            model=model if isinstance(model, str) else None,
            error=self.error,
            streamed_chars=self.chars,
        )


@dataclass
class ChatAssembler:
    """Chat Completions' stream: deltas of choices, usage in a last chunk, `[DONE]`."""

    parser: EventParser = field(default_factory=EventParser)
    head: dict[str, Any] = field(default_factory=dict[str, Any])
    text: list[str] = field(default_factory=list[str])
    calls: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    done: bool = False
    error: str | None = None
    chars: int = 0

    def feed(self, chunk: bytes) -> None:
        for event in self.parser.feed(chunk):
            if event.get("done") is True:
                self.done = True
            elif "error" in event:
                self.error = error_text(event)
            else:
                self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        self.head = self.head or {key: event.get(key) for key in ("id", "model", "created")}
        self.usage = mapping(event.get("usage")) or self.usage
        for choice in objects(event.get("choices"))[:1]:
            delta = mapping(choice.get("delta"))
            if isinstance(delta.get("content"), str):
                self.text.append(delta["content"])
                self.chars += len(delta["content"])
            for call in objects(delta.get("tool_calls")):
                self._call(call)
            if isinstance(choice.get("finish_reason"), str):
                self.finish = choice["finish_reason"]

    def _call(self, call: dict[str, Any]) -> None:
        index = call.get("index")
        kept = self.calls.setdefault(
            index if isinstance(index, int) else 0, {"id": call.get("id"), "function": {}}
        )
        for key, piece in mapping(call.get("function")).items():
            if isinstance(piece, str):
                kept["function"][key] = str(kept["function"].get(key, "")) + piece
                self.chars += len(piece)

    def answer(self) -> Answer:
        message = {"role": "assistant", "content": "".join(self.text), "tool_calls": list(self.calls.values())}
        body = {**self.head, "choices": [{"index": 0, "message": message, "finish_reason": self.finish}]}
        model = self.head.get("model")
        return Answer(
            body={**body, "usage": self.usage},
            complete=(self.done or self.finish is not None) and self.error is None,
            usage=openai_usage(self.usage) if self.usage else None,
            model=model if isinstance(model, str) else None,
            error=self.error,
            streamed_chars=self.chars,
        )


@dataclass
class ResponsesAssembler:
    """The Responses API's stream: its last event carries the whole response."""

    parser: EventParser = field(default_factory=EventParser)
    response: dict[str, Any] = field(default_factory=dict[str, Any])
    ended: bool = False
    error: str | None = None
    chars: int = 0

    def feed(self, chunk: bytes) -> None:
        for event in self.parser.feed(chunk):
            kind = str(event.get("type"))
            self.response = mapping(event.get("response")) or self.response
            if kind in ("response.completed", "response.incomplete"):
                self.ended = True
            elif kind in ("response.failed", "error"):
                self.error = error_text(self.response if kind == "response.failed" else event)
            elif isinstance(event.get("delta"), str):
                self.chars += len(event["delta"])

    def answer(self) -> Answer:
        usage = mapping(self.response.get("usage"))
        model = self.response.get("model")
        return Answer(
            body=self.response,
            complete=self.ended and self.error is None,
            usage=openai_usage(usage) if usage else None,
            model=model if isinstance(model, str) else None,
            error=self.error,
            streamed_chars=self.chars,
        )


def error_text(body: dict[str, Any]) -> str:
    """`type: message` of a provider's error object, in either dialect."""
    error = mapping(body.get("error"))
    kind, message = error.get("type") or error.get("code"), error.get("message") or body.get("message")
    return f"{kind or 'error'}: {message or 'no message'}"[:500]
