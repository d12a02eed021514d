"""Sandboxes on the host's own paths, for machines without bubblewrap: as another user (for root), or the same."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from trialfleet_sandbox.protocol import Exit, Job, SandboxCapabilities, SandboxError
from trialfleet_sandbox.supervised import run_on_the_host

OTHER_UID, SAME_USER = SandboxCapabilities(other_uid=True), SandboxCapabilities()
_FIRST, _SLOTS = 0x40000000, 64  # far above every account of a directory service; 64 jobs at once per process
_SMALL_FIRST, _SMALL_COUNT = 20000, 40000  # inside a container that maps only 65,536 users
_slots_lock = threading.Lock()
_slots_taken: set[int] = set()


def uid_for(pid: int, slot: int, mapped: int) -> int:
    """A user id that no other live job has: one per process and slot where the user namespace maps enough of
    them (`mapped`), else spread over 40,000.

    >>> uid_for(1, 2, 2**32) == 0x40000000 + 66, uid_for(1, 2, 65536)
    (True, 20066)
    """
    number = pid * _SLOTS + slot
    return _FIRST + number if mapped > _FIRST + 2**28 else _SMALL_FIRST + number % _SMALL_COUNT


def mapped_users(uid_map: str) -> int:
    """How many user ids exist here, from 0 on, by the text of /proc/self/uid_map."""
    ranges = [tuple(map(int, line.split())) for line in uid_map.splitlines()]
    return max((first + count for first, _, count in ranges), default=0)


@contextlib.contextmanager
def _slot() -> Generator[int]:
    with _slots_lock:
        slot = next((n for n in range(_SLOTS) if n not in _slots_taken), None)
        if slot is None:
            raise SandboxError(f"more than {_SLOTS} jobs at once in one process")
        _slots_taken.add(slot)
    try:
        yield slot
    finally:
        with _slots_lock:
            _slots_taken.discard(slot)


def give(folder: Path, uid: int) -> None:
    """Make `uid` the owner of `folder` and everything below, and deny access to others. Links are changed
    themselves, never followed."""
    _own(folder, uid, 0o700)


def give_back(folder: Path) -> None:
    """Make this user the owner of a folder that a job could write, and let everybody enter it."""
    _own(folder, os.geteuid(), 0o755)


def _own(folder: Path, uid: int, mode: int) -> None:
    os.lchown(folder, uid, uid)
    if folder.is_dir() and not folder.is_symlink():
        folder.chmod(mode)
        for parent, folders, files, fd in os.fwalk(folder):
            del parent
            for name in (*folders, *files):
                os.chown(name, uid, uid, dir_fd=fd, follow_symlinks=False)


@dataclass(frozen=True)
class AnotherUid:
    """The program runs as a separate user that owns the writable mounts, without groups and without a way to gain
    privileges."""

    name: str = "uid"
    capabilities: SandboxCapabilities = OTHER_UID
    warnings: tuple[str, ...] = (
        "isolated by user id only: the network is not cut, other processes are visible, and so is every file "
        "that others may read. Install bubblewrap",
    )

    def run(self, job: Job) -> Exit:
        """See `Sandbox.run`. The writable mounts belong to the job's user afterwards."""
        with _slot() as slot:
            users = mapped_users(Path("/proc/self/uid_map").read_text(encoding="utf-8"))
            uid = uid_for(os.getpid(), slot, users)
            for mount in job.mounts:
                if mount.writable:
                    give(mount.source, uid)
            if job.gateway is not None:
                os.chown(job.gateway, uid, uid)
            return run_on_the_host(job, uid=uid)


@dataclass(frozen=True)
class Subreaper:
    """No isolation, but no process survives: the program runs as the same user, below a supervisor that inherits
    its orphans."""

    name: str = "subreaper"
    capabilities: SandboxCapabilities = SAME_USER
    warnings: tuple[str, ...] = (
        "no isolation: the program runs as the same user, sees the whole file system (store, caches and task "
        "files included), other processes and the network; read-only mounts are writable; it can kill its "
        "supervisor. Install bubblewrap",
    )

    def run(self, job: Job) -> Exit:
        return run_on_the_host(job, uid=None)
