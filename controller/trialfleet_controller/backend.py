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
    """One attempt to run. `grants`: the JSON that its runner reads; its limits say what it may use."""

    id: AttemptId
    grants: bytes


@dataclass(frozen=True, slots=True)
class Finished:
    """A launched attempt is over. Only the ledger says how it ended; `departure` counts when that is silent."""

    id: AttemptId
    departure: Departure


class Backend(Protocol):
    """Launches runners and notices when they go. Used by one thread."""

    @property
    def slots(self) -> int:
        """How many attempts fit at once."""
        ...

    def launch(self, order: Order) -> None:
        """Start a runner. Launching an attempt twice is harmless: its start is claimed once."""
        ...

    def poll(self, timeout_s: float) -> list[Finished]:
        """What finished since the last call, each once; waits up to `timeout_s` for the first."""
        ...

    def alive(self, start: Start) -> Liveness:
        """Whether the runner that wrote `start`, launched by whom ever, still runs."""
        ...

    def stop(self, attempts: Iterable[AttemptId], *, grace_s: float) -> None:
        """Ask them to stop; kill what is still there after `grace_s`. Returns at once: `poll` tells."""
        ...

    def close(self) -> None:
        """Kill what still runs. When it returns, nothing that this backend launched lives."""
        ...
