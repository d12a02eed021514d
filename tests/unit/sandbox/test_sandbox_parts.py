"""The pure parts of the sandboxes: limits, capped output, arguments, user ids, interpreters."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from trialfleet_sandbox import bubblewrap, drive, processes
from trialfleet_sandbox.bubblewrap import arguments
from trialfleet_sandbox.drive import CappedFile, Descriptors
from trialfleet_sandbox.host import give, mapped_users, uid_for
from trialfleet_sandbox.interpreter import program_mounts, site_packages
from trialfleet_sandbox.memory_group import MemoryGroup
from trialfleet_sandbox.processes import Process
from trialfleet_sandbox.protocol import Job, MachineMemoryLow, Mount, inside
from trialfleet_sandbox.watch import (
    DiskWatch,
    LimitWatch,
    ProcessTreeUsage,
    usage,
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def job(tmp_path: Path, **changes: object) -> Job:
    made = Job(
        argv=("true",),
        env={"A": "--", "B": ""},
        cwd="/workspace",
        mounts=(),
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
        timeout_s=10,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


# --- output -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Dying:
    """A program whose last words come while it is being ended."""

    stdout: int

    def root(self) -> int | None:
        return None

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def settle(self) -> None:
        os.write(self.stdout, b"last words\n")


def test_last_words_are_read_by_whoever_was_held_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All the time that it had for them has passed before its first look."""
    monkeypatch.setattr(drive, "DRAIN_S", 0.0)
    with Descriptors() as held:
        (out, words), (err, _), (ended, end) = held.pipe(), held.pipe(), held.pipe()
        held.close(end)
        mine = job(tmp_path)
        drive.drive(mine, drive.Outer(out, err, ended), _Dying(words), LimitWatch(mine))
    assert mine.stdout.read_bytes() == b"last words\n"


# --- limits -----------------------------------------------------------------------------------------


def test_throttled_time_moves_the_deadline(tmp_path: Path) -> None:
    clock, extra = Clock(), [0.0]
    watch = LimitWatch(job(tmp_path, extra_time_s=lambda: extra[0]), clock=clock)
    clock.now = 9.9
    assert watch.cause(None) is None
    clock.now = 10.1
    assert watch.cause(None) == "timeout"
    extra[0] = 5
    assert watch.cause(None) is None
    clock.now = 15.1
    assert watch.cause(None) == "timeout"


@pytest.mark.parametrize(("core_s", "ended"), [(0.0, None), (30.0, "timeout")])
def test_a_program_that_works_while_it_is_throttled_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, core_s: float, ended: str | None
) -> None:
    now, extra, used = [0.0], [0.0], [0.0]
    timed = job(tmp_path, timeout_s=10.0, extra_time_s=lambda: extra[0])
    watch = LimitWatch(timed, clock=lambda: now[0])

    def used_so_far(root: object, tree: object) -> ProcessTreeUsage:
        return ProcessTreeUsage(0, used[0])

    monkeypatch.setattr("trialfleet_sandbox.watch.usage", used_so_far)
    causes: list[str | None] = [watch.cause(1)]
    for second in range(1, 41):
        now[0] = extra[0] = float(second)
        used[0] = core_s * second / 40
        causes.append(watch.cause(1))
    assert causes[-1] == ended


def test_told_to_stop_goes_before_everything(tmp_path: Path) -> None:
    stop, clock = threading.Event(), Clock()
    watch = LimitWatch(job(tmp_path, stop=stop), clock=clock)
    clock.now = 100
    stop.set()
    assert watch.cause(None) == "stopped"


def test_a_kill_that_nobody_sent_near_the_limit_is_memory(tmp_path: Path) -> None:
    watch = LimitWatch(job(tmp_path, memory_bytes=100))
    watch.peak_bytes = 89
    assert watch.afterwards(killed_unasked=True) is None
    watch.peak_bytes = 90
    assert watch.afterwards(killed_unasked=True) == "memory"
    assert watch.afterwards(killed_unasked=False) is None


@pytest.mark.parametrize("killed_unasked", [True, False])
def test_a_cgroup_says_for_what_the_kernel_killed(tmp_path: Path, killed_unasked: bool) -> None:
    watch = LimitWatch(job(tmp_path, memory_bytes=100), MemoryGroup(tmp_path, 2, 100))
    watch.peak_bytes = 100
    events = tmp_path / "memory.events"
    events.write_text("max 9\noom 0\noom_kill 0\n")
    assert watch.afterwards(killed_unasked=killed_unasked) is None
    events.write_text("max 9\noom 1\noom_kill 2\n")
    assert watch.afterwards(killed_unasked=killed_unasked) == "memory"
    assert watch.cause(os.getpid()) == "memory"
    events.write_text("max 0\noom 0\noom_kill 2\n")
    with pytest.raises(MachineMemoryLow) if killed_unasked else nullcontext():
        assert watch.afterwards(killed_unasked=killed_unasked) is None


