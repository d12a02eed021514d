"""Rules shared by backends whose runners are processes of this machine and die with their controller."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trialfleet_controller.backends.local import machine
from trialfleet_controller.backends.protocol import AttemptId, Finished, Liveness, Order, Wait
from trialfleet_controller.backends.runner_termination import RunnerTermination
from trialfleet_ledger.owned_folder import claim_folder
from trialfleet_ledger.records.attempt import End, Intent, Start
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_runner.kept_records import forget_attempt, has_kept_stop, keep_stop, load_kept_patch
from trialfleet_sandbox.scratch import LOCK, claim_scratch


@dataclass(frozen=True)
class LaunchFiles:
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

    @property
    def last_words(self) -> Path:
        return self.stem.with_suffix(".end")

    def stopped_end(self) -> End | None:
        """The loss that a runner left to its controller because it was told to stop. Nothing else counts: the file
        is no commit, so it cannot hold a verdict."""
        try:
            end = End.model_validate_json(self.last_words.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None
        return end if end.loss is not None and end.loss.loss is LossClass.TERMINATED else None

    def clear(self) -> None:
        for path in (self.grants, self.log, self.pid, self.last_words):
            path.unlink(missing_ok=True)


class RunDirectory:
    """Private to this user (grants are in it), removed by `close`. Left behind by SIGKILL: `gc` removes it."""

    def __init__(self, parent: Path | None = None) -> None:
        above = claim_scratch() if parent is None else claim_folder(parent, "scratch")
        self.path = Path(tempfile.mkdtemp(prefix="controller-", dir=above.path))
        # Held while this process lives: `gc` tells what a killed controller left from what is in use.
        self._launches = itertools.count(1)
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def files(self, order: Order) -> LaunchFiles:
        """Of one launch, with the grants in place."""
        files = LaunchFiles(self.path / f"{order.id}-{next(self._launches)}")
        descriptor = os.open(files.grants, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(order.grants)
        return files

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


@dataclass
class Launched:
    """A runner of this backend. `kill_at`: when patience with a stop is over, on the monotonic clock."""

    id: AttemptId
    files: LaunchFiles
    kill_at: float | None = None

    def finished(self, code: int | None, words: str) -> Finished:
        """Its report, after which its files are gone. `code`, `words`: as in `RunnerTermination`."""
        end = self.files.stopped_end()
        self.files.clear()
        return Finished(self.id, RunnerTermination(code=code, words=words, last_words=end))


class RunnersHere(ABC):
    """The part of `Backend` that both local backends share. Their argument `runner`: a command that is executed
    for each attempt with the path of its grants; None: `attempt.fork_server` forks the runners."""

    def __init__(self, *, slots: int, work: Path | None) -> None:
        self._slots = slots
        self._work = RunDirectory(work)
        self._launched: dict[Any, Launched] = {}  # by what the backend knows a runner by

    @abstractmethod
    def _over(self, timeout_s: float) -> Iterable[Any]:
        """The keys of runners that have ended; waits up to `timeout_s` for the first."""

    @abstractmethod
    def _collect(self, key: Any) -> Finished: ...

    @abstractmethod
    def _ask_to_stop(self, key: Any) -> None: ...

    @abstractmethod
    def _kill(self, key: Any) -> None: ...

    @property
    def slots(self) -> int:
        return self._slots

    @property
    def working(self) -> int:
        return len(self._launched)

    @property
    def concurrency(self) -> int:
        return 1

    @property
    def detachable(self) -> bool:
        return False

    @property
    def cluster_id(self) -> None:
        return None

    def adopt(self, attempt: AttemptId, start: Start | None) -> bool:
        return False  # its process is another's child: only the lock on its folder tells

    def waiting(self) -> dict[AttemptId, Wait]:
        return {}  # a process that is started runs

    def poll(self, timeout_s: float) -> list[Finished]:
        now = time.monotonic()
        for key, launched in self._launched.items():
            if launched.kill_at is not None and now >= launched.kill_at:
                self._kill(key)
        if not self._launched:
            time.sleep(timeout_s)
            return []
        return [self._collect(key) for key in self._over(timeout_s)]

    def stop(self, attempts: Iterable[AttemptId], *, grace_s: float) -> None:
        wanted = set(attempts)
        for key, launched in self._launched.items():
            if launched.id in wanted:
                launched.kill_at = time.monotonic() + grace_s
                self._ask_to_stop(key)

    def kept_patch(self, intent: Intent) -> bytes | None:
        return load_kept_patch(intent.trial, intent.attempt, intent.nonce)

    def keep_stop(self, intent: Intent) -> None:
        keep_stop(intent.trial, intent.attempt, intent.nonce)

    def stop_kept(self, intent: Intent) -> bool:
        return has_kept_stop(intent.trial, intent.attempt, intent.nonce)

    def renew(self, attempt: AttemptId, grants_url: str) -> None:
        return  # none is adopted, so none has grants that an earlier controller signed

    def settled(self, attempt: AttemptId) -> None:
        """Nothing is left of a process but what the store had refused."""
        forget_attempt(*attempt)

    def alive(self, start: Start) -> Liveness:
        return machine.runner_liveness(start)

    def withdraw(self, attempts: Iterable[AttemptId]) -> None:
        return  # no launch waits here
