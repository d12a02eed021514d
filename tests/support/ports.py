"""A port of loopback that is one test's alone."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Generator[int]:
    """Held, but not listened on: whoever connects is refused until a program listens, and the kernel gives it to
    nobody who asks for any port. One that is looked up and let go may be another process's when it is used."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as listeners set it
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])
