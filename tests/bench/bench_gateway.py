"""What the model gateway adds between an agent and its provider: three processes, each request also without it."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.bench.figure import Figure
from trialfleet_runner.gateway import Gateway, Upstream, budget

REQUESTS = 200
EVENTS = 100
EVERY_S = 0.03
STREAMS = 100
MODEL = "claude-sonnet-4-6"
PROMPT = "a line of the file\n" * 3_000  # of an agent in the middle of its work
BODY = {"model": MODEL, "max_tokens": 1000, "tools": [{"name": "t"}]}
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": MODEL,
    "content": [{"type": "text", "text": "I will read the file. " * 100}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 5},
}
_STAMP = re.compile(rb"at=(\d+);")


class _Provider(BaseHTTPRequestHandler):
    """Streams events that carry the instant at which they were sent."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a kept connection waits 40 ms between headers and body

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        if body.get("stream"):
            self._stream()
            return
        data = json.dumps(ANSWER).encode()
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self) -> None:
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self._event({"type": "message_start", "message": {**ANSWER, "content": []}})
        self._event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        for _ in range(EVENTS):
            time.sleep(EVERY_S)
            delta = {"type": "text_delta", "text": f"at={time.monotonic_ns()};" + "z" * 500}
            self._event({"type": "content_block_delta", "index": 0, "delta": delta})
        self._event({"type": "message_delta", "delta": {}, "usage": {"output_tokens": EVENTS}})
        self._event({"type": "message_stop"})
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, event: dict[str, Any]) -> None:
        data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))


class _Server(ThreadingHTTPServer):
    request_queue_size = 256


def _provide(parent: Connection) -> None:
    server = _Server(("127.0.0.1", 0), _Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    parent.send(server.server_address[1])
    parent.recv()


def _forward(parent: Connection, provider: int) -> None:
    budget.MOST_IN_FLIGHT = STREAMS  # a trial's limit is lower: here the process is measured, not the limit
    with (
        tempfile.TemporaryDirectory() as folder,
        Gateway(Upstream(f"http://127.0.0.1:{provider}", "key"), record=Path(folder)) as gateway,
    ):
        parent.send((gateway.port, gateway.token))
        while parent.recv() == "peak":
            parent.send((_peak_mb(), gateway.report().answered))


def _peak_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024


@contextmanager
def _started(target: Any, *words: object) -> Generator[Connection, None, None]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=target, args=(theirs, *words), daemon=True)
    process.start()
    try:
        yield ours
        ours.send("stop")
        process.join(30)
    finally:
        process.kill()


def _ask(connection: http.client.HTTPConnection, token: str, *, stream: bool) -> http.client.HTTPResponse:
    body = {**BODY, "stream": stream, "messages": [{"role": "user", "content": PROMPT}]}
    connection.request("POST", "/v1/messages", json.dumps(body), {"x-api-key": token})
    return connection.getresponse()


def _latency_ms(connection: http.client.HTTPConnection, token: str) -> float:
    began = time.perf_counter()
    assert len(_ask(connection, token, stream=False).read()) > 2000
    return (time.perf_counter() - began) * 1000


def _delays_ms(port: int, token: str) -> list[float]:
    """From a streamed event's departure at the provider to its arrival here."""
    connection, found = http.client.HTTPConnection("127.0.0.1", port, timeout=60), list[float]()
    response = _ask(connection, token, stream=True)
    while chunk := response.read1():
        now = time.monotonic_ns()
        found += [(now - int(sent)) / 1e6 for sent in _STAMP.findall(chunk)]
    connection.close()
    return found


def _many(port: int, token: str) -> list[float]:
    delays: list[list[float]] = []
    threads = [
        threading.Thread(target=lambda: delays.append(_delays_ms(port, token)), daemon=True)
        for _ in range(STREAMS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [len(found) for found in delays] == [EVENTS] * STREAMS, "a stream was cut"
    return [delay for found in delays for delay in found]


def measure() -> list[Figure]:
    with _started(_provide) as provider:
        port = provider.recv()
        with _started(_forward, port) as gateway:
            own, token = gateway.recv()
            return [*_requests(port, own, token), *_streams(port, own, token), *_crowd(gateway, port, own, token)]


def _requests(port: int, own: int, token: str) -> list[Figure]:
    bare, through = (http.client.HTTPConnection("127.0.0.1", one, timeout=60) for one in (port, own))
    pairs = [(_latency_ms(bare, token), _latency_ms(through, token)) for _ in range(REQUESTS)]
    direct, with_it = (statistics.median(column) for column in zip(*pairs, strict=True))
    note = f"median of {REQUESTS}, 60 kB sent: {with_it:.2f} ms against {direct:.2f} ms without it"
    ratio = Figure("  × the same request without it", with_it / direct, "")
    return [Figure("gateway: added to a request", with_it - direct, "ms", goal=5, note=note), ratio]


def _streams(port: int, own: int, token: str) -> list[Figure]:
    bare, through = _delays_ms(port, token), _delays_ms(own, token)
    direct, with_it = statistics.median(bare), statistics.median(through)
    note = f"median of {EVENTS} events: {with_it:.2f} ms against {direct:.2f} ms without it"
    return [Figure("gateway: added to a streamed event", with_it - direct, "ms", goal=2, note=note)]


def _crowd(gateway: Connection, port: int, own: int, token: str) -> list[Figure]:
    bare, through = statistics.median(_many(port, token)), statistics.median(_many(own, token))
    gateway.send("peak")
    peak, answered = gateway.recv()
    assert answered == REQUESTS + 1 + STREAMS, "an answer was not counted"
    note = f"peak of its process; an event takes {through:.1f} ms against {bare:.1f} ms without it"
    return [Figure(f"gateway: {STREAMS} streams at once", peak, "MB", goal=150, note=note)]
