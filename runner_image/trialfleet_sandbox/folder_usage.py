"""What the folders that a program may write take of the disk, also what the program hides from a scan."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LONG_PATH = 3500  # bytes: a system call takes 4,095, and a name has up to 255
_LIST = os.R_OK | os.X_OK
_LIST_MODE = stat.S_IRUSR | stat.S_IXUSR
_GONE = (FileNotFoundError, NotADirectoryError)  # the program removes and renames while this reads


@dataclass(frozen=True)
class FolderUsage:
    """Of everything below a folder: allocated bytes, inodes, and whether something there could not be read."""

    size_bytes: int
    inodes: int
    incomplete: bool = False


def measure_folder(folder: Path) -> FolderUsage:
    """Links are not followed, hard links count once. A folder whose mode keeps its owner out is opened for the
    scan and gets its mode back; one of another user makes the usage incomplete, as does any other error."""
    total = inodes = 0
    seen: set[int] = set()
    scan = _FolderScan(os.fsencode(folder))
    for info in scan.entries():
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            if info.st_ino in seen:
                continue
            seen.add(info.st_ino)
        total += info.st_blocks * 512
        inodes += 1
    return FolderUsage(total, inodes, scan.incomplete)


@dataclass(frozen=True)
class _Held:
    """A descriptor that is needed until what lies below its folder is read; `mode`: the folder gets it then."""

    fd: int
    mode: int | None = None

    def release(self) -> None:
        if self.mode is not None and _mode(self.fd) == self.mode | _LIST_MODE:
            _change_mode(self.fd, self.mode)
        os.close(self.fd)


@dataclass
class _FolderScan:
    folder: bytes
    incomplete: bool = False
    _todo: list[bytes | _Held] = field(default_factory=list[bytes | _Held])

    def entries(self) -> Iterator[os.stat_result]:
        """Of everything below the folder."""
        self._todo.append(self.folder)
        try:
            while self._todo:
                place = self._todo.pop()
                if isinstance(place, _Held):
                    place.release()
                    continue
                try:
                    yield from self._folder_entries(place)
                except _GONE:
                    continue
                except OSError:
                    self.incomplete = True
        finally:
            for held in reversed([place for place in self._todo if isinstance(place, _Held)]):
                held.release()

    def _folder_entries(self, place: bytes) -> Iterator[os.stat_result]:
        """Of one folder, whose own folders are added to what is to be read."""
        if len(place) > LONG_PATH or not os.access(place, _LIST, effective_ids=True):
            place = self._hold(os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW))
        with os.scandir(place) as entries:
            for entry in entries:
                try:
                    yield entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        self._todo.append(entry.path)
                except _GONE:
                    continue
                except OSError:
                    self.incomplete = True

    def _hold(self, fd: int) -> bytes:
        """A path by way of the descriptor of a folder, which lasts until what is added from now on is read. Where
        its mode keeps its owner out, the owner may list it until then."""
        self._todo.append(_Held(fd))
        path = b"/proc/self/fd/%d" % fd
        if not os.access(path, _LIST, effective_ids=True) and self._lies_within(fd):
            self._todo[-1] = _Held(fd, _mode(fd))
            _change_mode(fd, _mode(fd) | _LIST_MODE)
        return path

    def _lies_within(self, fd: int) -> bool:
        """Whether the program has put no link to elsewhere in the place of a folder above."""
        path = Path(f"/proc/self/fd/{fd}").readlink()
        return path.is_relative_to(os.path.realpath(os.fsdecode(self.folder)))


def _mode(fd: int) -> int:
    return stat.S_IMODE(os.stat(fd).st_mode)


def _change_mode(fd: int, mode: int) -> None:
    """Not by fchmod, which refuses a descriptor of O_PATH."""
    with contextlib.suppress(OSError):
        os.chmod(b"/proc/self/fd/%d" % fd, mode)  # noqa: PTH101 - untrusted names: bytes
