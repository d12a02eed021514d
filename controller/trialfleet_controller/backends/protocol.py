"""The Protocol of backends: how the dispatcher runs attempts as processes, under Ray or as pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from trialfleet_controller.backends.runner_termination import RunnerTermination
from trialfleet_ledger.records.attempt import Intent, Start

LIVE_PODS = 2500  # the most for one dispatcher, which has one namespace


class AttemptId(NamedTuple):
    """A trial's id and the attempt's number."""

    trial: str
    n: int

    def __str__(self) -> str:
        return f"{self.trial}-{self.n}"


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt to run. `grants`: the JSON that its runner reads; its limits say what it may use. `grants_url`:
    where a runner elsewhere reads the same. `block`, `position`: its trial's place in launch order."""

    id: AttemptId
    grants: bytes
    grants_url: str | None = None
    block: int = 0
    position: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """A launched attempt is over. Only the ledger says how it ended; `departure` counts when that is silent."""

    id: AttemptId
    departure: RunnerTermination


class Wait(StrEnum):
    """What keeps a launched attempt from running."""

    QUEUED = "queued"  # a gate of a queue, as Kueue sets it
    NO_CPU = "no_cpu"  # no node has enough left of it
    NO_MEMORY = "no_memory"
    NO_DISK = "no_disk"
    NO_POD = "no_pod"  # each node has as many pods as it may
    UNSCHEDULABLE = "unschedulable"  # no node takes it for another reason
    IMAGE_PULL = "image_pull"
    STARTING = "starting"  # anything else

    @property
    def words(self) -> str:
        """For people: why.

        >>> Wait.NO_CPU.words
        'no node has the CPU'
        """
        return _WAIT_WORDS[self]


_WAIT_WORDS = {
    Wait.QUEUED: "in a queue",
    Wait.NO_CPU: "no node has the CPU",
    Wait.NO_MEMORY: "no node has the memory",
    Wait.NO_DISK: "no node has the disk",
    Wait.NO_POD: "no node may have more pods",
    Wait.UNSCHEDULABLE: "no node is suitable",
    Wait.IMAGE_PULL: "image",
    Wait.STARTING: "starting",
}


def wait_words(pending: Mapping[Wait, int]) -> str:
    """What pending attempts wait for.

    >>> wait_words({Wait.STARTING: 1, Wait.QUEUED: 4, Wait.NO_CPU: 2})
    '4 in a queue, 2 because no node has the CPU, 1 starting'
    """
    waits = ((pending[wait], wait) for wait in Wait if pending.get(wait))
    return ", ".join(f"{count}{' because' if wait in SHORTAGES else ''} {wait.words}" for count, wait in waits)


SHORTAGES = (Wait.NO_CPU, Wait.NO_MEMORY, Wait.NO_DISK, Wait.NO_POD, Wait.UNSCHEDULABLE)


class Liveness(StrEnum):
    ALIVE = "alive"
    GONE = "gone"
    REBOOTED = "rebooted"  # gone, with the machine it ran on
    UNKNOWN = "unknown"  # it ran where this controller cannot look


class TooLate(Exception):
    """The place had no room for so long that the order's signatures may end before its attempt would."""


class Backend(Protocol):
    """Launches runners and notices when they go. `launch` and `alive` are called from up to `concurrency` threads
    at once, everything else from one, which waits for nothing but `poll`."""

    @property
    def slots(self) -> int:
        """How many attempts fit at once."""
        ...

    @property
    def working(self) -> int:
        """How many attempts are past waiting for a place."""
        ...

    def waiting(self) -> Mapping[AttemptId, Wait]:
        """Those that do not run yet, as far as the place says why."""
        ...

    @property
    def concurrency(self) -> int:
        """How many launches may be under way at once."""
        ...

    @property
    def detachable(self) -> bool:
        """Whether runners outlive the controller: then an interruption leaves them running for the next one."""
        ...

    @property
    def cluster_id(self) -> str | None:
        """The identity of the cluster that runs its pods; None: it has none, or it is not known."""
        ...

    def launch(self, order: Order) -> None:
        """Start a runner. Launching an attempt twice is harmless: its start is claimed once. Raises `TooLate`: it
        is to be signed again."""
        ...

    def adopt(self, attempt: AttemptId, start: Start | None) -> bool:
        """Track an attempt that an earlier controller launched; without a `start`, one that may still wait for its
        place. True: `poll` will tell when it is over. False: it is not known here, or not yet."""
        ...

    def poll(self, timeout_s: float) -> list[Finished]:
        """What finished since the last call, each once; waits up to `timeout_s` for the first."""
        ...

    def settled(self, attempt: AttemptId) -> None:
        """The ledger has its end: the rest of its runner may be removed."""
        ...

    def alive(self, start: Start) -> Liveness:
        """Whether the runner that wrote `start` is alive, regardless of which controller launched it."""
        ...

    def kept_patch(self, intent: Intent) -> bytes | None:
        """What the agent of this intent left, where its runner could not store it and this backend can read it."""
        ...

    def keep_stop(self, intent: Intent) -> None:
        """Note, where this backend can, that the operator stops the runner of this intent: the store does not take
        its end."""
        ...

    def stop_kept(self, intent: Intent) -> bool:
        """Whether such a note is there."""
        ...

    def renew(self, attempt: AttemptId, grants_url: str) -> None:
        """Pass fresh grants to an adopted attempt's runner: its own may be refused. Called from any thread. A
        failure leaves the runner with those that it has."""
        ...

    def stop(self, attempts: Iterable[AttemptId], *, grace_s: float) -> None:
        """Ask them to stop; kill what is still there after `grace_s`. Returns at once: `poll` tells."""
        ...

    def withdraw(self, attempts: Iterable[AttemptId]) -> None:
        """Give up launches that still wait: `poll` tells of them as of others. What has been launched goes on.
        Returns at once."""
        ...

    def close(self) -> None:
        """Stop tracking. Where runners are not `detachable`, kill what still runs: when it returns, nothing that
        this backend launched lives."""
        ...
