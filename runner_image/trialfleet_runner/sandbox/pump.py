"""A program's output on its way into a file that cannot fill the disk."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import BinaryIO

HEAD_BYTES = 64 * 2**20
TAIL_BYTES = 2**20


class CappedFile:
    """Appends up to `head` bytes as they arrive; of what follows it keeps the last `tail` bytes for `close`.

    The tail matters: the last line of a stream of JSON events is often the one that holds the totals.
    """

    def __init__(self, path: Path, *, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("ab", buffering=0)
        self._room = head
        self._head = head
        self._tail_bytes = tail
        self._tail = bytearray()
        self._dropped = 0

    def write(self, data: bytes) -> None:
        """Append what there is room for."""
        fits, rest = data[: self._room], data[self._room :]
        if fits:
            written = self._append(fits)
            self._room -= len(fits)
            if written < len(fits):  # a full disk is judged by whoever knows the limits; the output goes on
                self._room, rest = 0, fits[written:] + rest
        if rest:
            self._tail += rest
            over = len(self._tail) - self._tail_bytes
            if over > 0:
                del self._tail[:over]
                self._dropped += over

    def close(self) -> None:
        """Append the note and the tail when something was cut."""
        if self._dropped:
            note = f"\n[trialfleet: {self._dropped} bytes left out after the first {self._head}]\n"
            self._append(note.encode())
        if self._tail:
            self._append(bytes(self._tail))
        self._file.close()

    def _append(self, data: bytes) -> int:
        """How many bytes found room."""
        try:
            return self._file.write(data)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            return 0
