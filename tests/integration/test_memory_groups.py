"""Programs in a cgroup of memory, on machines where one can be made; each has a control that passes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.test_sandbox_contract import Bench, bench, ground
from tests.integration.test_sandbox_limits import CONFINED, MIB, attack, fork
from tests.support.waiting import wait_until
from trialfleet_sandbox import memory_group
from trialfleet_sandbox.memory_group import (
    PREFIX,
    GroupParent,
    NoMemoryGroup,
    limited_group,
    probe_group,
    sweep_groups,
)
from trialfleet_sandbox.processes import descendants
from trialfleet_sandbox.protocol import MachineMemoryLow

__all__ = ["bench", "ground"]  # fixtures

BIG = "kept = bytearray(b'a') * (size * MIB)".replace("MIB", str(MIB))
CHILD = f"if os.fork() == 0:\n    {BIG}\n    os._exit(0)\nos.wait()"
SOCKETS = """
kept = []
for _ in range(size):
    pair = socket.socketpair()
    kept.append(pair)
    pair[0].setblocking(False)
    try:
        while True:
            pair[0].send(chunk[:65536])
    except BlockingIOError:
        pass
"""
FILE = """
with open('big', 'wb') as file:
    for _ in range(size):
        file.write(chunk)
with open('big', 'rb') as file:
    while file.read(2**20):
        pass
"""
MAPPED = (
    FILE
    + """
import mmap
with open('big', 'rb+') as file:
    kept = mmap.mmap(file.fileno(), 0)
    for at in range(0, len(kept), 4096):
        kept[at] = 1
time.sleep(0.6)
"""
)
LEAVE = f"""
with open(FOLDER + '/cgroup.procs', 'w') as file:
    file.write(str(os.getpid()))
{BIG}
"""


@pytest.fixture(autouse=True)
def parent(monkeypatch: pytest.MonkeyPatch) -> Generator[GroupParent]:
    """Where groups of this test are made: below one of its own. None is left afterwards."""
    try:
        probe_group()
    except NoMemoryGroup as error:
        pytest.skip(f"no cgroup of memory can be made here: {error}")
    with parent_of_groups(2**40, monkeypatch) as parent:
        yield parent
        assert group_names(parent) == set()


@contextmanager
def parent_of_groups(limit: int, monkeypatch: pytest.MonkeyPatch) -> Generator[GroupParent]:
    """A group below which the others are made."""
    with limited_group(limit) as above:
        assert above is not None
        if above.version == 2:
            (above.folder / "cgroup.subtree_control").write_text("+memory")
        parent = GroupParent(above.folder, above.version)
        with monkeypatch.context() as patch:
            patch.setattr(memory_group, "find_parent", lambda: parent)
            yield parent


def group_names(parent: GroupParent) -> set[str]:
    return {path.name for path in parent.folder.glob(f"{PREFIX}*")}


@pytest.mark.parametrize(
    "bench",
    [
        pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")),
        pytest.param("uid", marks=pytest.mark.needs("root")),
        "subreaper",
    ],
    indirect=True,
)
def test_the_kernel_ends_a_program_at_its_limit(bench: Bench) -> None:
    ended = attack(bench, BIG, 200, memory_bytes=100 * MIB)
    assert (ended.cause, ended.code) == ("memory", 137)
    assert attack(bench, BIG, 60, wait_s=0, memory_bytes=100 * MIB).cause == "itself"


@CONFINED
@pytest.mark.parametrize(
    ("body", "size", "less"), [(CHILD, 200, 60), (SOCKETS, 400, 40)], ids=["a child alone", "memory of the kernel"]
)
def test_what_the_kernel_counts_and_no_sample_sees(bench: Bench, body: str, size: int, less: int) -> None:
    assert attack(bench, body, size, wait_s=0, memory_bytes=64 * MIB).cause == "memory", bench.err
    assert attack(bench, body, less, wait_s=0, memory_bytes=100 * MIB).cause == "itself", bench.err


@CONFINED
@pytest.mark.parametrize("body", [FILE, MAPPED], ids=["written and read", "mapped"])
def test_pages_of_files_on_disk_end_nothing(bench: Bench, body: str) -> None:
    """The kernel drops them."""
    ended = attack(bench, body, 250, wait_s=0, memory_bytes=100 * MIB)
    assert (ended.cause, bench.out) == ("itself", "has 250\n")


@CONFINED
def test_memory_that_processes_share_counts_once(bench: Bench) -> None:
    assert attack(bench, fork(writes=False), 1, wait_s=0.8, memory_bytes=256 * MIB).cause == "itself"
    assert attack(bench, fork(writes=True), 1, memory_bytes=256 * MIB).cause == "memory"


@pytest.mark.parametrize("bench", ["subreaper"], indirect=True)
def test_a_program_that_leaves_its_cgroup_is_sampled(bench: Bench, parent: GroupParent) -> None:
    elsewhere = parent.folder / "elsewhere"
    elsewhere.mkdir()
    body = LEAVE.replace("FOLDER", repr(str(elsewhere)))
    assert attack(bench, body, 200, memory_bytes=100 * MIB).cause == "memory"
    assert attack(bench, body, 60, wait_s=1, memory_bytes=100 * MIB).cause == "itself", bench.err
    elsewhere.rmdir()


@CONFINED
def test_memory_that_the_machine_lacks_is_no_limit_of_the_program(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parent_of_groups(60 * MIB, monkeypatch):
        with pytest.raises(MachineMemoryLow, match="below its memory limit"):
            attack(bench, BIG, 200, memory_bytes=400 * MIB)
        assert attack(bench, BIG, 20, wait_s=0, memory_bytes=400 * MIB).cause == "itself"


RUNNER = """
import sys
from pathlib import Path
from tests.integration.test_sandbox_contract import Bench
from trialfleet_sandbox import memory_group
from trialfleet_sandbox.choose import choose
parent = memory_group.GroupParent(Path(sys.argv[2]), int(sys.argv[3]))
memory_group.find_parent = lambda: parent
Bench(choose("subreaper"), Path(sys.argv[1])).shell("sleep 600", memory_bytes=2**28, timeout_s=900)
"""


def entered_group(parent: GroupParent, others: set[str]) -> Path | None:
    """One that a program has entered."""
    folders = (parent.folder / name for name in group_names(parent) - others)
    return next((folder for folder in folders if (folder / "cgroup.procs").read_text()), None)


@pytest.mark.parametrize("with_supervisor", [False, True])
def test_a_killed_runner_leaves_no_cgroup(ground: Path, parent: GroupParent, with_supervisor: bool) -> None:
    """Its supervisor removes it; if that is killed as well, the next sweep does. One that lives is kept."""
    with limited_group(2**28) as living:
        assert living is not None
        command = [sys.executable, "-c", RUNNER, str(ground), str(parent.folder), str(parent.version)]
        runner = subprocess.Popen(command, cwd=Path(__file__).parents[2])
        folder = wait_until(lambda: entered_group(parent, {living.folder.name}))
        assert folder is not None
        assert sweep_groups() == 0
        os.kill(runner.pid, signal.SIGSTOP)
        for process in descendants(runner.pid) if with_supervisor else ():
            os.kill(process.pid, signal.SIGKILL)
        runner.kill()
        runner.wait()
        if with_supervisor:
            wait_until(lambda: not (folder / "cgroup.procs").read_text())
            assert sweep_groups() == 1
        wait_until(lambda: not folder.exists() or sweep_groups(), within_s=30)
        assert living.folder.is_dir()
