"""Connections to the provider."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

from trialfleet_runner.gateway.upstream import Upstream


class Line:
    """The live connections to the provider, so that closing the gateway stops the spending at once."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self._live: set[http.client.HTTPConnection] = set()
        self._lock = threading.Lock()
        self.closed = False

    @contextmanager
    def open(
        self, method: str, target: str, headers: dict[str, str], data: bytes | None, idle_s: float
    ) -> Generator[http.client.HTTPResponse, None, None]:
        """The response's head. Raises `OSError` or `HTTPException` when there is none."""
        connection = self.upstream.connection()
        with self._lock:
            if self.closed:
                raise ConnectionAbortedError("the gateway is closed")
            self._live.add(connection)
        try:
            connection.connect()
            if self.closed:
                raise ConnectionAbortedError("the gateway is closed")
            connection.sock.settimeout(idle_s)
            connection.request(method, self.upstream.prefix + target, data, self.upstream.headers(headers))
            yield connection.getresponse()
        finally:
            with self._lock:
                self._live.discard(connection)
            connection.close()

    def close(self) -> None:
        with self._lock:
            self.closed = True
            for connection in self._live:
                with suppress(OSError, AttributeError):  # AttributeError: it has no socket yet
                    connection.sock.shutdown(2)
