"""What processes hold that no folder shows: files without a name, and memory of files in no process's account."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

_TMPFS = ("tmp", "dev/shm")  # in a mount namespace of a sandbox: memory, and the sandbox's alone
_DELETED = " (deleted)"


@dataclass(frozen=True)
class HeldFiles:
    """Of a process tree: bytes and number of files on disk that have no name any more, and bytes of memory files
    (memfds, the tmpfs of the tree's own mount namespace)."""

    disk_bytes: int = 0
    disk_files: int = 0
    memory_bytes: int = 0


def held_files(pids: Iterable[int], devices: frozenset[int]) -> HeldFiles:
    """What these processes hold. `devices`: of the folders that they write. Not seen: files that only a mapping
    holds (except by root), files that are on their way in a socket, processes that hide from this user."""
    disk_bytes = disk_files = memory = 0
    seen: set[tuple[int, int]] = set()
    for pid in pids:
        memory += _own_tmpfs_bytes(pid, seen)
        for info in _nameless_files(pid):
            key = (info.st_dev, info.st_ino)
            if key in seen:
                continue
            seen.add(key)
            if info.st_dev == _memfd_device():
                memory += info.st_blocks * 512
            elif info.st_dev in devices:
                disk_bytes += info.st_blocks * 512
                disk_files += 1
    return HeldFiles(disk_bytes, disk_files, memory)


def _nameless_files(pid: int) -> Iterator[os.stat_result]:
    for folder in ("fd", "map_files"):
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/{folder}") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if not os.readlink(entry.path).endswith(_DELETED):  # noqa: PTH115 - often called
                        continue
                    info = entry.stat()
                    if stat.S_ISREG(info.st_mode) and info.st_nlink == 0:
                        yield info


@cache
def _memfd_device() -> int:
    fd = os.memfd_create("device")
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def _own_tmpfs_bytes(pid: int, seen: set[tuple[int, int]]) -> int:
    """Memory in the tmpfs of the process's mount namespace; 0 if it is ours, or one that was `seen`."""
    try:
        space = os.stat(f"/proc/{pid}/ns/mnt")  # noqa: PTH116
        if space.st_ino == os.stat("/proc/self/ns/mnt").st_ino or (space.st_dev, space.st_ino) in seen:  # noqa: PTH116
            return 0
        folders = [f"/proc/{pid}/root/{name}" for name in _TMPFS]
        # While a sandbox is set up, its namespace still has the host's folders.
        if any(os.stat(path).st_dev == os.stat(f"/{name}").st_dev for path, name in zip(folders, _TMPFS, strict=True)):  # noqa: PTH116
            return 0
        sizes = [os.statvfs(path) for path in folders]
    except OSError:
        return 0
    seen.add((space.st_dev, space.st_ino))
    return sum((size.f_blocks - size.f_bfree) * size.f_frsize for size in sizes)


def shared_bytes(pids: Iterable[int]) -> int:
    """The part of these processes' RSS that is memory of files or shared, each mapping counted by itself."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123
            total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"RssShmem:"))
    return total
