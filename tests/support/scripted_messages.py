"""A loopback server that speaks the Anthropic Messages API and plays a script: no model, every fault on demand.

Requests that carry tools take the next reply of the script; when it is played out, a plain "Done." follows.
Requests without tools (titles, probes) get a short answer of their own and leave the script alone, unless the
script ends with what the provider says to everybody (`then`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Usage:
    """Token counts of one answer, as the provider would report them."""

    input: int = 10
    output: int = 5
    cache_read: int = 0
    cache_write: int = 0
    thoughts: int = 0  # part of `output`
    cache_write_1h: int = 0  # part of `cache_write`

    def wire(self) -> dict[str, Any]:
        kept = {"ephemeral_1h_input_tokens": self.cache_write_1h} if self.cache_write_1h else None
        return {
            **({"cache_creation": kept} if kept else {}),
            "input_tokens": self.input,
            "output_tokens": self.output,
            "cache_read_input_tokens": self.cache_read,
            "cache_creation_input_tokens": self.cache_write,
        }


@dataclass(frozen=True)
class Say:
    """A full answer: text, then tool calls as (name, input)."""

    text: str = "Done."
    tools: tuple[tuple[str, dict[str, Any]], ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Fail:
    """An HTTP error in the provider's format."""

    status: int
    kind: str = "api_error"
    message: str = "scripted"
    retry_after: str | None = None
    token_limit: str | None = None  # a minute, as OpenAI's header says it
    details: tuple[dict[str, Any], ...] = ()  # of Google's errors


@dataclass(frozen=True)
class FailInside:
    """The error inside a stream that has begun, or with 200 in the place of a whole answer."""

    failure: Fail


@dataclass(frozen=True)
class Break:
    """The connection is cut in the middle of a streamed answer, after some text."""

    text: str = "I will now"


@dataclass(frozen=True)
class Hang:
    """No byte of an answer until the server is closed, or an answer that stops after its first words, or after the
    first event of its stream, which says none."""

    after_words: bool = False
    after_start: bool = False


Reply = Say | Fail | FailInside | Break | Hang


@dataclass(frozen=True)
class Request:
    """What arrived. Header names are lower case."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def strings(self) -> str:
        """Every string of the body, one after the other."""
        return "\n".join(_strings(self.body))


class ScriptedMessages:
    """Set `script`, drive a client at `url`, look at `requests`."""

    def __init__(self) -> None:
        self.script: list[Reply] = []
        self.then: Reply | None = None
        self.requests: list[Request] = []
        self.released = threading.Event()
        self.lock = threading.Lock()
        self.answers = 0
        self.url = ""

    @property
    def main(self) -> list[Request]:
        """Requests of the agent's loop: those that carry tools."""
        return [request for request in self.requests if request.body.get("tools")]

    def play(self, *replies: Reply, then: Reply | None = None) -> None:
        """Forget what was, play these from now on. `then`: to every request after them, with or without tools."""
        with self.lock:
            self.script, self.requests, self.then = list(replies), [], then

    def take(self, request: Request) -> tuple[Reply, int]:
        with self.lock:
            self.requests.append(request)
            self.answers += 1
            if self.then is not None and not self.script:
                return self.then, self.answers
            if not request.body.get("tools"):
                return Say("Side."), self.answers
            return (self.script.pop(0) if self.script else Say()), self.answers


@contextmanager
def scripted_messages() -> Iterator[ScriptedMessages]:
    played = ScriptedMessages()
    with serving(played):
        yield played


@contextmanager
def serving(
    played: ScriptedMessages,
    host: str = "127.0.0.1",
    port: int = 0,
    handler: type[ScriptedHandler] | None = None,
) -> Iterator[None]:
    """`port` 0: a free one. `handler`: the API that is spoken; the Messages API unless given."""

    class Handler(handler or MessagesHandler):  # type: ignore[misc]  # a base that is chosen at run time
        scripted = played

    server = Server((host, port), Handler)
    played.url = f"http://{host}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        played.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # five would make a burst of connections wait a second


