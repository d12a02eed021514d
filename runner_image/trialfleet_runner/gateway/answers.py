"""Answers of a model, assembled from streams or read whole: for the record and the counts."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, cast

from trialfleet_ledger.token_usage import TokenUsage, messages_usage, openai_usage
from trialfleet_ledger.untrusted import mapping, objects
from trialfleet_runner.gateway.canary import strings
from trialfleet_runner.gateway.faults import error_text

MAX_EVENT_BYTES = 32 * 2**20
UNANSWERED = ("failed", "cancelled", "queued")  # status of a response that is no answer


class StreamParser(Protocol):
    """Feed the bytes of a stream in any cut; get its JSON objects."""

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]: ...


class EventParser:
    """Feed bytes in any cut; get the JSON objects of the `data:` fields. `[DONE]` arrives as `{"done": True}`.

    Events that are not JSON objects, or larger than `MAX_EVENT_BYTES`, are skipped: the bytes themselves went
    to the agent untouched.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        self._rest += chunk
        lines: list[bytes] = []
        if b"\n" in chunk:  # a long line is not searched again with every piece of it
            *lines, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
        if len(self._rest) > MAX_EVENT_BYTES:
            self._rest.clear()
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._add(line[5:].removeprefix(b" "))
            elif not line:
                yield from self._event()

    def _add(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= MAX_EVENT_BYTES:
            self._data.append(data)

    def _event(self) -> Iterator[dict[str, Any]]:
        data, whole = b"\n".join(self._data), self._size <= MAX_EVENT_BYTES
        self._data, self._size = [], 0
        if not data or not whole:
            return
        if data.strip() == b"[DONE]":
            yield {"done": True}
            return
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            yield cast("dict[str, Any]", value)


@dataclass(frozen=True)
class ModelAnswer:
    """`complete`: the provider ended it properly. `usage`: None when it was cut before any count came.

    `streamed_chars` is the length of generated text and tool input so far, for an estimate of what an
    interrupted answer cost.
    """

    body: dict[str, Any]
    complete: bool
    usage: TokenUsage | None = None
    error: str | None = None
    streamed_chars: int = 0
    begun: bool = False  # something of what the model says came, if only the name of a tool
    failed: dict[str, Any] = field(default_factory=dict[str, Any])  # the event that ended the stream with an error

    @property
    def chars(self) -> int:
        """Length of what was generated; of an answer that came whole, of all its text."""
        return self.streamed_chars or sum(map(len, strings(self.body)))

    @property
    def id(self) -> str | None:
        return self._text("id") or self._text("responseId")

    @property
    def model(self) -> str | None:
        return self._text("model") or self._text("modelVersion")

    @property
    def tier(self) -> str | None:
        """The service tier that served it, where the API says so."""
        return self._text("service_tier")

    def _text(self, key: str) -> str | None:
        found = self.body.get(key)
        return found if isinstance(found, str) else None


UsageReader = Callable[[Mapping[str, Any]], TokenUsage]


def whole_answer(
    body: dict[str, Any], read_usage: UsageReader, *, complete: bool, counts: str = "usage"
) -> ModelAnswer:
    """An answer whose body has its counts in the field `counts`."""
    usage = mapping(body.get(counts))
    return ModelAnswer(body, complete, read_usage(usage) if usage else None)


@dataclass
class Assembler(ABC):
    """An answer put together from its stream."""

    parser: StreamParser = field(default_factory=EventParser)
    ended: bool = False
    error: str | None = None
    failed: dict[str, Any] = field(default_factory=dict[str, Any])
    chars: int = 0
    begun: bool = False
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    read_usage: ClassVar[UsageReader] = openai_usage
    counts: ClassVar[str] = "usage"

    def feed(self, chunk: bytes) -> None:
        for event in self.parser.feed(chunk):
            self.take(event)

    def fail(self, event: dict[str, Any]) -> None:
        """The stream says that there will be no answer."""
        self.error, self.failed = error_text(event), event

    @abstractmethod
    def take(self, event: dict[str, Any]) -> None:
        """The next event."""

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """As the same answer would have come unstreamed."""

    def answer(self) -> ModelAnswer:
        complete = self.ended and self.error is None
        found = whole_answer(self.body(), type(self).read_usage, complete=complete, counts=self.counts)
        return replace(found, error=self.error, streamed_chars=self.chars, begun=self.begun, failed=self.failed)


@dataclass
class MessagesAssembler(Assembler):
    """The Messages API's stream: `message_start`, blocks, `message_delta`, `message_stop`, or `error`."""

    message: dict[str, Any] = field(default_factory=dict[str, Any])
    blocks: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    partial: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    read_usage = messages_usage

    def take(self, event: dict[str, Any]) -> None:
        index = event.get("index")
        match event.get("type"):
            case "message_start":
                self.message = mapping(event.get("message"))
                self._count(self.message.get("usage"))
            case "content_block_start" if isinstance(index, int):
                self.blocks[index] = dict(mapping(event.get("content_block")))
                self.begun = self.begun or _says_something(self.blocks[index])
            case "content_block_delta" if isinstance(index, int):
                self._delta(index, mapping(event.get("delta")))
            case "content_block_stop" if isinstance(index, int):
                self._close(index)
            case "message_delta":
                self.message |= mapping(event.get("delta"))
                self._count(event.get("usage"))
            case "message_stop":
                self.ended = bool(self.message)
            case "error":
                self.fail(event)
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
            self.begun = self.begun or bool(piece)
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

    def body(self) -> dict[str, Any]:
        for index in list(self.partial):
            self._close(index)
        content = [self.blocks[index] for index in sorted(self.blocks)]
        return {**self.message, "content": content, "usage": self.usage}


@dataclass
class ChatAssembler(Assembler):
    """Chat Completions' stream: deltas of choices, usage in a last chunk, `[DONE]`, which alone is no answer."""

    head: dict[str, Any] = field(default_factory=dict[str, Any])
    text: list[str] = field(default_factory=list[str])
    calls: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    finish: str | None = None

    def take(self, event: dict[str, Any]) -> None:
        if event.get("done") is True:
            self.ended = self.ended or self.begun
        elif "error" in event:
            self.fail(event)
        else:
            self._chunk(event)

    def _chunk(self, event: dict[str, Any]) -> None:
        self.head = self.head or {key: event.get(key) for key in ("id", "model", "created", "service_tier")}
        self.usage = mapping(event.get("usage")) or self.usage
        for choice in objects(event.get("choices"))[:1]:
            delta = mapping(choice.get("delta"))
            self.begun = self.begun or any(value for key, value in delta.items() if key != "role")
            for thought in ("reasoning_content", "reasoning"):
                self.chars += len(delta[thought]) if isinstance(delta.get(thought), str) else 0
            if isinstance(delta.get("content"), str):
                self.text.append(delta["content"])
                self.chars += len(delta["content"])
            for call in objects(delta.get("tool_calls")):
                self._call(call)
            if isinstance(choice.get("finish_reason"), str):
                self.finish, self.ended = choice["finish_reason"], True

    def _call(self, call: dict[str, Any]) -> None:
        index = call.get("index")
        kept = self.calls.setdefault(
            index if isinstance(index, int) else 0, {"id": call.get("id"), "function": {}}
        )
        for key, piece in mapping(call.get("function")).items():
            if isinstance(piece, str):
                kept["function"][key] = str(kept["function"].get(key, "")) + piece
                self.chars += len(piece)

    def body(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": "".join(self.text), "tool_calls": list(self.calls.values())}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return {**self.head, "choices": [choice], "usage": self.usage}


@dataclass
class ResponsesAssembler(Assembler):
    """The Responses API's stream: its last event carries the whole response."""

    response: dict[str, Any] = field(default_factory=dict[str, Any])

    def take(self, event: dict[str, Any]) -> None:
        kind = str(event.get("type"))
        self.response = mapping(event.get("response")) or self.response
        if kind in ("response.completed", "response.incomplete"):
            self.ended = bool(self.response) and self.response.get("status") not in UNANSWERED
        elif kind in ("response.failed", "error"):
            self.fail(self.response if kind == "response.failed" else event)
        elif isinstance(event.get("delta"), str):
            self.chars += len(event["delta"])
        self.begun = self.begun or self.chars > 0 or _has_content(event)

    def body(self) -> dict[str, Any]:
        return self.response


def _says_something(block: dict[str, Any]) -> bool:
    """Whether a block of the Messages API says something where it begins, as a call names its tool."""
    return block.get("type") not in ("text", "thinking") or bool(block.get("text") or block.get("thinking"))


def _has_content(event: dict[str, Any]) -> bool:
    """Whether an event of the Responses API begins an item that says something by itself, as a call of a tool."""
    return "item" in event and mapping(event["item"]).get("type") not in ("message", "reasoning")
