"""Processes of this machine, found in /proc or by psutil."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import psutil


def alive(pid: int) -> bool:
    """False also for a process that has ended and was not waited for."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def unique_seconds() -> str:
    """A time for `sleep` that names the sleepers of one test among all processes of the machine."""
    return f"9{secrets.randbelow(10**9):09}"


def processes_with(text: str) -> list[int]:
    """Live processes whose command line contains `text`, in whatever process namespace they are."""
    return _living("cmdline", text.encode())


def survivors(marker: Path) -> list[int]:
    """Live processes except this one whose environment contains `marker`: everything that a controller started."""
    return [pid for pid in _living("environ", os.fsencode(marker)) if pid != os.getpid()]


def _living(file: str, text: bytes) -> list[int]:
    return [pid for pid, data in _read(file) if text in data and alive(pid)]


def _read(file: str) -> Iterator[tuple[int, bytes]]:
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal():
                yield int(folder.name), (folder / file).read_bytes()
        except OSError:
            continue
