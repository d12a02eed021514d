"""`ray_reaper.py FOLDER`: when standard input ends, kill every process of the Ray that lives in FOLDER, and remove
it.

It runs as a separate program with the standard library only. Its standard input is a pipe that the
controller holds, so it acts when the controller is gone, by SIGKILL too. Ray's own daemons mostly follow their
driver, but a worker that is just starting can wait a minute for a raylet that is dead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` would double the start-up time
    from collections.abc import Iterator

MARKER = ".trialfleet-folder"
VARIABLE = "TRIALFLEET_RAY_FOLDER"  # in the environment of Ray's daemons, hence of its workers and their runners
LONGEST_S = 20.0
QUIET_S = 0.3  # as long as nothing is found: a dying parent may just have started a child


def belongs(pid: str, folder: str) -> bool:
    """Whether the process belongs to that Ray: by its environment, an option, or a file that it may write to (some
    processes overwrite the first two with their title)."""
    return any(
        b"=" + os.fsencode(folder) in _read(f"/proc/{pid}/{name}") for name in ("environ", "cmdline")
    ) or any(path.startswith(folder) for path in _written_files(pid))


def _read(path: str) -> bytes:
    """Empty when the process has gone."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - start-up time counts
            return file.read()
    except OSError:
        return b""


def _written_files(pid: str) -> Iterator[str]:
    """A process that only reads Ray's logs does not belong to it."""
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            link = f"/proc/{pid}/fd/{number}"
            with contextlib.suppress(OSError):
                if os.lstat(link).st_mode & stat.S_IWUSR:
                    yield os.readlink(link)  # noqa: PTH115


def members(folder: str) -> list[int]:
    """Processes of that Ray, without this one and its parent: a controller that continues has logs there."""
    apart = {str(os.getpid()), str(os.getppid())}
    pids = (name for name in os.listdir("/proc") if name.isdecimal() and name not in apart)  # noqa: PTH208
    return [int(pid) for pid in pids if belongs(pid, folder)]


def below(pids: list[int]) -> list[int]:
    """These and every descendant: a child that is just executing its program has no environment to read yet."""
    found: list[int] = []
    todo = list(pids)
    while todo:
        pid = todo.pop()
        if pid in found:
            continue
        found.append(pid)
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
                todo += [int(child) for child in _read(f"/proc/{pid}/task/{task}/children").split()]
    return found


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def sweep(folder: str) -> None:
    """Kill until nothing is found for a while."""
    end = time.monotonic() + LONGEST_S
    quiet = time.monotonic()
    while time.monotonic() < end and time.monotonic() - quiet < QUIET_S:
        found = members(folder)
        if found:
            send(found, signal.SIGSTOP)  # what is stopped starts nothing between the look and the kill
            send(below(found), signal.SIGKILL)
            quiet = time.monotonic()
        time.sleep(0.05)


def main() -> None:
    folder = sys.argv[1]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    sweep(folder)
    if is_marked(folder):
        remove_marked(folder)


def remove_marked(folder: str) -> None:
    """The marker goes last: a reaper that is killed leaves the proof to `gc`."""
    for name in os.listdir(folder):  # noqa: PTH208
        path = f"{folder}/{name}"
        if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
            shutil.rmtree(path, ignore_errors=True)
        elif name != MARKER:
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108
    shutil.rmtree(folder, ignore_errors=True)


def is_marked(folder: str) -> bool:
    """Whether the controller created the folder: it holds the marker of `trialfleet_ledger.owned_folder`."""
    return not os.path.islink(folder) and b'"trialfleet-ray"' in _read(f"{folder}/{MARKER}")  # noqa: PTH114


if __name__ == "__main__":
    main()
