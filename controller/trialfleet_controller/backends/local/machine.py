"""Identifies this machine, and tells whether the runner that claimed an attempt is alive on it."""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import suppress
from pathlib import Path

import psutil

from trialfleet_controller.backends.protocol import Liveness
from trialfleet_ledger.machine import boot_id, machine_id
from trialfleet_ledger.records.attempt import Start
from trialfleet_ledger.records.directives import Epoch

CLOCK_SLACK_S = 5.0  # between a process's creation time and a record that it wrote later


def host() -> str:
    return socket.gethostname()


def whereabouts(record: Start | Epoch) -> Liveness:
    """Of the machine that wrote `record`: ALIVE when it is this one and has not restarted, REBOOTED when it has,
    else UNKNOWN. A name alone is no machine: one that has another boot must have the same id."""
    if record.host != host():
        return Liveness.UNKNOWN
    if record.boot_id == boot_id():
        return Liveness.ALIVE
    same = record.machine is not None and record.machine == machine_id()
    return Liveness.REBOOTED if same else Liveness.UNKNOWN


def runner_liveness(start: Start) -> Liveness:
    """The lock on the runner's scratch folder decides; without the file, whether its process is still there."""
    here = whereabouts(start)
    if here in (Liveness.UNKNOWN, Liveness.REBOOTED):
        return here
    held = _lock_held(Path(start.scratch) / "lock")
    if held is None:
        held = process_lives(start.pid, before=start.at)
    return Liveness.ALIVE if held else Liveness.GONE


def process_lives(pid: int, *, before: float) -> bool:
    """Whether process `pid` runs and is not a later process with a reused number (created after `before`)."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        running = process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        return running and process.create_time() <= before + CLOCK_SLACK_S
    return False


def _lock_held(path: Path) -> bool | None:
    """None: no such file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
