"""The folder of a local backend: grants for its runners, their pids and their last words."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from trialfleet_controller.backend import Order
from trialfleet_runner.attempt.scratch import LOCK, scratch_root


@dataclass(frozen=True)
class Desk:
    """What one launch needs: an attempt that is launched twice has two."""

    stem: Path

    @property
    def grants(self) -> Path:
        return self.stem.with_suffix(".json")

    @property
    def log(self) -> Path:
        return self.stem.with_suffix(".log")

    @property
    def pid(self) -> Path:
        return self.stem.with_suffix(".pid")

    def clear(self) -> None:
        for path in (self.grants, self.log, self.pid):
            path.unlink(missing_ok=True)


class WorkFolder:
    """Private to this user (grants are in it), removed by `close`. Left behind by SIGKILL: `gc` removes it."""

    def __init__(self, parent: Path | None = None) -> None:
        above = parent or scratch_root()
        above.mkdir(mode=0o711, parents=True, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(prefix="controller-", dir=above))
        # Held while this process lives: `gc` tells what a killed controller left from what is in use.
        self._launches = itertools.count(1)
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def desk(self, order: Order) -> Desk:
        """Files of one launch, with the grants in place."""
        desk = Desk(self.path / f"{order.id}-{next(self._launches)}")
        descriptor = os.open(desk.grants, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(order.grants)
        return desk

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
