"""Programs that keep memory and disk where neither RSS nor a folder shows it; without a limit, each keeps it."""

from __future__ import annotations

import platform

import pytest

from tests.integration.test_sandbox_contract import Bench, bench, ground
from trialfleet_sandbox import memory_group
from trialfleet_sandbox.memory_group import GroupParent, NoMemoryGroup
from trialfleet_sandbox.protocol import Exit

__all__ = ["bench", "ground"]  # fixtures

MIB = 2**20
PYTHON = "/usr/bin/python3"
LOCAL = pytest.mark.parametrize(
    "bench",
    [
        pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")),
        pytest.param("uid", marks=pytest.mark.needs("root")),
    ],
    indirect=True,
)
CONFINED = pytest.mark.parametrize(
    "bench", [pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap"))], indirect=True
)
START = """
import os, socket, sys, time
size, wait_s = int(sys.argv[1]), float(sys.argv[2])
chunk = os.urandom(2**20)
def fill(fd):
    for _ in range(size):
        os.write(fd, chunk)
"""
END = "\nprint('has', size, flush=True)\ntime.sleep(wait_s)"


def attack(bench: Bench, body: str, size: int, *, wait_s: float = 60, **limits: int) -> Exit:
    """How a program ended that keeps `size` (MiB or files), says so and waits."""
    return bench.sandbox.run(bench.job(PYTHON, "-c", START + body + END, str(size), str(wait_s), **limits))


def assert_ended_for(bench: Bench, cause: str, body: str, size: int, **limits: int) -> None:
    free = attack(bench, body, size, wait_s=0, **dict.fromkeys(limits, 2**40))
    assert (free.cause, bench.out) == ("itself", f"has {size}\n"), bench.err
    assert attack(bench, body, size, **limits).cause == cause


@pytest.fixture(autouse=True)
def sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where no cgroup can be made: test_memory_groups.py has the others."""

    def refuse() -> GroupParent:
        raise NoMemoryGroup("in this test")

    monkeypatch.setattr(memory_group, "find_parent", refuse)


# --- memory -----------------------------------------------------------------------------------------

MEMORY = {
    "memory files": "for _ in range(2):\n    size //= 2\n    fill(os.memfd_create('x'))\n    size *= 2",
    "of a child": "fill(os.memfd_create('x'))\nif os.fork() == 0:\n    time.sleep(wait_s)\n    os._exit(0)",
    "in a mapping": (
        "import mmap\nfd = os.memfd_create('x')\nfill(fd)\n"
        "kept = mmap.mmap(fd, size * 2**20)\nkept.madvise(mmap.MADV_DONTNEED)\nos.close(fd)"
    ),
}
LEAVE = """
import ctypes, threading
kept = []
def stay():
    time.sleep(0.5)  # the first thread has ended
    KEEP
    print('has', size, flush=True)
    time.sleep(wait_s)
    os._exit(0)
threading.Thread(target=stay).start()
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)
"""
MEMORY["of a thread that outlives the first"] = LEAVE.replace(
    "KEEP", "kept.append(bytearray(b'a') * (size * 2**20))"
)
MEMORY["memory files of such a thread"] = LEAVE.replace("KEEP", "fill(os.memfd_create('x'))")

FOLDERS = {
    "/tmp": "fill(os.open('/tmp/x', os.O_CREAT | os.O_RDWR))",
    "/dev/shm": "fill(os.open('/dev/shm/x', os.O_CREAT | os.O_RDWR))",
    "unlinked": "fill(os.open('/dev/shm', os.O_TMPFILE | os.O_RDWR))",
    "empty files": "for n in range(size * 1024):\n    os.mknod(f'/tmp/{n}')",
}


@LOCAL
@pytest.mark.parametrize("body", MEMORY.values(), ids=MEMORY)
def test_memory_that_no_process_has_in_its_account_counts(bench: Bench, body: str) -> None:
    assert_ended_for(bench, "memory", body, 120, memory_bytes=64 * MIB)


@CONFINED
@pytest.mark.parametrize("body", FOLDERS.values(), ids=FOLDERS)
def test_memory_in_folders_counts(bench: Bench, body: str) -> None:
    assert_ended_for(bench, "memory", body, 120, memory_bytes=64 * MIB)


@LOCAL
def test_a_mapped_memory_file_counts_once(bench: Bench) -> None:
    body = (
        "import mmap\nfd = os.memfd_create('x')\nos.ftruncate(fd, size * 2**20)\n"
        "kept = mmap.mmap(fd, size * 2**20)\nfor at in range(0, len(kept), 4096): kept[at] = 1"
    )
    assert attack(bench, body, 80, wait_s=1, memory_bytes=120 * MIB).cause == "itself"
    assert attack(bench, body, 140, memory_bytes=120 * MIB).cause == "memory"


FORK = """
chunk *= 150
for _ in range(8):
    if os.fork() == 0:
        for at in range(0, len(chunk) if WRITES else 0, 4096):
            chunk[at] = 1
        print('has', end=' ', flush=True)
        time.sleep(wait_s)
        os._exit(0)
