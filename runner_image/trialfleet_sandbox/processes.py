"""What /proc says about a tree of processes, read without walking every process of the machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from trialfleet_sandbox.supervisor import PR_SET_CHILD_SUBREAPER, prctl

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PART_BYTES = 2**16
_PR_GET_CHILD_SUBREAPER = 37


@dataclass(frozen=True)
class Process:
    """One line of /proc/<pid>/stat. `waited_core_s` is the CPU time of children it has already waited for.
    `thread`: whose entry in /proc shows memory and open files; another one than the first, if that has ended."""

    pid: int
    parent: int
    session: int
    stopped: bool
    core_s: float
    waited_core_s: float
    rss_bytes: int
    thread: int
    threads: int


def read(pid: int) -> Process | None:
    """The process, or None when there is none."""
    f = _read_stat(pid)
    if f is None:
        return None
    thread, shown = _living_thread(pid) or (pid, f) if f[0] == b"Z" else (pid, f)
    return Process(
        pid=pid,
        parent=int(f[1]),
        session=int(f[3]),
        stopped=f[0] == b"T",
        core_s=(int(f[11]) + int(f[12])) * _TICK_S,
        waited_core_s=(int(f[13]) + int(f[14])) * _TICK_S,
        rss_bytes=int(shown[21]) * _PAGE,
        thread=thread,
        threads=int(f[17]),
    )


def read_proc(path: str) -> bytes:
    """A file of /proc; empty where there is none, or none that this user may read. Read often: a file object would
    double the cost."""
    parts: list[bytes] = []
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while part := os.read(fd, _PART_BYTES):
                parts.append(part)
        finally:
            os.close(fd)
    return b"".join(parts)


def _read_stat(pid: int) -> list[bytes] | None:
    """The fields of /proc/<pid>/stat from the state on."""
    text = read_proc(f"/proc/{pid}/stat")
    return (
        text[text.rindex(b")") + 2 :].split() if text else None
    )  # the name before may hold spaces and parentheses


def _living_thread(pid: int) -> tuple[int, list[bytes]] | None:
    """A thread that has not ended, with its fields."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for name in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            fields = _read_stat(int(name))
            if fields is not None and fields[0] not in b"ZX":
                return int(name), fields
    return None


def children(pid: int) -> list[int]:
    """Direct children, in the order in which each thread started them."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [child for task in tasks for child in _children_of_thread(pid, task)]


def _children_of_thread(pid: int, thread: int | str) -> list[int]:
    return [int(child) for child in read_proc(f"/proc/{pid}/task/{thread}/children").split()]


def descendants(pid: int) -> list[Process]:
    """Every process below `pid`, without `pid`; what ends meanwhile may be missing."""
    found: list[Process] = []
    todo = children(pid)
    seen = {pid}
    while todo:
        child = todo.pop()
        if child in seen:
            continue
        seen.add(child)
        process = read(child)
        if process is not None:
            found.append(process)
            todo.extend(children(child) if process.threads > 1 else _children_of_thread(child, child))
    return found


def send(pid: int, number: signal.Signals) -> None:
    """A signal to a process that may already be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


# --- adopting orphans -------------------------------------------------------------------------------


@dataclass
class _Adoption:
    """Of this whole process: the kernel's flag belongs to the process, not to a thread."""

    lock: threading.Lock
    inside: int = 0
    was: bool = False
    roots: set[int] = field(default_factory=set[int])


_adoption = _Adoption(threading.Lock())


def _is_adopter() -> bool:
    value = ctypes.c_int()
    prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(value))
    return bool(value.value)


@contextlib.contextmanager
def adopting() -> Generator[None]:
    """Orphans of our children come to us instead of pid 1, while at least one thread is inside."""
    with _adoption.lock:
        if _adoption.inside == 0:
            _adoption.was = _is_adopter()
        _adoption.inside += 1
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        with _adoption.lock:
            _adoption.inside -= 1
            if _adoption.inside == 0 and not _adoption.was:
                prctl(PR_SET_CHILD_SUBREAPER, 0)


def owned(start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Start a sandbox's own process. `kill_adopted` of another thread leaves it alone from its first moment on,
    until `disown`."""
    with _adoption.lock:
        process = start()
        _adoption.roots.add(process.pid)
        return process


def disown(pid: int) -> None:
    """Ends `owned`."""
    with _adoption.lock:
        _adoption.roots.discard(pid)


def kill_adopted() -> None:
    """Kill and reap orphans that came to this process: children in a session that is not ours and that no
    sandbox of this process owns. Needed when a hostile program has killed its own supervisor."""
    session = os.getsid(0)
    while True:
        with _adoption.lock:  # a process that another thread starts meanwhile would look like a stray
            strays = [
                p
                for p in map(read, children(os.getpid()))
                if p is not None and p.session != session and p.pid not in _adoption.roots
            ]
        if not strays:
            return
        for stray in strays:
            for process in (stray, *descendants(stray.pid)):
                send(process.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(stray.pid, 0)


def read_available(fd: int) -> bytes:
    """Everything that a non-blocking descriptor holds now."""
    found = b""
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(fd, 4096):
            found += chunk
    return found
