"""A front of the real S3 server that does what servers, proxies and networks do now and then."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_HOPS = {"connection", "expect", "transfer-encoding", "content-length", "keep-alive"}
_CONFLICT = b"<Error><Code>ConditionalRequestConflict</Code></Error>"
_SKEWED = b"<Error><Code>RequestTimeTooSkewed</Code></Error>"


@dataclass
class Front:
    """`stored`: the first PUT of a key that ends so is carried out, and answered 500. `conflict`: it is answered
    409 and not carried out. `skew_s`: requests whose date is further from now than this are refused. `seen`: what
    was done, and 412s at later tries; `skew`: the largest one, in seconds;
    `skew_of_grants`: of presigned requests, whose date is when they were signed."""

    upstream: str
    stored: tuple[str, ...] = ()
    conflict: tuple[str, ...] = ()
    skew_s: float = 900
    address: str = ""
    skew: float = 0
    skew_of_grants: float = 0
    seen: Counter[str] = field(default_factory=Counter[str])
    _tries: Counter[str] = field(default_factory=Counter[str])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def first(self, path: str) -> bool:
        with self._lock:
            self._tries[path] += 1
            return self._tries[path] == 1

    def count(self, what: str) -> None:
        with self._lock:
            self.seen[what] += 1

    def too_skewed(self, date: str, *, presigned: bool) -> bool:
        at = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        with self._lock:
            self.skew = max(self.skew, at - time.time(), key=abs)
            if presigned:
                self.skew_of_grants = max(self.skew_of_grants, at - time.time(), key=abs)
        return abs(at - time.time()) > self.skew_s


@contextmanager
def front(upstream: str, *, stored: tuple[str, ...] = (), conflict: tuple[str, ...] = ()) -> Generator[Front]:
    """Serves on a free port of loopback until the end of the block."""
    made = Front(upstream, stored, conflict)

    class Here(Handler):
        front = made

    with ThreadingHTTPServer(("127.0.0.1", 0), Here) as server:
        server.daemon_threads = True
        made.address = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield made
        finally:
            server.shutdown()


class Handler(BaseHTTPRequestHandler):
    """Every method comes to `do_GET`, every answer goes through `answer`."""

    front: Front
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        signed = parse_qs(query).get("X-Amz-Date", [""])[0]
        date = self.headers.get("X-Amz-Date") or signed
        if date and self.front.too_skewed(date, presigned=bool(signed)):
            self.front.count("skewed")
            return self.answer(403, _SKEWED)
        if self.command != "PUT":
            return self.answer(*self._forwarded(body))
        first = self.front.first(path)
        if first and path.endswith(self.front.conflict):
            self.front.count("conflict")
            return self.answer(409, _CONFLICT)
        status, said, headers = self._forwarded(body)
        if first and path.endswith(self.front.stored) and status == 200:
            self.front.count("stored")
            return self.answer(500, b"")
        if not first and status == 412:
            self.front.count("412 on retry")
        return self.answer(status, said, headers)

    def do_PUT(self) -> None:
        self.do_GET()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def _forwarded(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        """The Host header stays: it is signed."""
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOPS}
        if body or self.command in ("PUT", "POST"):
            headers["Content-Length"] = str(len(body))
        try:
            with closing(http.client.HTTPConnection(urlsplit(self.front.upstream).netloc, timeout=60)) as upstream:
                upstream.request(self.command, self.path, body or None, headers)
                answer = upstream.getresponse()
                kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOPS}
                if self.command == "HEAD":
                    kept["Content-Length"] = answer.getheader("Content-Length") or "0"
                return answer.status, answer.read(), kept
        except (OSError, http.client.HTTPException):
            return 502, b"", {}

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        headers = headers or {}
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers and status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        del format, args