for _ in range(8):
    os.wait()
"""


def fork(*, writes: bool) -> str:
    """Eight children that share 150 MiB of their parent, or write all of it."""
    return "chunk = bytearray(chunk)\n" + FORK.replace("WRITES", str(writes))


@LOCAL
def test_memory_that_processes_share_counts_once(bench: Bench) -> None:
    """The simple sum is far beyond the limit in both cases."""
    ended = attack(bench, fork(writes=False), 1, wait_s=0.8, memory_bytes=256 * MIB)
    assert (ended.cause, bench.out) == ("itself", "has " * 8 + "has 1\n")
    assert ended.peak_bytes is not None
    assert ended.peak_bytes < 256 * MIB
    assert attack(bench, fork(writes=True), 1, memory_bytes=256 * MIB).cause == "memory"


SEGMENT = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.shmget(0, size, 0o1600) >= 0 or ctypes.get_errno())
"""


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="no filter of system calls")
def test_system_v_segments_are_small(bench: Bench) -> None:
    """Nothing shows them while no process has them attached."""
    for size in (56, 2**14, 2**14 + 1, 2**30):
        attack(bench, SEGMENT, size, wait_s=0)
    assert bench.out.splitlines()[::2] == ["True", "True", "22", "22"]


# --- disk -------------------------------------------------------------------------------------------

DISK = {
    "unlinked": "fd = os.open('big', os.O_CREAT | os.O_RDWR)\nos.unlink('big')\nfill(fd)\nos.fsync(fd)",
    "never named": "fd = os.open('.', os.O_TMPFILE | os.O_RDWR)\nfill(fd)\nos.fsync(fd)",
}


@LOCAL
@pytest.mark.parametrize("body", DISK.values(), ids=DISK)
def test_files_without_a_name_count(bench: Bench, body: str) -> None:
    assert_ended_for(bench, "disk", body, 40, disk_bytes=16 * MIB)


def test_files_and_folders_are_limited(bench: Bench) -> None:
    body = "os.mkdir(NAME)\nfor i in range(size // 2):\n    os.mkdir(f'{NAME}/{i}')\n    os.mknod(f'{NAME}/{i}/x')"
    for name, limits, wait_s, cause in (
        ("n", {"inodes": 1000}, 0, "itself"),
        ("m", {"inodes": 500}, 60, "disk"),
        ("o", {"inodes": 500}, 0, "disk"),  # however soon it ends
    ):
        ended = attack(bench, f"NAME = {name!r}\n{body}", 600, wait_s=wait_s, **limits)
        assert ended.cause == cause, bench.err


@pytest.mark.parametrize("bench", ["container"], indirect=True)
def test_a_runner_does_not_see_open_files_of_another_container(bench: Bench) -> None:
    """As the table of attacks says."""
    ended = attack(bench, DISK["unlinked"], 40, wait_s=1, disk_bytes=20 * MIB)
    assert (ended.cause, bench.out) == ("itself", "has 40\n")
    assert attack(bench, "fill(os.open('big', os.O_CREAT | os.O_RDWR))", 40, disk_bytes=20 * MIB).cause == "disk"


DEEP = """
import time
for _ in range(25):
    os.makedirs('d' * 200, exist_ok=True)
    os.chdir('d' * 200)
"""


@LOCAL
def test_bytes_below_a_path_longer_than_a_path_may_be_count(bench: Bench) -> None:
    body = f"{DEEP}fill(os.open(f'big{{time.time()}}', os.O_CREAT | os.O_RDWR))"
    assert_ended_for(bench, "disk", body, 40, disk_bytes=20 * MIB)


@LOCAL
def test_files_below_a_path_longer_than_a_path_may_be_count(bench: Bench) -> None:
    body = "for n in range(size): os.close(os.open(f'file{n}-{time.time()}', os.O_CREAT | os.O_RDWR))"
    assert_ended_for(bench, "disk", f"{DEEP}{body}", 300, inodes=200)


@LOCAL
def test_unlinked_files_count_as_files(bench: Bench) -> None:
    body = "kept = [os.open('.', os.O_TMPFILE | os.O_RDWR) for _ in range(size)]"
    assert_ended_for(bench, "disk", body, 300, inodes=200)


@LOCAL
def test_what_others_hold_is_not_counted(bench: Bench) -> None:
    """A file without a name of another program on the same disk."""
    with (bench.work / "big").open("wb") as other:
        other.write(bytes(40 * MIB))
        (bench.work / "big").unlink()
        assert attack(bench, "", 1, wait_s=1, disk_bytes=16 * MIB).cause == "itself"
