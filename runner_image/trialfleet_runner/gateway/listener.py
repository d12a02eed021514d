"""Accepts the agent's connections, one thread each, closed together, and limits the memory that requests take."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_CONNECTIONS = 128
_LONGEST_ADDRESS = 100  # sun_path holds 108 bytes


@contextmanager
def socket_address(path: Path) -> Generator[str, None, None]:
    """An address for `path` that fits into a unix socket's 108 bytes, however deep the folder is."""
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def unix_socket(path: Path) -> socket.socket:
    """A listening socket. Any user may connect; a request needs the token."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with socket_address(path) as address:
        listening.bind(address)
    path.chmod(0o666)
    listening.listen(MAX_CONNECTIONS)
    return listening


def loopback_socket() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=MAX_CONNECTIONS)


class Listener:
    """Calls `serve(connection)` in a thread for each connection; the connection is closed afterwards."""

    def __init__(self, listening: socket.socket, serve: Callable[[socket.socket], object]) -> None:
        self._listening, self._serve = listening, serve
        self._open: set[socket.socket] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._accept, name="gateway", daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with self._changed:
                if self._closed or len(self._open) >= MAX_CONNECTIONS:
                    connection.close()
                    continue
                self._open.add(connection)
            threading.Thread(target=self._run, args=(connection,), name="gateway-call", daemon=True).start()

    def _run(self, connection: socket.socket) -> None:
        try:
            if connection.family == socket.AF_INET:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._serve(connection)
        finally:
            connection.close()
            with self._changed:
                self._open.discard(connection)
                self._changed.notify_all()

    def close(self, wait_s: float) -> None:
        """Stop accepting, hang up on everyone, wait until every call has been accounted for."""
        with self._changed:
            self._closed = True
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(wait_s)
        with self._changed:
            self._changed.wait_for(lambda: not self._open, wait_s)


ROOM_BYTES = 64 * 2**20


class Room:
    """Requests wait for one another when together they would be too large; one alone always fits."""

    def __init__(self, limit: int = ROOM_BYTES) -> None:
        self._limit, self._taken = limit, 0
        self._changed = threading.Condition()

    @contextmanager
    def take(self, size: int) -> Generator[None, None, None]:
        with self._changed:
            self._changed.wait_for(lambda: self._taken == 0 or self._taken + size <= self._limit)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()
