"""A memory cgroup for one sandboxed program, below the cgroup of this process, where one can be made.

The kernel then counts what no sum of samples can: memory files on their way in a socket, and its own memory. With
version 1 this needs the right to write the cgroup of this process, which root has. With version 2 it needs a
cgroup that is delegated to this user. Its processes move into a leaf first, because a cgroup with processes of its
own has no groups with limits below it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from trialfleet_sandbox import processes

PREFIX = "trialfleet-memory-"
LEAF = "trialfleet-runners"
TRIES = 5
REMOVAL_S = 1.0  # a process that was collected just now may still be counted
LIMITS = {
    1: (("memory.limit_in_bytes", "{limit}"), ("memory.memsw.limit_in_bytes", "{limit}")),
    2: (("memory.max", "{limit}"), ("memory.swap.max", "0"), ("memory.oom.group", "1")),
}
FULL_SHARE = 0.95  # of the limit: the page that did not fit is not counted


class NoMemoryGroup(Exception):
    """Why no group can be made here. `can_delegate`: whether systemd could give this process a cgroup in which it
    can."""

    def __init__(self, message: str, *, can_delegate: bool = False) -> None:
        self.can_delegate = can_delegate and Path("/run/systemd/system").is_dir()
        super().__init__(message)


@dataclass(frozen=True)
class GroupParent:
    """The folder of the cgroup below which groups are made, and the version of its hierarchy."""

    folder: Path
    version: Literal[1, 2]


@dataclass(frozen=True)
class MemoryGroup:
    """One program's group, which may take `limit` bytes. `version`: of cgroups."""

    folder: Path
    version: Literal[1, 2]
    limit: int

    def read_kill_reason(self) -> Literal["limit", "machine"] | None:
        """For what the kernel has killed in this group: its limit, or memory that a group above or the machine
        lacks. None: it has not."""
        counters = read_counters(self.folder / ("memory.oom_control" if self.version == 1 else "memory.events"))
        if not counters.get("oom_kill"):
            return None
        return "limit" if counters.get("oom") or self._has_been_full() else "machine"

    def _has_been_full(self) -> bool:
        """Version 1 does not say whether the limit was the cause: where the group has been full, also of what the
        kernel could reclaim, that counts as the limit."""
        most = (_read(self.folder / f"memory.{name}max_usage_in_bytes") or "0" for name in ("", "memsw."))
        return self.version == 1 and max(map(int, most)) >= FULL_SHARE * self.limit

    def holds(self, pids: Iterable[int]) -> bool:
        """Whether the kernel limits all of these processes here; a program of our own user may leave, or raise the
        limit."""
        limit = _read(self.folder / LIMITS[self.version][0][0]).strip()
        if not limit.isdigit() or int(limit) > self.limit:
            return False
        members = set(map(int, _read(self.folder / "cgroup.procs").split()))
        outside = map(processes.read, set(pids) - members)  # or ended, which has no memory
        return not any(process.rss_bytes for process in outside if process is not None)


def read_counters(path: Path) -> dict[str, int]:
    """Of a file with a name and a number in each line; empty where there is none."""
    pairs = (line.split() for line in _read(path).splitlines())
    return {name: int(number) for name, number in pairs}


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="ascii")
    return ""


# --- where ------------------------------------------------------------------------------------------


def find_own_cgroup(groups: str, mounts: str) -> GroupParent:
    """The cgroup that limits this process's memory, by the texts of /proc/self/cgroup and mountinfo. Version 1 is
    used where it has the memory controller. Raises `NoMemoryGroup`.

    >>> line = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"
    >>> find_own_cgroup("4:memory:/user/a\\n0::/\\n", line).folder.as_posix()
    '/sys/fs/cgroup/memory/user/a'
    """
    paths = {version: path for line in groups.splitlines() for version, path in [_own_path(line)] if version}
    for version, root, place in sorted(_hierarchies(mounts)):
        with suppress(KeyError, ValueError):
            return GroupParent(place / PurePosixPath(paths[version]).relative_to(root), version)
    raise NoMemoryGroup("no cgroup of memory is mounted here")


def _own_path(line: str) -> tuple[Literal[1, 2] | None, str]:
    number, controllers, path = line.split(":", 2)
    version: Literal[1, 2] | None = 1 if "memory" in controllers.split(",") else 2 if number == "0" else None
    return version, path


def _hierarchies(mounts: str) -> Iterator[tuple[Literal[1, 2], str, Path]]:
    """Version, root and place of each mounted hierarchy that may count memory."""
    for line in mounts.splitlines():
        place, _, of_kind = line.partition(" - ")
        root, folder = place.split()[3:5]
        kind, _, options = of_kind.split(maxsplit=2)
        if kind == "cgroup" and "memory" in options.split(","):
            yield 1, root, Path(folder)
        elif kind == "cgroup2":
            yield 2, root, Path(folder)


