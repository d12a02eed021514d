"""When a sandbox ends a program: for its time, its memory, its disk, or because it was asked to."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from trialfleet_sandbox.folder_usage import measure_folder
from trialfleet_sandbox.held_files import count_held_files
from trialfleet_sandbox.memory_watch import SCAN_S, SCAN_SHARE, MemoryWatch
from trialfleet_sandbox.processes import Process, descendants, read
from trialfleet_sandbox.protocol import Job, MachineMemoryLow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trialfleet_sandbox.memory_group import MemoryGroup

Cause = Literal["timeout", "memory", "disk", "stopped"]

SAMPLE_S = 0.25


UNLIMITED_BYTES = 2**62
UNCOUNTED_INODES = 2**62  # free ones of a file system that does not count them


def free_space(folder: Path) -> tuple[int, int]:
    """Free bytes and inodes of the file system of `folder`, or of where it was: a program may remove it."""
    while not folder.exists():
        folder = folder.parent
    info = os.statvfs(folder)
    return info.f_bavail * info.f_frsize, info.f_favail if info.f_files else UNCOUNTED_INODES


def free_bytes(folder: Path) -> int:
    """Free bytes, as of `free_space`."""
    return free_space(folder)[0]


@dataclass
class DiskWatch:
    """Growth of some folders in bytes and inodes, with the files that `tree` holds open and that have no name any
    more. Scans seldom, and at once if what is free on the file system drops fast."""

    folders: tuple[Path, ...]
    limit: int
    clock: Callable[[], float] = time.monotonic
    inodes: int = UNCOUNTED_INODES
    tree: Callable[[], Iterable[int]] = tuple
    _devices: frozenset[int] = field(init=False)
    _base: tuple[int, int] = field(init=False)
    _grown: tuple[int, int] = field(init=False, default=(0, 0))
    _free: tuple[int, int] = field(init=False)
    _next: float = field(init=False)

    def __post_init__(self) -> None:
        self._devices = frozenset(folder.stat().st_dev for folder in self.folders)
        self._base = self._measure()

    def _measure(self) -> tuple[int, int]:
        began = self.clock()
        usages = [measure_folder(folder) for folder in self.folders]
        held = count_held_files(self.tree(), self._devices)
        self._free = self._free_now()
        self._next = self.clock() + max(SCAN_S, (self.clock() - began) / SCAN_SHARE)
        size, count = sum(usage.size_bytes for usage in usages), sum(usage.inodes for usage in usages)
        return size + held.disk_bytes, count + held.disk_files

    def _free_now(self) -> tuple[int, int]:
        spaces = [free_space(folder) for folder in self.folders] or [(0, 0)]
        return min(size for size, _ in spaces), min(count for _, count in spaces)

    def exceeded(self) -> bool:
        """Whether the growth since the start, measured now, is beyond a limit."""
        now = self._measure()
        self._grown = now[0] - self._base[0], now[1] - self._base[1]
        return self._is_over(self._grown)

    def over(self) -> bool:
        """Whether a limit is exceeded; mostly decided without a scan."""
        pairs = zip(self._grown, self._free, self._free_now(), strict=True)
        size, count = (grown + before - now for grown, before, now in pairs)
        due = self.clock() >= self._next or self._is_over((size, count))
        return due and self.exceeded()

    def _is_over(self, grown: tuple[int, int]) -> bool:
        return grown[0] > self.limit or grown[1] > self.inodes


@dataclass(frozen=True)
class ProcessTreeUsage:
    """Of a process tree at one moment. `memory_bytes`: as of `MemoryWatch`, or the sum of RSS without a limit.
    `core_s`: of living processes and of the children that they have waited for."""

    memory_bytes: int
    core_s: float


def usage(root: Process | None, tree: Iterable[Process]) -> ProcessTreeUsage:
    """Sum of the tree below `root`; of `root` itself only the children that it has waited for."""
    rss, core = 0, root.waited_core_s if root else 0.0
    for process in tree:
        rss += process.rss_bytes
        core += process.core_s + process.waited_core_s
    return ProcessTreeUsage(rss, core)


class LimitWatch:
    """Enforces a job's limits. `cause` is called often, and checks each limit no more often than needed. `group`:
    the cgroup that limits the program's memory, if there is one."""

    def __init__(
        self, job: Job, group: MemoryGroup | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._job, self._clock, self._group = job, clock, group
        self.tree: tuple[Process, ...] = ()
        writable = tuple(m.source for m in job.mounts if m.writable)
        self._disk = self._watch_disk(writable)
        self._memory = None if job.memory_bytes is None else MemoryWatch(job.memory_bytes, clock, group)
        self._sampled = float("-inf")
        self.started = clock()
        self.core_s = 0.0
        self._cores: list[tuple[float, float]] = []  # when, core seconds until then
        self._extra = self._worked = self._seen_s = 0.0
        self.peak_bytes = 0

    def _watch_disk(self, folders: tuple[Path, ...]) -> DiskWatch | None:
        job = self._job
        if job.disk_bytes is None and job.inodes is None:
            return None
        size = UNLIMITED_BYTES if job.disk_bytes is None else job.disk_bytes
        count = UNCOUNTED_INODES if job.inodes is None else job.inodes
        return DiskWatch(folders, size, self._clock, count, lambda: self._pids)

    @property
    def _pids(self) -> tuple[int, ...]:
        return tuple(process.thread for process in self.tree)

    def sample(self, root: int) -> ProcessTreeUsage:
        self.tree = tuple(descendants(root))
        now = usage(read(root), self.tree)
        self.core_s = max(self.core_s, now.core_s)
        self._cores.append((self._clock(), self.core_s))
        if self._memory is not None:
            now = replace(now, memory_bytes=self._memory.measure(self.tree, now.memory_bytes))
        self.peak_bytes = max(self.peak_bytes, now.memory_bytes)
        self._sampled = self._clock()
        return now

    def cause(self, root: int | None) -> Cause | None:
        """Why the program must end now; None: it may continue."""
        job = self._job
        if job.stop.is_set():
            return "stopped"
        if self._clock() - self.started - self._extra_s() > job.timeout_s:
            return "timeout"
        if self._clock() - self._sampled < SAMPLE_S:
            return None
        if root is not None:
            used = self.sample(root).memory_bytes
            if job.memory_bytes is not None and (used > job.memory_bytes or self._kill_reason() == "limit"):
                return "memory"
        return "disk" if self._disk is not None and self._disk.over() else None

    def _kill_reason(self) -> Literal["limit", "machine"] | None:
        return None if self._group is None else self._group.read_kill_reason()

    def _extra_s(self) -> float:
        """The job's extra time, without the core seconds that its tree used while that grew: a program that works
        does not wait. Not seen here: the tree of another container."""
        extra, now = self._job.extra_time_s(), self._clock()
        since = now - max(0.0, extra - self._extra)
        if since < now:
            before = bisect_right(self._cores, since, key=lambda sample: sample[0])
            then = self._cores[before - 1][1] if before else 0.0
            self._worked += self.core_s - min(then, self._seen_s)  # samples come later than this is called
        self._extra, self._seen_s = extra, self.core_s
        return max(0.0, extra - self._worked)

    def afterwards(self, *, killed_unasked: bool) -> Cause | None:
        """Which limit a program that ended by itself had reached: the disk limit between two scans, or the memory
        limit, for which the kernel killed (as the cgroup says; without one a SIGKILL that was not sent from here,
        near the limit). Raises `MachineMemoryLow` if the kernel killed it for memory, but not for the limit."""
        job, self.tree = self._job, ()  # their process ids may be those of others by now
        reason = self._kill_reason()
        near = job.memory_bytes is not None and self.peak_bytes >= 0.9 * job.memory_bytes
        if reason == "limit" or (killed_unasked and self._group is None and near):
            return "memory"
        if reason == "machine" and killed_unasked:
            raise MachineMemoryLow(
                "the kernel killed the program, which was below its memory limit, because the machine or a cgroup "
                "above is short of memory"
            )
        return "disk" if self._disk is not None and self._disk.exceeded() else None
