"""Room on the disk: what fails on a full one says nothing about the task."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.full_disk import is_full

ROOM_BYTES = 2 * 2**30  # an environment and the copies of a few test runs


def refuse_full_disk(*folders: Path) -> None:
    """Raises `OperatorError` where less than `ROOM_BYTES` are left beside one of them."""
    for folder in folders:
        free = shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.is_dir())).free
        if free < ROOM_BYTES:
            raise _full(folder, f"has {free / 2**20:,.0f} MiB left")


@contextmanager
def full_disk_named(cache: Path) -> Generator[None]:
    """Raises `OperatorError` where a system call inside finds no room."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise _full(cache, "or the disk of temporary files is full") from error


def _full(folder: Path, words: str) -> OperatorError:
    return OperatorError(
        f"the disk of {folder} {words}",
        hint="what is finished is kept. Free some room (the cache's environments can be deleted: they are built "
        "again when needed) or set $TRIALFLEET_CACHE and $TRIALFLEET_SCRATCH to another disk; then call it again",
    )
