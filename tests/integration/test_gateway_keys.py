"""A provider, or a gateway in front of it, that repeats the key in a stream, a body, an error or a header."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_requests import CHAT, FULL, GEMINI, MESSAGES, RESPONSES
from trialfleet_runner.gateway import Gateway, Upstream

KEY = "sk-ant-the-real-key-0123"
STREAM = GEMINI.replace(":generate", ":streamGenerate")


class _Echo(BaseHTTPRequestHandler):
    """Repeats the key as bytes one after the other, as a stream or whole, with 200 or 400."""

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._echo(200, "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        streamed = body.get("stream") is True or "streamGenerate" in self.path
        kind = "text/event-stream" if streamed else "application/json"
        self._echo(400 if "fail" in self.path else 200, kind)

    def _echo(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("x-request-id", f"for {KEY}")
        self.end_headers()
        start = b"data: " if kind == "text/event-stream" else b""
        whole = {
            "type": "message",
            "content": [],
            "choices": [{"message": {"content": "x"}}],
            "output": [],
            "candidates": [{"finishReason": "STOP"}],
        }
        answer = {"type": "ping"} if start else whole  # an answer that is none does not pass
        for byte in start + json.dumps({**answer, "echo": f"<{KEY}>"}).encode() + b"\n\n":
            self.wfile.write(bytes([byte]))
            self.wfile.flush()


@contextmanager
def echoing(tmp_path: Path, folder: str) -> Generator[Gateway]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/{folder}"
        with Gateway(Upstream(url, KEY), record=tmp_path / "record") as gateway:
            yield gateway
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("folder", ["ok", "fail"])
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("path", [MESSAGES, CHAT, RESPONSES, GEMINI, "/v1/messages/count_tokens", "/v1/models"])
def test_a_repeated_key_is_redacted_everywhere(tmp_path: Path, path: str, streamed: bool, folder: str) -> None:
    body = FULL.get(path, FULL[MESSAGES])
    sent = body if path == GEMINI else {**body, "stream": streamed}
    at = STREAM + "?alt=sse" if path == GEMINI and streamed else path
    with echoing(tmp_path, folder) as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        method = "GET" if path == "/v1/models" else "POST"
        connection.request(method, at, json.dumps(sent), {"x-api-key": gateway.token})
        answer = connection.getresponse()
        try:
            text = answer.read()
        except http.client.IncompleteRead as cut:  # such a stream has no end
            text = cut.partial
        connection.close()
    assert b"<[redacted]>" in text
    assert answer.getheader("x-request-id") == "for [redacted]"
    for file in (tmp_path / "record").iterdir():
        assert KEY not in file.read_text()