class ScriptedHandler(BaseHTTPRequestHandler):
    """What the APIs have in common: one reply of the script per request, whole or streamed."""

    protocol_version = "HTTP/1.1"
    scripted: ScriptedMessages
    stream_type = "text/event-stream; charset=utf-8"
    extra: Mapping[str, str] = MappingProxyType({})  # headers of whole answers

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def aside(self, request: Request) -> dict[str, Any] | None:
        """The answer of a request that no model answers; None: it takes the next reply."""
        return None

    def streamed(self, request: Request) -> bool:
        return request.body.get("stream") is True

    def message(self, reply: Say, request: Request, number: int) -> dict[str, Any]:
        """The whole answer."""
        raise NotImplementedError

    def pieces(self, message: dict[str, Any]) -> list[bytes]:
        """The answer as its stream has it."""
        raise NotImplementedError

    def error(self, reply: Fail) -> dict[str, Any]:
        raise NotImplementedError

    def error_piece(self, failure: Fail) -> bytes:
        """The event by which a stream ends with an error."""
        return b"data: " + json.dumps(self.error(failure)).encode() + b"\n\n"

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.play(Request(self.path.partition("?")[0], headers, json.loads(data or b"{}")))

    def play(self, request: Request) -> None:
        """Answer with the next reply."""
        aside = self.aside(request)
        if aside is not None:
            self.scripted.requests.append(request)
            self._json(200, aside)
            return
        reply, number = self.scripted.take(request)
        match reply:
            case Say():
                message = self.message(reply, request, number)
                if self.streamed(request):
                    self._stream(self.pieces(message))
                else:
                    self._json(200, message)
            case Fail():
                self.refuse(reply)
            case FailInside(failure) if self.streamed(request):
                self._stream([*self._opening("", request, number)[:1], self.error_piece(failure)])
            case FailInside(failure):
                self._json(200, self.error(failure))
            case Break():
                self._stream(self._opening(reply.text, request, number), finish=False)
            case Hang():
                if reply.after_start:
                    self._stream(self._opening("", request, number)[:1], finish=False, wait=True)
                if reply.after_words:
                    self._stream(self._opening("Let me think", request, number), finish=False, wait=True)
                self.scripted.released.wait(120)
                self.close_connection = True

    def refuse(self, reply: Fail) -> None:
        if reply.token_limit is not None:
            self.extra = {**self.extra, "x-ratelimit-limit-tokens": reply.token_limit}
        self._json(reply.status, self.error(reply), retry_after=reply.retry_after)

    def _opening(self, text: str, request: Request, number: int) -> list[bytes]:
        """The first words of an answer, without its end."""
        return self.pieces(self.message(Say(text), request, number))[:3]

    def _json(self, status: int, body: dict[str, Any], *, retry_after: str | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("request-id", "req_scripted")
        for name, value in self.extra.items():
            self.send_header(name, value)
        if retry_after is not None:
            self.send_header("retry-after", retry_after)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, pieces: list[bytes], *, finish: bool = True, wait: bool = False) -> None:
        self.send_response(200)
        self.send_header("content-type", self.stream_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for data in pieces:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        if finish:
            self.wfile.write(b"0\r\n\r\n")
        elif not wait:
            self.close_connection = True
            self.connection.close()


class MessagesHandler(ScriptedHandler):
    """The Messages API."""

    def aside(self, request: Request) -> dict[str, Any] | None:
        return {"input_tokens": 7} if request.path == "/v1/messages/count_tokens" else None

    def message(self, reply: Say, request: Request, number: int) -> dict[str, Any]:
        return _message(reply, request.body.get("model", ""), number)

    def pieces(self, message: dict[str, Any]) -> list[bytes]:
        return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in _events(message)]

    def error(self, reply: Fail) -> dict[str, Any]:
        return {"type": "error", "error": {"type": reply.kind, "message": reply.message}}

    def do_GET(self) -> None:
        self._json(200, {"data": [{"id": "claude-sonnet-4-6", "type": "model"}], "has_more": False})


def _message(reply: Say, model: str, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    for place, (name, given) in enumerate(reply.tools):
        content.append({"type": "tool_use", "id": f"toolu_{number:06}_{place}", "name": name, "input": given})
    return {
        "id": f"msg_{number:06}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if reply.tools else "end_turn",
        "stop_sequence": None,
        "usage": reply.usage.wire(),
    }


def _events(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The message as the provider streams it: output tokens are final only in `message_delta`."""
    opening = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": opening}]
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    final = {"output_tokens": message["usage"]["output_tokens"]}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": ending, "usage": final}, {"type": "message_stop"}]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
