"""What processes hold that no folder shows: files without a name, and memory of files in no process's account."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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
    pids = tuple(pids)
    for info in (info for pid in pids for info in _nameless_files(pid)):
        key = (info.st_dev, info.st_ino)
        if key in seen:
            continue
        seen.add(key)
        if info.st_dev == _memfd_device():
            memory += info.st_blocks * 512
        elif info.st_dev in devices:
            disk_bytes += info.st_blocks * 512
            disk_files += 1
    return HeldFiles(disk_bytes, disk_files, memory + sum(_tmpfs_sizes(pids).values()))


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


def _tmpfs_sizes(pids: tuple[int, ...]) -> dict[int, int]:
    """Bytes in the tmpfs of the processes' mount namespaces other than ours, by device."""
    sizes: dict[int, int] = {}
    for pid, name in ((pid, name) for pid in pids for name in _TMPFS):
        with contextlib.suppress(OSError):
            inside, outside = Path(f"/proc/{pid}/root", name), Path("/", name)
            # The same as ours: no namespace of its own, or one that is still set up.
            if (device := inside.stat().st_dev) not in {outside.stat().st_dev, *sizes}:
                room = os.statvfs(inside)
                sizes[device] = (room.f_blocks - room.f_bfree) * room.f_frsize
    return sizes


def shared_bytes(pids: Iterable[int]) -> int:
    """The part of these processes' RSS that is memory of files or shared, each mapping counted by itself."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123
            total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"RssShmem:"))
    return total
