"""How many attempts fit on this machine at once, and what happens when its disk is full."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.store.full_disk import is_full

UNBOUNDED = 1_000_000  # limits.parallel not given: as many as the place where they run allows


@dataclass(frozen=True, slots=True)
class MachineSize:
    """What attempts on one machine share."""

    cpus: int
    memory_bytes: int

    @staticmethod
    def here() -> MachineSize:
        """The CPUs that this process may use, and the machine's memory."""
        return MachineSize(len(os.sched_getaffinity(0)), psutil.virtual_memory().total)


def slots(limits: Limits, *, cpus: int, memory_bytes: int) -> int:
    """Attempts side by side. Raises `OperatorError` when not even one fits.

    >>> slots(Limits(cpu=1, memory_bytes=2**30), cpus=4, memory_bytes=3 * 2**30)
    3
    """
    if limits.memory_bytes > memory_bytes:
        asked, there = limits.memory_bytes / 2**30, memory_bytes / 2**30
        raise OperatorError(
            f"one trial may use {asked:.1f} GiB, this machine has {there:.1f}",
            where="limits: memory",
            hint="lower limits.memory, or use a larger machine",
        )
    if limits.cpu > cpus:
        raise OperatorError(
            f"one trial uses {limits.cpu:g} CPUs, this machine has {cpus}",
            where="limits: cpu",
            hint="lower limits.cpu, or use a larger machine",
        )
    return min(int(cpus / limits.cpu), memory_bytes // limits.memory_bytes)


def local_slots(limits: Limits, parallel: int) -> int:
    """As `slots`, for the CPUs this process may use and the machine's memory, at most `parallel`."""
    here = MachineSize.here()
    return min(slots(limits, cpus=here.cpus, memory_bytes=here.memory_bytes), parallel)


@contextmanager
def disk_room(folders: str) -> Generator[None]:
    """Turns the block's "disk full" and "quota spent" into an `OperatorError`. `folders`: where it writes, for
    errors that name no file."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise OperatorError(
            f"the disk is full, or a quota is spent: {error.strerror}",
            where=str(error.filename or folders),
            hint="make room (`trialfleet gc`, `trialfleet doctor`) and call again: nothing is lost",
        ) from error
