"""Where attempts run: the seam between the core and processes, Ray or pods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from trialfleet_controller.classify import Departure
from trialfleet_controller.machine import Liveness
from trialfleet_runner.contract import Start


class AttemptId(NamedTuple):
    """A trial's id and the attempt's number."""

    trial: str
    n: int

    def __str__(self) -> str:
        return f"{self.trial}-{self.n}"


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt to run. `grants`: the JSON that its runner reads; its limits say what it may use. `grants_url`:
    where a runner elsewhere reads the same."""

    id: AttemptId
    grants: bytes
    grants_url: str | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """A launched attempt is over. Only the ledger says how it ended; `departure` counts when that is silent."""

    id: AttemptId
    departure: Departure


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

    @property
    def concurrency(self) -> int:
        """How many launches may be under way at once."""
        ...

    @property
    def detachable(self) -> bool:
        """Whether runners outlive the controller: then an interruption leaves them running for the next one."""
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
        """The ledger has its end: what is left of its runner may go."""
        ...

    def alive(self, start: Start) -> Liveness:
        """Whether the runner that wrote `start`, launched by whom ever, still runs."""
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
