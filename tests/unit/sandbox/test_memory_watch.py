"""Sums of memory over /proc: what is read often, what seldom, and what shared memory counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trialfleet_sandbox import memory_watch
from trialfleet_sandbox.held_files import HeldFiles
from trialfleet_sandbox.memory_group import MemoryGroup
from trialfleet_sandbox.memory_watch import (
    SCAN_S,
    MemoryWatch,
    ProportionalMemoryWatch,
    SharedMemoryWatch,
    count_proportional_bytes,
)
from trialfleet_sandbox.processes import descendants, read

MIB = 2**20


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_memory_files_are_counted_seldom_and_at_once_when_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, held, clock, scans = [10**9], [0], Clock(), [0]

    def measure(pids: object, devices: object) -> HeldFiles:
        scans[0] += 1
        return HeldFiles(memory_bytes=held[0])

    monkeypatch.setattr(memory_watch, "count_machine_shared_bytes", lambda: machine[0])
    monkeypatch.setattr(memory_watch, "count_held_files", measure)
    watch = SharedMemoryWatch(800, clock)

    def grow(by: int, rss_bytes: int, *, ours: bool = True) -> tuple[int, int]:
        machine[0] += by
        held[0] += by if ours else 0
        return watch.unmapped_bytes((), rss_bytes), scans[0]

    assert grow(100, 0) == (0, 0)
    assert grow(1, 0) == (101, 1)  # more than an eighth of the limit
    assert grow(50, 649) == (101, 1)
    assert grow(0, 650) == (151, 2)  # may be beyond the limit
    assert grow(-151, 700) == (0, 3)  # and is not
    assert grow(200, 0, ours=False) == (0, 4)  # of others
    assert grow(60, 0) == (0, 4)
    machine[0] -= 10**6  # that others free hides what is ours, for a while
    clock.now = SCAN_S
    assert grow(0, 0) == (60, 5)


class Machine:
    """Memory of a tree without what its processes share, memory of the machine, and how often the first is read,
    for `cost_s` each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
        self.clock, self.tree, self.all, self.scans, self.cost_s = clock, 100, 1000, 0, 0.0
        monkeypatch.setattr(memory_watch, "count_machine_shared_bytes", lambda: 0)
        monkeypatch.setattr(memory_watch, "count_machine_private_bytes", lambda: self.all)
        monkeypatch.setattr(memory_watch, "count_proportional_bytes", self.measure)

    def measure(self, tree: object) -> int:
        self.scans += 1
        self.clock.now += self.cost_s
        return self.tree

    def grow(self, by: int, *, others: int = 0) -> None:
        self.tree += by
        self.all += by + others


def test_shared_memory_is_read_seldom_and_at_once_when_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    machine = Machine(monkeypatch, clock)
    watch = ProportionalMemoryWatch(256, clock)

    def sample() -> tuple[int, int]:
        clock.now += 0.25
        return watch.measure(()), machine.scans

    assert sample() == (100, 1)
    assert [sample() for _ in range(10)] == [(100, 1)] * 10
    machine.grow(150)
    assert sample() == (100, 1)  # still within the limit
    machine.grow(7)
    assert sample() == (257, 2)
    clock.now += SCAN_S
    machine.tree -= 100  # while others grow as much
    assert sample() == (157, 3)


@pytest.mark.parametrize(("cost_s", "grows", "most"), [(0.02, 0, 0.01), (0.02, 500, 0.06), (2, 500, 0.06)])
def test_reading_shared_memory_costs_little(
    monkeypatch: pytest.MonkeyPatch, cost_s: float, grows: int, most: float
) -> None:
    """Of a tree that stays beyond its limit by the simple sum, however much other programs grow."""
    clock = Clock()
    machine = Machine(monkeypatch, clock)
    machine.cost_s = cost_s
    watch = ProportionalMemoryWatch(256, clock)
    while clock.now < 1000:
        clock.now += 0.25
        machine.grow(0, others=grows)
        assert watch.measure(()) == 100
    assert machine.scans * cost_s / clock.now <= most


@pytest.mark.parametrize(
    ("in_group", "limit", "used"),
    [(None, "256", 300), (True, "256", 256), (False, "256", 300), (True, "257", 300), (True, "", 300)],
)
def test_the_kernel_decides_for_what_is_in_the_cgroup(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, in_group: bool | None, limit: str, used: int
) -> None:
    process = read(os.getpid())
    assert process is not None
    (tmp_path / "cgroup.procs").write_text(f"1\n{process.pid if in_group else ''}\n")
    (tmp_path / "memory.limit_in_bytes").write_text(f"{limit}\n")
    machine = Machine(monkeypatch, Clock())
    machine.grow(200)
    group = None if in_group is None else MemoryGroup(tmp_path, 1, 256)
    watch = MemoryWatch(256, machine.clock, group)
    assert watch.measure((process,), 200) == 200
    assert watch.measure((process,), 400) == used


FORK = """
import os, signal, sys
data = bytearray(os.urandom(4096)) * (40 * 2**20 // 4096)
for _ in range(3):
    if os.fork() == 0:
        break
for at in range(0, len(data) if sys.argv[1] == "writes" else 0, 4096):
    data[at] = 1
os.write(1, b"x")
signal.pause()
"""


def sums_of_forked(does: str) -> tuple[int, int]:
    """Simple and proportional sum of four processes with 40 MiB that they share, unless each `writes` its own."""
    program = subprocess.Popen(
        [sys.executable, "-S", "-c", FORK, does], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert program.stdout is not None
        assert program.stdout.read(4) == b"xxxx"
        tree = [p for p in (read(program.pid), *descendants(program.pid)) if p is not None]
        assert len(tree) == 4
        return sum(process.rss_bytes for process in tree), count_proportional_bytes(tree)
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()


def test_pages_that_processes_share_count_once() -> None:
    (simple, shared), (_, written) = sums_of_forked("nothing"), sums_of_forked("writes")
    assert simple > 160 * MIB
    assert 40 * MIB < shared < 80 * MIB
    assert 115 * MIB < written - shared < 125 * MIB


def test_a_process_that_hides_counts_as_in_rss(monkeypatch: pytest.MonkeyPatch) -> None:
    process = read(os.getpid())
    assert process is not None
    monkeypatch.setattr(memory_watch, "read_proc", lambda _: b"")
    assert abs(count_proportional_bytes([process]) - process.rss_bytes) < 4 * MIB
    monkeypatch.setattr(memory_watch, "read", lambda _: None)  # it has ended
    assert count_proportional_bytes([process]) == 0
