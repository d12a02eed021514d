"""File descriptors that are closed exactly once: closing one twice closes another thread's."""

from __future__ import annotations

import os
from types import TracebackType


class Descriptors:
    """Owns descriptors until they are closed here, at the latest at the end of the `with` block."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def keep(self, *fds: int) -> int:
        """Take these over; returns the first."""
        self._open.update(fds)
        return fds[0]

    def pipe(self) -> tuple[int, int]:
        """A new pipe: read end, write end."""
        read_end, write_end = os.pipe()
        self.keep(read_end, write_end)
        return read_end, write_end

    def close(self, *fds: int) -> None:
        """Close these now."""
        for fd in fds:
            self._open.discard(fd)
            os.close(fd)

    def __enter__(self) -> Descriptors:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(*self._open.copy())