def test_disk_at_the_end_counts(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    watch = LimitWatch(job(tmp_path, disk_bytes=100_000, mounts=(Mount(folder, "/w", writable=True),)))
    assert watch.afterwards(killed_unasked=False) is None
    write(folder / "x", 200_000)
    assert watch.afterwards(killed_unasked=False) == "disk"


def test_disk_scans_seldom_and_at_once_when_space_vanishes(tmp_path: Path) -> None:
    clock = Clock()
    watch = DiskWatch((tmp_path,), 100_000, clock)
    write(tmp_path / "x", 200_000)
    watch._free = 0, 0  # as if nothing had been taken: no sign of growth
    assert not watch.over()
    clock.now = 6
    assert watch.over()
    clock = Clock()
    watch = DiskWatch((tmp_path,), 100_000, clock)
    write(tmp_path / "y", 200_000)
    watch._free = 10**15, 0  # as if a lot had gone
    assert watch.over()


def test_inodes_are_counted_at_once_when_they_vanish(tmp_path: Path) -> None:
    watch = DiskWatch((tmp_path,), 10**12, Clock(), inodes=20)
    for number in range(30):
        (tmp_path / str(number)).mkdir()
    watch._free = 0, 0
    assert not watch.over()
    watch._free = 0, 10**15
    assert watch.over()


def test_what_was_there_before_is_no_growth_and_read_only_mounts_do_not_count(tmp_path: Path) -> None:
    for name in ("w", "r"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "before", 500_000)
    mounts = (Mount(tmp_path / "w", "/w", writable=True), Mount(tmp_path / "r", "/r"))
    watch = LimitWatch(job(tmp_path, disk_bytes=100_000, mounts=mounts))
    write(tmp_path / "r" / "more", 500_000)
    (tmp_path / "w" / "before").unlink()
    assert watch.afterwards(killed_unasked=False) is None


def write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(os.urandom(size))
        file.flush()
        os.fsync(file.fileno())


def test_usage_counts_the_living_and_those_waited_for() -> None:
    def process(pid: int, core_s: float, waited: float, rss: int) -> Process:
        return Process(
            pid,
            1,
            1,
            stopped=False,
            core_s=core_s,
            waited_core_s=waited,
            rss_bytes=rss,
            thread=pid,
            threads=1,
        )

    root = process(1, 100, 2, 10**9)
    found = usage(root, [process(2, 1, 4, 10), process(3, 8, 16, 20)])
    assert (found.core_s, found.memory_bytes) == (31, 30)
    assert usage(None, []).core_s == 0


def test_a_process_reads_itself() -> None:
    me = processes.read(os.getpid())
    assert me is not None
    assert me.parent == os.getppid()
    assert me.rss_bytes > 10**6
    assert processes.read(2**22 + 1) is None
    assert processes.children(2**22 + 1) == []


# --- output -----------------------------------------------------------------------------------------


def test_capped_file_keeps_head_and_tail(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out"
    path.parent.mkdir()
    path.write_bytes(b"earlier|")
    file = CappedFile(path, head=10, tail=4)
    for chunk in (b"01234", b"56789ab", b"cd", b"efgh"):
        file.write(chunk)
    file.close()
    assert path.read_bytes() == b"earlier|0123456789\n[trialfleet: 4 bytes left out after the first 10]\nefgh"


def test_capped_file_that_just_fits_says_nothing(tmp_path: Path) -> None:
    file = CappedFile(tmp_path / "out", head=4, tail=4)
    file.write(b"01234567")
    file.close()
    assert (tmp_path / "out").read_bytes() == b"01234567"


# --- arguments --------------------------------------------------------------------------------------


def after(found: list[str], *words: str) -> int:
    """Position of `words` as neighbours."""
    return next(i for i in range(len(found)) if tuple(found[i : i + len(words)]) == words)


def test_bubblewraps_arguments(tmp_path: Path) -> None:
    deep, shallow = tmp_path / "home" / "x", tmp_path / "home"
    mounts = (Mount(deep, "/home/agent/x"), Mount(shallow, "/home/agent", writable=True))
    found = arguments(job(tmp_path, mounts=mounts), {"/etc/passwd": 9})
    for needed in ("--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--disable-userns"):
        assert needed in found
    assert after(found, "--cap-drop", "ALL")
    assert after(found, "--ro-bind-data", "9", "/etc/passwd")
    outer = after(found, "--bind", str(shallow), "/home/agent")
    inner = after(found, "--ro-bind", str(deep), "/home/agent/x")
    root = after(found, "--remount-ro", "/")
    assert outer < inner < root
    assert after(found, "--setenv", "A", "--") > root
    assert found[-2:] == ["--chdir", "/workspace"]
    assert "--share-net" not in found


def test_no_private_key_of_the_host_is_bound(tmp_path: Path) -> None:
    found = arguments(job(tmp_path), {})
    bound = [found[i + 1] for i, word in enumerate(found) if word == "--ro-bind"]
    assert "/etc/ssl" not in bound
    assert "/etc" not in bound
    assert not any(path.startswith(("/root", "/home", "/var", "/tmp", "/opt")) for path in bound)


def test_the_gateway_brings_its_socket_and_its_forwarder(tmp_path: Path) -> None:
    served = job(tmp_path, gateway=tmp_path / "g.sock", gateway_port=81)
    argv = bubblewrap.wrapped(served, 7)
    assert argv[1:4] == ("-I", "-S", "/run/trialfleet/forwarder.py")
    options = ("--socket", "/run/trialfleet/gateway.sock", "--port", "81", "--report", "7")
    assert argv[4:] == (*options, "--", "true")
    assert Mount(tmp_path / "g.sock", "/run/trialfleet/gateway.sock") in bubblewrap.shown_mounts(served)
    assert bubblewrap.wrapped(job(tmp_path), None) == ("true",)
    assert bubblewrap.shown_mounts(job(tmp_path)) == ()


def test_paths_inside() -> None:
    mounts = (Mount(Path("/s/ws"), "/workspace", writable=True), Mount(Path("/s"), "/outer"))
    assert inside(Path("/s/ws/a/b.py"), mounts) == "/workspace/a/b.py"
    assert inside(Path("/s/ws"), mounts) == "/workspace"
    assert inside(Path("/s/other"), mounts) == "/outer/other"
    with pytest.raises(ValueError, match="is in no mount"):
        inside(Path("/s2/ws"), mounts)


# --- users and interpreters -------------------------------------------------------------------------


def test_user_ids_are_apart() -> None:
    large = {uid_for(pid, slot, 2**32) for pid in range(1, 200) for slot in range(64)}
    assert len(large) == 199 * 64
    assert min(large) > 10**9
    assert uid_for(2**22, 63, 2**32) < 2**31
    small = [uid_for(pid, slot, 65536) for pid in (1, 4000, 2**22) for slot in range(64)]
    assert all(20000 <= uid < 60000 for uid in small)


def test_mapped_users() -> None:
    assert mapped_users("         0          0 4294967295\n") == 2**32 - 1
    assert mapped_users("0 100000 65536\n") == 65536
    assert mapped_users("") == 0


@pytest.mark.needs("root")
def test_giving_a_folder_away_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    folder = tmp_path / "w"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "f").write_text("x")
    (folder / "a" / "link").symlink_to(outside)
    (folder / "folderlink").symlink_to(tmp_path)
    give(folder, 54321)
    owners = {path.name: path.lstat().st_uid for path in (folder, *folder.rglob("*"))}
    assert set(owners.values()) == {54321}
    assert outside.stat().st_uid == tmp_path.stat().st_uid == 0


def test_program_mounts_follow_every_link(tmp_path: Path) -> None:
    real = tmp_path / "python-3.11.7"
    (real / "bin").mkdir(parents=True)
    (real / "bin" / "python3.11").write_text("")
    alias = tmp_path / "python-3.11"
    alias.symlink_to(real)
    environment = tmp_path / "env"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python3").symlink_to(alias / "bin" / "python3.11")
    (environment / "bin" / "python").symlink_to("python3")
    assert program_mounts(environment) == (Mount(alias, str(alias)), Mount(real, str(real)))


def test_an_interpreter_of_the_system_needs_no_mount(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/usr/bin/python-of-the-system")
    assert program_mounts(tmp_path) == ()


def test_only_base_interpreters_packages_are_hidden(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    assert site_packages(tmp_path) == (packages,)
    (tmp_path / "pyvenv.cfg").write_text("")
    assert site_packages(tmp_path) == ()
    assert site_packages(Path(sys.prefix)) == ()


def test_descriptors_are_closed_once() -> None:
    with Descriptors() as held:
        read_end, write_end = held.pipe()
        held.close(read_end)
        reused = os.dup(write_end)  # takes the number that has just become free
        assert reused == read_end
    os.fstat(reused)  # still open: closing it again would have been another thread's descriptor
    os.close(reused)
    with pytest.raises(OSError):
        os.fstat(write_end)
