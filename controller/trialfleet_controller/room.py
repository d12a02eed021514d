"""Is there room on this machine's disks for the attempts that will run?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from trialfleet_controller.checks import Check
from trialfleet_runner.attempt.scratch import scratch_root
from trialfleet_runner.cache import cache_root
from trialfleet_runner.campaign import LimitSpec
from trialfleet_runner.contract import Limits

CACHE_BYTES = 2 * 2**30  # environments and sources of a few tasks


def space_checks() -> Iterator[Check]:
    """Without a campaign: of scratch, what its default limit would ask for."""
    yield attempts_fit(free_bytes(scratch_root()), LimitSpec().disk, 1, campaign=False)
    cache = cache_root()
    free = free_bytes(cache)
    if free is not None and free >= CACHE_BYTES:
        yield Check("cache", "ok", f"{cache}, {gib(free)} free")
    else:
        mend = f"free at least {gib(CACHE_BYTES)}, or set $TRIALFLEET_CACHE"
        yield Check("cache", "missing", f"{cache}, {_said(free)}", mend)


def campaign_check(limits: Limits, slots: int) -> Check:
    return attempts_fit(free_bytes(scratch_root()), limits.disk_bytes, slots, campaign=True)


def attempts_fit(free: int | None, limit: int, slots: int, *, campaign: bool) -> Check:
    """`free`: bytes below the scratch folder, None: it cannot be written. An attempt begins only where its whole
    limit is free; side by side they rarely use it all, so less room for the others is a warning."""
    name, found = ("disk" if campaign else "scratch"), f"{scratch_root()}, {_said(free)}"
    variable = "set $TRIALFLEET_SCRATCH to a folder of another disk"
    if free is None:
        return Check(name, "missing", found, variable)
    if free < limit:
        asked = f"an attempt begins only with {gib(limit)} free (limits.disk{'' if campaign else ', by default'})"
        mend = f"free some, lower limits.disk, or {variable}"
        return Check(name, "missing" if campaign else "warning", f"{found}; {asked}", mend)
    if free < slots * limit:
        found = f"{found}; {slots} trials at a time may use {gib(slots * limit)} (limits.disk)"
        return Check(name, "warning", found, "free some, or lower limits.parallel or limits.disk")
    return Check(name, "ok", found)


def free_bytes(folder: Path) -> int | None:
    """Below `folder`, which need not exist; None when it cannot be written."""
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    return shutil.disk_usage(there).free if os.access(there, os.W_OK) else None


def gib(size: int) -> str:
    """
    >>> gib(8 * 2**30)
    '8.0 GiB'
    """
    return f"{size / 2**30:.1f} GiB"


def _said(free: int | None) -> str:
    return "not writable" if free is None else f"{gib(free)} free"
