"""The folder of a local backend: grants for its runners, their pids and their last words."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from trialfleet_controller.backend import AttemptId, Order
from trialfleet_runner.attempt.scratch import LOCK, scratch_root


class WorkFolder:
    """Private to this user (grants are in it), removed by `close`. Left behind by SIGKILL: `gc` removes it."""

    def __init__(self, parent: Path | None = None) -> None:
        above = parent or scratch_root()
        above.mkdir(mode=0o711, parents=True, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(prefix="controller-", dir=above))
        # Held while this process lives: `gc` tells what a killed controller left from what is in use.
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def put_grants(self, order: Order) -> Path:
        path = self.path / f"{order.id}.json"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(order.grants)
        return path

    def log(self, attempt: AttemptId) -> Path:
        return self.path / f"{attempt}.log"

    def pid(self, attempt: AttemptId) -> Path:
        return self.path / f"{attempt}.pid"

    def forget(self, attempt: AttemptId) -> None:
        for suffix in ("json", "log", "pid"):
            with suppress(FileNotFoundError):
                (self.path / f"{attempt}.{suffix}").unlink()

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
