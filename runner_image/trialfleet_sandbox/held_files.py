"""What processes hold that no folder shows: files without a name, and memory of files in no process's account."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trialfleet_sandbox.processes import read_proc

_TMPFS = ("tmp", "dev/shm")  # in a mount namespace of a sandbox: memory, and the sandbox's alone
_DELETED = " (deleted)"
_INODE_BYTES = 1024  # of the kernel's memory for each file of a tmpfs, as the kernel itself estimates


@dataclass(frozen=True)
class HeldFiles:
    """Of a process tree: bytes and number of files on disk that have no name any more, and bytes of memory files
    (memfds, the tmpfs of the tree's own mount namespace)."""

    disk_bytes: int = 0
    disk_files: int = 0
    memory_bytes: int = 0


def count_held_files(pids: Iterable[int], devices: frozenset[int]) -> HeldFiles:
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
    for path in (*_deleted_descriptors(pid), *_deleted_mappings(pid)):
        with contextlib.suppress(OSError):
            info = os.stat(path)  # noqa: PTH116 - often called
            if stat.S_ISREG(info.st_mode) and info.st_nlink == 0:
                yield info


def _deleted_descriptors(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if os.readlink(entry.path).endswith(_DELETED):  # noqa: PTH115
                    yield entry.path


def _deleted_mappings(pid: int) -> Iterator[str]:
    """Links to the mapped files, which root alone may follow. One text lists them faster than their folder."""
    text = read_proc(f"/proc/{pid}/maps")
    if _DELETED.encode() not in text:
        return
    for line in text.splitlines():
        if line.endswith(_DELETED.encode()):
            start, _, end = line.partition(b" ")[0].partition(b"-")
            yield f"/proc/{pid}/map_files/{int(start, 16):x}-{int(end, 16):x}"


@cache
def _memfd_device() -> int:
    fd = os.memfd_create("device")
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def _tmpfs_sizes(pids: Iterable[int]) -> dict[int, int]:
    """Bytes in the tmpfs of the processes' mount namespaces other than ours, with their inodes, by device."""
    sizes: dict[int, int] = {}
    for pid, name in ((pid, name) for pid in _one_for_each_namespace(pids) for name in _TMPFS):
        with contextlib.suppress(OSError):
            inside, outside = Path(f"/proc/{pid}/root", name), Path("/", name)
            # The same as ours: a namespace that is still set up.
            if (device := inside.stat().st_dev) not in {outside.stat().st_dev, *sizes}:
                room = os.statvfs(inside)
                inodes = (room.f_files - room.f_ffree) * _INODE_BYTES
                sizes[device] = (room.f_blocks - room.f_bfree) * room.f_frsize + inodes
    return sizes


def _one_for_each_namespace(pids: Iterable[int]) -> Iterable[int]:
    """A process for each of their mount namespaces other than ours."""
    chosen = {_mount_namespace(pid): pid for pid in pids}
    chosen.pop(_mount_namespace("self"), None)
    return chosen.values()


def _mount_namespace(pid: int | str) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")  # noqa: PTH115
    except OSError:
        return None


def count_shared_bytes(pids: Iterable[int]) -> int:
    """The part of these processes' RSS that is memory of files or shared, each mapping counted by itself."""
    return sum(read_kib(read_proc(f"/proc/{pid}/status"), b"RssShmem:") for pid in pids)


def count_machine_shared_bytes() -> int:
    """Shared memory and memory files of all processes of this machine, apart from what is swapped."""
    return read_kib(read_proc("/proc/meminfo"), b"Shmem:")


def count_machine_private_bytes() -> int:
    """Memory of all processes of this machine that no file holds, each page once, apart from what is swapped."""
    return read_kib(read_proc("/proc/meminfo"), b"AnonPages:")


def read_kib(text: bytes, name: bytes) -> int:
    """Bytes of a line `name` of a file of /proc; 0 without such a line."""
    _, _, rest = text.partition(b"\n" + name)
    return int(rest.split(maxsplit=1)[0]) * 1024 if rest else 0
