"""A store's front that does not answer, or refuses: for runners that have to say so."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FaultyStore:
    """`/stall/…` never answers, `/refuse/…` answers 403. `asked` is set by the first request."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.asked = threading.Event()
        self.over = threading.Event()

    def url(self, fault: str, name: str) -> str:
        return f"{self.address}/{fault}/{name}"


@contextmanager
def faulty_store() -> Generator[FaultyStore]:
    """Serves on a free port of loopback until the end of the block."""

    class Front(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_PUT()

        def do_PUT(self) -> None:
            store.asked.set()
            if self.path.startswith("/stall/"):
                store.over.wait(120)
                self.close_connection = True
                return
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def handle_expect_100(self) -> bool:
            self.send_response_only(100)
            self.end_headers()
            return True

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Front) as server:
        store = FaultyStore(f"http://127.0.0.1:{server.server_address[1]}")
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield store
        finally:
            store.over.set()
            server.shutdown()
