"""Whether a program or others have filled the host's disk: what vanished there, and the program's own growth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.attempt_ends import EndEvent, loss_of_event
from trialfleet_ledger.records.agent import Limits
from trialfleet_runner.attempt.loss import FULL_BYTES, FULL_INODES, Lost, find_full
from trialfleet_sandbox.folder_usage import FolderUsage, measure_folder
from trialfleet_sandbox.watch import free_space

_FEW = (FULL_BYTES, FULL_INODES)


@dataclass(frozen=True)
class RoomSample:
    """Free space of the file system of a folder, bytes and inodes, and what the folder takes of it."""

    free: tuple[int, int]
    taken: FolderUsage

    @classmethod
    def of(cls, folder: Path) -> RoomSample:
        """Measured now; a folder that is gone takes nothing."""
        return cls(free_space(folder), measure_folder(folder))


def is_within_limits(before: RoomSample, after: RoomSample, limits: Limits) -> bool:
    """Whether the program's own growth is within its limits and less than half of what vanished. It is not where
    the program kept a folder from being read: what is there may be the whole disk.

    >>> limits = Limits(disk_bytes=100, inodes=100)
    >>> start = RoomSample((10**9, 1000), FolderUsage(0, 0))
    >>> is_within_limits(start, RoomSample((0, 900), FolderUsage(80, 10)), limits)  # others took the rest
    True
    >>> is_within_limits(start, RoomSample((0, 900), FolderUsage(80, 10, incomplete=True)), limits)
    False
    >>> is_within_limits(start, RoomSample((10**9, 0), FolderUsage(10, 600)), limits)
    False
    """
    if after.taken.incomplete:
        return False
    grown = [
        after.taken.size_bytes - before.taken.size_bytes,
        after.taken.inodes - before.taken.inodes,
    ]
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
