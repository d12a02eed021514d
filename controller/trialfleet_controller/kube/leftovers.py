"""Pods whose attempts are over: which of them may go, and when. Pure; times are monotonic seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from trialfleet_controller.backend import AttemptId

SETTLE_S = 600.0  # at most: what a pod said is in the ledger by then, or nobody is there to write it


@dataclass(frozen=True, slots=True)
class Left:
    """A pod that was reported as over."""

    attempt: AttemptId
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class _Waiting:
    left: Left
    until: float
    failed: bool = False
    settled: bool = False


class Leftovers:
    """A pod may be the only place that knows how its attempt ended: it goes when the ledger knows. The newest
    `keep_failed` that failed stay even then, for people to look at."""

    def __init__(self, *, keep_failed: int) -> None:
        self._keep_failed = keep_failed
        self._waiting: dict[str, _Waiting] = {}  # by uid
        self._failed: deque[Left] = deque()

    def add(self, left: Left, *, now: float, failed: bool) -> None:
        """Reported again, it waits no longer for that."""
        if left.uid not in self._waiting and left not in self._failed:
            self._waiting[left.uid] = _Waiting(left, now + SETTLE_S, failed)

    def again(self, left: Left, at: float) -> None:
        """What could not be deleted goes at `at`."""
        self._waiting[left.uid] = _Waiting(left, at, settled=True)

    def settled(self, attempt: AttemptId) -> None:
        """The ledger has the attempt's end: its pod may go now."""
        for uid, waiting in self._waiting.items():
            if waiting.left.attempt == attempt:
                self._waiting[uid] = replace(waiting, until=0.0, settled=True)

    def due(self, now: float) -> list[Left]:
        """Each once."""
        return self._take(uid for uid, waiting in self._waiting.items() if waiting.until <= now)

    def rest(self) -> list[Left]:
        """At the end: all that may go. What is not settled stays, until somebody adopts its end."""
        return self._take(uid for uid, waiting in self._waiting.items() if waiting.settled)

    def _take(self, uids: Iterable[str]) -> list[Left]:
        taken = [self._waiting.pop(uid) for uid in list(uids)]
        self._failed.extend(waiting.left for waiting in taken if waiting.failed)
        older = [self._failed.popleft() for _ in range(len(self._failed) - self._keep_failed)]
        return [*(waiting.left for waiting in taken if not waiting.failed), *older]
