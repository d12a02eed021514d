"""`guard.py FOLDER`: when standard input ends, kill every process of the Ray that lives in FOLDER, and remove it.

Run as a program of its own, with nothing but the standard library. Its standard input is a pipe that the
controller holds, so it acts when the controller is gone, by SIGKILL too. Ray's own daemons mostly follow their
driver, but a worker that is just starting can wait a minute for a raylet that is dead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time

VARIABLE = "TRIALFLEET_RAY_FOLDER"  # in the environment of Ray's daemons, hence of its workers and their runners
LONGEST_S = 20.0
QUIET_S = 0.3  # as long as nothing is found: a dying parent may just have started a child


def belongs(pid: str, folder: str) -> bool:
    """Whether the process is of that Ray: by its environment, an option, or where its output goes (workers write
    their title over the first two)."""
    try:
        for name in ("environ", "cmdline"):
            with open(f"/proc/{pid}/{name}", "rb") as file:  # noqa: PTH123 - start-up time counts
                if b"=" + os.fsencode(folder) in file.read():
                    return True
        outputs = (os.readlink(f"/proc/{pid}/fd/{number}") for number in (1, 2))  # noqa: PTH115
        return any(output.startswith(folder) for output in outputs)
    except OSError:
        return False


def members(folder: str) -> list[int]:
    """Processes of that Ray, this one apart."""
    own = str(os.getpid())
    pids = (name for name in os.listdir("/proc") if name.isdecimal() and name != own)  # noqa: PTH208
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
                with open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123
                    todo += [int(child) for child in file.read().split()]
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
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
