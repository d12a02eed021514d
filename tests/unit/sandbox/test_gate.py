"""The gate between two containers: one comes in, a job goes over whole, and whoever stays outside learns why."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_sandbox import supervise
from trialfleet_sandbox.container import DISK_SHARE, limited
from trialfleet_sandbox.gate import SOCKET, Gate, hand_over, message
from trialfleet_sandbox.protocol import Job, Mount, SandboxError

WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=50)
NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0="), min_size=1, max_size=20)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gate-", dir="/var/tmp") as found:
        yield Path(found)


def job(**changes: object) -> Job:
    values: dict[str, object] = {
        "argv": ("true",),
        "env": {},
        "cwd": "/",
        "mounts": (),
        "stdout": Path("/dev/null"),
        "stderr": Path("/dev/null"),
        "timeout_s": 1,
    }
    return Job(**(values | changes))  # type: ignore[arg-type]


def knock(path: Path) -> socket.socket:
    door = socket.socket(socket.AF_UNIX)
    door.connect(str(path))
    return door


# --- the message --------------------------------------------------------------------------------------------


@given(st.lists(WORD, min_size=1).map(tuple), st.dictionaries(NAME, WORD), WORD)
def test_a_job_arrives_as_it_was_sent(argv: tuple[str, ...], env: dict[str, str], cwd: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(
            target=hand_over, args=(ours, message(argv, env, cwd, reports=True), (0, 1, 2, 0, 1, 2))
        )
        sender.start()
        received = supervise.receive(theirs)
        sender.join()
    assert received is not None
    fields, fds = received
    for fd in fds:
        assert not os.get_inheritable(fd)
        os.close(fd)
    assert len(fds) == supervise.DESCRIPTORS
    count = int(fields[2])
    assert fields[:2] == [os.fsencode(cwd), b"1"]
    assert tuple(map(os.fsdecode, fields[3 : 3 + count])) == argv
    pairs = [os.fsdecode(field).partition("=") for field in fields[3 + count :]]
    assert {name: value for name, _, value in pairs} == env


def test_a_job_that_is_larger_than_a_sockets_buffer_arrives() -> None:
    argv = tuple(f"tests/test_{n}.py::test" for n in range(100_000))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(
            target=hand_over, args=(ours, message(argv, {}, "/", reports=False), (0, 1, 2, 0, 1, 2))
        )
        sender.start()
        received = supervise.receive(theirs)
        sender.join()
    assert received is not None
    assert received[0][-len(argv) :] == [name.encode() for name in argv]
    for fd in received[1]:
        os.close(fd)


@pytest.mark.parametrize("sent", [b"", b"\0\0\0\x09half"])
def test_a_runner_that_dies_sends_no_job(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(sent)
        assert supervise.receive(theirs) is None


# --- who comes in -------------------------------------------------------------------------------------------


def test_one_comes_in_and_nobody_after(folder: Path) -> None:
    gate = Gate(folder)
    with knock(gate.path) as first, knock(gate.path) as waiting:
        inside = gate.supervisor(job())
        assert inside is not None
        with inside:
            with pytest.raises(ConnectionRefusedError):
                knock(gate.path)
            waiting.settimeout(5)
            with pytest.raises(ConnectionResetError):
                waiting.recv(1)
            inside.sendall(b"x")
            assert first.recv(1) == b"x"
        with pytest.raises(SandboxError, match="used before"):
            gate.supervisor(job())


def test_a_container_that_does_not_start_is_the_sandboxs_failure(folder: Path) -> None:
    gate = Gate(folder)
    with pytest.raises(SandboxError, match="did not start"):
        gate.supervisor(job(), wait_s=0.3)
    gate.close()


def test_waiting_ends_with_the_stop(folder: Path) -> None:
    stop = threading.Event()
    gate = Gate(folder)
    threading.Timer(0.2, stop.set).start()
    began = time.monotonic()
    assert gate.supervisor(job(stop=stop)) is None
    assert time.monotonic() - began < 10
    gate.close()


def test_a_supervisor_learns_whether_the_runner_came(folder: Path) -> None:
    with pytest.raises(TimeoutError):
        supervise.come_in(str(folder / SOCKET), 0.1)
    gate = Gate(folder)
    assert [path.name for path in folder.iterdir()] == [SOCKET]
    connection = supervise.come_in(str(gate.path), 5)
    assert connection is not None
    gate.close()
    assert supervise.receive(connection) is None  # never let in: hung up on
    connection.close()
    assert supervise.come_in(str(gate.path), 5) is None  # too late: at once


# --- limits -------------------------------------------------------------------------------------------------


def test_the_kernels_count_of_both_versions(tmp_path: Path) -> None:
    (tmp_path / "v1").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    (tmp_path / "v2").write_text("low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n")
    (tmp_path / "old").write_text("oom_kill_disable 0\nunder_oom 0\n")
    counts = [supervise.counted(str(tmp_path / name)) for name in ("v1", "v2", "old", "missing")]
    assert counts == [3, 1, None, None]
    assert supervise.oom_kills() >= 0


def test_a_volume_is_full_at_its_share_whatever_lay_there_before(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "before").write_bytes(os.urandom(2_000_000))
    (tmp_path / "beside").write_bytes(os.urandom(1_000_000))
    mounts = (Mount(tmp_path / "work", str(tmp_path / "work"), writable=True),)
    watched = limited(job(mounts=mounts, disk_bytes=10_000_000, memory_bytes=1), tmp_path)
    assert watched.disk_bytes is not None
    assert 10_000_000 * DISK_SHARE - 3_100_000 < watched.disk_bytes <= 10_000_000 * DISK_SHARE - 3_000_000
    assert [mount.source for mount in watched.mounts] == [tmp_path]
    assert limited(job(mounts=mounts, disk_bytes=1_000_000), tmp_path).disk_bytes == 0
    assert limited(job(mounts=mounts, memory_bytes=1), tmp_path).memory_bytes is None


# --- looking for it -----------------------------------------------------------------------------------------


def test_a_folder_is_emptied_and_no_link_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "shm"
    (tmp_path / "kept").write_text("")
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/file").write_text("")
    (folder / "a").chmod(0)
    (folder / "link").symlink_to(tmp_path)
    deep = str(folder)
    for _ in range(1500):  # deeper than recursion goes
        deep += "/d"
        os.mkdir(deep)  # noqa: PTH102 - a Path of this depth is slow
    os.mkfifo(folder / "pipe")
    supervise.empty(str(folder))
    assert list(folder.iterdir()) == []
    assert (tmp_path / "kept").exists()
    supervise.empty(str(tmp_path / "absent"))


def test_looks_for_a_gate_are_soon_at_first_and_rare_on_a_node_that_is_slow() -> None:
    looks, waited = 0, 0.0
    while waited < 60.0:
        looks, waited = looks + 1, waited + supervise.pause(waited)
        assert supervise.pause(waited) <= min(1.0, 0.05 + waited / 8)
    assert looks < 100, "twelve hundred of a fixed rhythm took as long as the attempt's own start"
