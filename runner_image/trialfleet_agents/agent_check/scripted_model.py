"""A loopback server that replaces a model provider. It serves the four APIs and plays a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from trialfleet_agents.agent_check.scripted_answers import Answer, rendered, server_sent


@dataclass(frozen=True)
class ModelRequest:
    """What arrived. Header names are lower case; `path` is without its query."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def has_tools(self) -> bool:
        return bool(self.body.get("tools"))

    @property
    def strings(self) -> str:
        """Every string of the body, one after the other."""
        return "\n".join(_strings(self.body))


@dataclass(frozen=True)
class Fail:
    """An HTTP error in place of an answer."""

    status: int
    message: str = "scripted"
    retry_after: str | None = None


@dataclass(frozen=True)
class Break:
    """The connection is cut in the middle of the answer."""


@dataclass(frozen=True)
class Hang:
    """No byte of an answer until the server is closed."""


Reply = Answer | Fail | Break | Hang


@dataclass
class ScriptedModel:
    """Requests that carry tools take the next reply of the script; after its end they get `last`.
    Requests without tools (titles, probes) get the answer `side` and do not advance the script."""

    script: list[Reply] = field(default_factory=list[Reply])
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: int = 0
    last: Answer = field(default_factory=Answer)  # said when the script is over
    side: Answer = field(default_factory=lambda: Answer("Side."))

    @property
    def main(self) -> list[ModelRequest]:
        """Requests of the agent's loop."""
        return [request for request in self.requests if request.has_tools]

    def play(self, *replies: Reply) -> None:
        """Forget what was, play these from now on."""
        with self.lock:
            self.script, self.requests = list(replies), []

    def take(self, request: ModelRequest) -> tuple[Reply, int]:
        with self.lock:
            self.requests.append(request)
            self.answers += 1
            if not request.has_tools:
                return self.side, self.answers
            return (self.script.pop(0) if self.script else self.last), self.answers


@contextmanager
def scripted_model(
    model: ScriptedModel | None = None, address: tuple[str, int] = ("127.0.0.1", 0)
) -> Generator[ScriptedModel]:
    """The server at that address; port 0 is a free one."""
    played = model or ScriptedModel()

    class BoundHandler(_ScriptedHandler):
        scripted = played

    server = _ScriptedServer(address, BoundHandler)
    played.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield played
    finally:
        played.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _ScriptedServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that closes the connection is expected."""


class _ScriptedHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    scripted: ScriptedModel

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._json(200, {"object": "list", "data": [], "models": []})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body, path = json.loads(data or b"{}"), self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            self._json(200, {"input_tokens": 7, "totalTokens": 7})
            return
        reply, number = self.scripted.take(ModelRequest(path, headers, body))
        match reply:
            case Answer():
                self._answer(reply, path, body, number)
            case Fail():
                error = {"type": "api_error", "code": reply.status, "message": reply.message}
                self._json(reply.status, {"type": "error", "error": error}, retry_after=reply.retry_after)
            case Break():
                self._cut(path, body, number)
            case Hang():
                self.scripted.released.wait(120)
                self.close_connection = True

    def _answer(self, answer: Answer, path: str, body: dict[str, Any], number: int) -> None:
        whole, events = rendered(path, answer, str(body.get("model", "")), number)
        if not streamed(path, body):
            self._json(200, whole)
            return
        self._head("text/event-stream")
        for event in events:
            self._chunk(server_sent(event))
        self.wfile.write(b"0\r\n\r\n")

    def _cut(self, path: str, body: dict[str, Any], number: int) -> None:
        """The first half of an answer, and nothing more."""
        whole, events = rendered(path, Answer("I will now"), str(body.get("model", "")), number)
        self._head("text/event-stream" if streamed(path, body) else "application/json")
        half = server_sent(events[0]) if streamed(path, body) else json.dumps(whole).encode()
        self._chunk(half[: len(half) // 2])
        self.close_connection = True
        self.connection.close()

    def _head(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _json(self, status: int, body: dict[str, Any], *, retry_after: str | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if retry_after is not None:
            self.send_header("retry-after", retry_after)
        self.end_headers()
        self.wfile.write(data)


def streamed(path: str, body: dict[str, Any]) -> bool:
    """Whether the client wants its answer as a stream."""
    return body.get("stream") is True or ":stream" in path


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        held = cast("dict[str, object] | list[object]", value)
        for item in held.values() if isinstance(held, dict) else held:
            yield from _strings(item)
