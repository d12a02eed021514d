"""How much memory a process tree has, by sums over /proc."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from trialfleet_sandbox.held_files import (
    count_held_files,
    count_machine_private_bytes,
    count_machine_shared_bytes,
    count_shared_bytes,
    read_kib,
)
from trialfleet_sandbox.processes import Process, read, read_proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trialfleet_sandbox.memory_group import MemoryGroup

SCAN_S = 5.0
SCAN_SHARE = 0.02  # of the wall clock that scans may take
URGENT_SHARE = 0.05  # the same where a scan may decide
WORTH_A_SCAN = 8  # a scan for memory files, once the machine has that part of a limit more


class ScanPace:
    """When to scan again: seldom, or soon where that matters."""

    def __init__(self, clock: Callable[[], float], first_s: float) -> None:
        self._clock = clock
        self._soonest, self._next = 0.0, clock() + first_s

    def is_due(self, *, urgent: bool) -> bool:
        return self._clock() >= (min(self._soonest, self._next) if urgent else self._next)

    @contextmanager
    def timed(self) -> Generator[None]:
        """Around a scan."""
        began = self._clock()
        yield
        now = self._clock()
        self._soonest = now + (now - began) / URGENT_SHARE
        self._next = now + max(SCAN_S, (now - began) / SCAN_SHARE)


class SharedMemoryWatch:
    """Memory of a tree that its RSS does not hold: memfds and tmpfs. Scans seldom, and at once if the machine's
    shared memory grows much, or so much that the tree may be beyond its limit."""

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        self._limit, self._pace = limit, ScanPace(clock, SCAN_S)
        self._bytes = 0
        self._machine = count_machine_shared_bytes()

    def unmapped_bytes(self, pids: tuple[int, ...], rss_bytes: int) -> int:
        """Without what is mapped, which is in `rss_bytes`. As of the last scan, unless that matters."""
        grown = max(0, count_machine_shared_bytes() - self._machine)
        over = rss_bytes <= self._limit < rss_bytes + self._bytes + grown
        if self._pace.is_due(urgent=over or grown > self._limit // WORTH_A_SCAN):
            self._scan(pids)
        return self._bytes

    def _scan(self, pids: tuple[int, ...]) -> None:
        with self._pace.timed():
            self._machine = count_machine_shared_bytes()
            size = count_held_files(pids, frozenset()).memory_bytes
            self._bytes = max(0, size - count_shared_bytes(pids)) if size else 0


class ProportionalMemoryWatch:
    """Memory of a tree in which what processes share counts once. Reading it takes long: seldom, and at once if
    the machine's memory of programs has grown by so much that the tree may be beyond its limit."""

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        self._limit, self._pace = limit, ScanPace(clock, 0.0)
        self._bytes = self._machine = 0

    def measure(self, tree: Sequence[Process]) -> int:
        """As of the last scan, unless that matters."""
        machine = count_machine_shared_bytes() + count_machine_private_bytes()
        if self._pace.is_due(urgent=self._bytes + machine - self._machine > self._limit):
            self._machine = machine
            with self._pace.timed():
                self._bytes = count_proportional_bytes(tree)
        return self._bytes


def has_proportional_sizes() -> bool:
    """Whether this kernel says how much of a process's memory others share."""
    return bool(read_proc("/proc/self/smaps_rollup"))


def count_proportional_bytes(tree: Sequence[Process]) -> int:
    """Memory and swap of these processes, each page divided by the number of processes that map it, without pages
    of files on disk, which the kernel may drop; and what of their memory files none maps."""
    held = count_held_files((process.thread for process in tree), frozenset()).memory_bytes
    shares = [*map(_proportional_share, tree)]
    return sum(size for size, _ in shares) + max(0, held - sum(shared for _, shared in shares))


def _proportional_share(process: Process) -> tuple[int, int]:
    """Memory and swap of one process, and what of that is shared memory or of files in memory. Of one that hides
    from this user all that it maps, as in RSS."""
    text = read_proc(f"/proc/{process.thread}/smaps_rollup")
    if text:
        parts = {name: read_kib(text, name) for name in (b"Pss:", b"SwapPss:", b"Pss_File:", b"Pss_Shmem:")}
        return parts[b"Pss:"] + parts[b"SwapPss:"] - parts[b"Pss_File:"], parts[b"Pss_Shmem:"]
    now = read(process.pid)
    return (now.rss_bytes, count_shared_bytes((now.thread,))) if now else (0, 0)


class MemoryWatch:
    """Memory of a tree against its limit: the sum of RSS and of memory files, which is quick; where that is beyond
    the limit, what is shared counts once. `group`: the tree's cgroup, if it has one: the kernel counts what is in
    it, and kills by itself."""

    def __init__(self, limit: int, clock: Callable[[], float], group: MemoryGroup | None) -> None:
        self._limit, self._group = limit, group
        self._shared, self._proportional = SharedMemoryWatch(limit, clock), ProportionalMemoryWatch(limit, clock)

    def measure(self, tree: Sequence[Process], rss_bytes: int) -> int:
        """Bytes; beyond the limit only where the tree must end for it."""
        simple = rss_bytes + self._shared.unmapped_bytes(tuple(p.thread for p in tree), rss_bytes)
        if simple <= self._limit:
            return simple
        used = min(simple, self._proportional.measure(tree))
        if used > self._limit and self._group is not None and self._group.holds(p.pid for p in tree):
            return self._limit
        return used
