"""How much of an agent's requests the runner holds in memory at once."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

ROOM_BYTES = 64 * 2**20


class Room:
    """Requests wait for one another when together they would be too large; one alone always fits."""

    def __init__(self, limit: int = ROOM_BYTES) -> None:
        self._limit, self._taken = limit, 0
        self._changed = threading.Condition()

    @contextmanager
    def take(self, size: int) -> Generator[None, None, None]:
        """Hold `size` bytes of it."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken == 0 or self._taken + size <= self._limit)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()
