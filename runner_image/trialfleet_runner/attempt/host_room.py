"""Whether a program or others have filled the host's disk: what vanished there, and the program's own growth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.attempt_ends import EndEvent, loss_of_event
from trialfleet_ledger.records.agent import Limits
from trialfleet_runner.attempt.loss import FULL_BYTES, FULL_INODES, Lost, find_full
from trialfleet_sandbox.watch import folder_usage, free_space

_FEW = (FULL_BYTES, FULL_INODES)


@dataclass(frozen=True)
class RoomSample:
    """Free space of the file system of a folder, and what the folder takes of it: bytes and inodes."""

    free: tuple[int, int]
    taken: tuple[int, int]

    @classmethod
    def of(cls, folder: Path) -> RoomSample:
        """Measured now; a folder that is gone takes nothing."""
        return cls(free_space(folder), folder_usage(folder))


def is_within_limits(before: RoomSample, after: RoomSample, limits: Limits) -> bool:
    """Whether the program's own growth is within its limits and less than half of what vanished.

    >>> limits = Limits(disk_bytes=100, inodes=100)
    >>> start = RoomSample((10**9, 1000), (0, 0))
    >>> is_within_limits(start, RoomSample((0, 900), (80, 10)), limits)  # others took the rest
    True
    >>> is_within_limits(start, RoomSample((10**9, 0), (10, 600)), limits)
    False
    """
    grown = [now - then for now, then in zip(after.taken, before.taken, strict=True)]
    vanished = [then - now for now, then in zip(after.free, before.free, strict=True)]
    if grown[0] > limits.disk_bytes or grown[1] > limits.inodes:
        return False
    scarce = [now < few for now, few in zip(after.free, _FEW, strict=True)]
    shares = zip(scarce, grown, vanished, strict=True)
    return not any(full and own > 0 and 2 * own >= gone for full, own, gone in shares)


def has_filled_host(folder: Path, before: RoomSample, limits: Limits) -> bool:
    """Whether the program that ran since `before` filled the disk of `folder` itself; False: there is room. Raises
    `Lost(host_full)` if others filled it."""
    why = find_full(folder)
    if why is None:
        return False
    within = is_within_limits(before, RoomSample.of(folder), limits)
    loss = loss_of_event(EndEvent.HOST_FULL, within_limits=within)
    if loss is not None:
        raise Lost(loss, why)
    return True
