"""Linux inotify: which entries of watched folders changed since the last reading."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from dataclasses import dataclass

# linux/inotify.h
_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_ONLYDIR, _ISDIR, _IGNORED, _Q_OVERFLOW = 0x01000000, 0x40000000, 0x8000, 0x4000
_CHANGES = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _ONLYDIR

_HEAD = struct.Struct("iIII")
_READ_BYTES = 2**16  # at a time; an event has at most 272
_MOST_EVENTS = 2**15  # of a reading; the kernel keeps 2**14, unless told otherwise
_USED_UP = (errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSYS)


class EventsUnavailable(Exception):
    """The machine has no instance or no watch left for us (fs.inotify.max_user_instances, max_user_watches)."""


@dataclass(frozen=True, slots=True)
class FolderEvent:
    """An entry of a watched folder changed in any way. `watch`: of the folder; None: events were lost, so that
    anything may have changed."""

    watch: int | None
    name: bytes = b""
    is_folder: bool = False


class FolderEvents:
    """One inotify instance. Reading a file is no event; neither is a write through a mapping of it, until it is
    closed."""

    def __init__(self) -> None:
        """Raises `EventsUnavailable`."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise EventsUnavailable(os.strerror(ctypes.get_errno()))

    def watch(self, folder: int) -> int | None:
        """Watch an open folder, and return the number that its events carry: the same for the same folder. None:
        it cannot be watched. Raises `EventsUnavailable`."""
        place = b"/proc/self/fd/%d" % folder
        watch: int = self._libc.inotify_add_watch(self._descriptor, place, _CHANGES)
        if watch >= 0:
            return watch
        if ctypes.get_errno() in _USED_UP:
            raise EventsUnavailable(os.strerror(ctypes.get_errno()))
        return None

    def read(self) -> list[FolderEvent]:
        """All events so far, oldest first, without those of a folder's own status; a watch that has ended is left
        out. Ends early if events were lost, or come as fast as they are read: then only this is returned."""
        found: list[FolderEvent] = []
        count = 0
        while data := self._read_some():
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size + length
                count += 1
                if mask & _Q_OVERFLOW or count > _MOST_EVENTS:
                    return [FolderEvent(None)]
                if not mask & _IGNORED and mask != _ATTRIB | _ISDIR:
                    name = data[at - length : at].rstrip(b"\0")
                    found.append(FolderEvent(watch, name, bool(mask & _ISDIR)))
        return found

    def _read_some(self) -> bytes:
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return b""

    def wait(self, seconds: float) -> bool:
        """Whether there is an event within `seconds`."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def close(self) -> None:
        os.close(self._descriptor)