def find_parent() -> GroupParent:
    """Where groups can be made. Raises `NoMemoryGroup`, and `OSError` where a file of it is refused."""
    own = find_own_cgroup(_read(Path("/proc/self/cgroup")), _read(Path("/proc/self/mountinfo")))
    if own.version == 1:
        return own
    in_leaf = own.folder.name == LEAF  # of an earlier call, which has checked what is above
    folder = own.folder.parent if in_leaf else own.folder
    if "memory" not in _read(folder / "cgroup.controllers").split():
        raise NoMemoryGroup("the cgroup of this process lacks the memory controller", can_delegate=True)
    if not in_leaf and not is_delegated(folder):
        raise NoMemoryGroup("the cgroup of this process is not delegated to this user", can_delegate=True)
    _enable_memory(folder)
    return GroupParent(folder, 2)


def is_delegated(folder: Path) -> bool:
    """Whether a cgroup of version 2 is left to this user: by the mark of systemd's system manager, by what its
    user manager notes of `systemd-run -p Delegate=yes`, by an owner that the cgroup above does not have, or as
    the root, which alone has no type."""
    user = os.geteuid()
    for name in ("user.delegate", "trusted.delegate"):
        with suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    unit = _read(Path(f"/run/user/{user}/systemd/transient", folder.name)).splitlines()
    if any(line.startswith("Delegate") and not line.endswith(("=", "=no")) for line in unit):
        return True
    if folder.stat().st_uid == user != folder.parent.stat().st_uid:
        return True
    return user == 0 and not (folder / "cgroup.type").exists()


def _enable_memory(folder: Path) -> None:
    """Let groups below `folder` have limits. Its processes, which may be starting others, move into a leaf."""
    if "memory" in _read(folder / "cgroup.subtree_control").split():
        return
    for attempt in range(TRIES):
        try:
            (folder / "cgroup.subtree_control").write_text("+memory")
        except OSError as error:
            if error.errno != errno.EBUSY or attempt + 1 == TRIES:
                raise
            _move_processes(folder, folder / LEAF)


def _move_processes(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for pid in _read(source / "cgroup.procs").split():
        with suppress(ProcessLookupError):
            (target / "cgroup.procs").write_text(pid)


# --- the life of a group ----------------------------------------------------------------------------


@contextmanager
def limited_group(limit: int | None) -> Generator[MemoryGroup | None]:
    """A group of `limit` bytes without swap, removed at the end, when none of its processes lives; None without
    a limit, or where none can be made."""
    with ExitStack() as stack:
        group = None
        if limit is not None:
            with suppress(NoMemoryGroup):
                group = stack.enter_context(_owned_group(limit))
        yield group


@contextmanager
def _owned_group(limit: int) -> Generator[MemoryGroup]:
    """Its lock says that its maker lives."""
    try:
        group, lock = _create(find_parent(), limit)
    except OSError as error:
        raise NoMemoryGroup(f"{error.filename}: {error.strerror}") from error
    try:
        yield group
    finally:
        _remove(group.folder, REMOVAL_S)
        os.close(lock)


def probe_group() -> Literal[1, 2]:
    """The version of cgroups that can be made here. Makes one and removes it. Raises `NoMemoryGroup`."""
    with _owned_group(2**30) as group:
        return group.version


def _create(parent: GroupParent, limit: int) -> tuple[MemoryGroup, int]:
    """A locked group and the descriptor of its lock. `sweep_groups` may remove one that is not locked yet."""
    for _ in range(TRIES):
        folder = parent.folder / f"{PREFIX}{os.urandom(6).hex()}"
        folder.mkdir()
        lock = _hold(folder)
        if lock is None:
            continue
        try:
            _set_limits(folder, parent.version, limit)
        except OSError as error:
            _remove(folder, 0)
            os.close(lock)
            if error.errno != errno.ENOENT:
                raise
        else:
            return MemoryGroup(folder, parent.version, limit), lock
    raise NoMemoryGroup("its folder is removed again and again")


def _set_limits(folder: Path, version: Literal[1, 2], limit: int) -> None:
    for number, (name, value) in enumerate(LIMITS[version]):
        if number == 0 or (folder / name).exists():
            (folder / name).write_text(value.format(limit=limit))


def _hold(folder: Path) -> int | None:
    """A descriptor that holds the lock of a group; None: another process has it, or has removed the group."""
    with suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        os.close(descriptor)
    return None


def _remove(folder: Path, patience_s: float) -> bool:
    """The kernel refuses as long as a process is in it."""
    until = time.monotonic() + patience_s
    while True:
        try:
            folder.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() >= until:
                return False
            time.sleep(0.01)
        else:
            return True


def sweep_groups() -> int:
    """Remove groups of dead makers, as their locks prove, where this process would make its own. Returns how
    many."""
    removed = 0
    with suppress(NoMemoryGroup, OSError):
        for folder in find_parent().folder.glob(f"{PREFIX}*"):
            lock = _hold(folder)
            if lock is not None:
                removed += _remove(folder, 0)
                os.close(lock)
    return removed
