"""What travels between the supervisor, its dispatchers and the command line: plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from trialfleet_controller.events import Event
from trialfleet_controller.shards import Ending, Lease, Report
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import StoreError


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a dispatcher gave up. `bug`: `message` is a traceback."""

    kind: Literal["operator", "store", "bug"]
    message: str
    where: str | None = None
    hint: str | None = None

    def raised(self) -> Exception:
        """As who runs the campaign raises it."""
        match self.kind:
            case "operator":
                return OperatorError(self.message, where=self.where, hint=self.hint)
            case "store":
                return StoreError(self.message)
            case "bug":
                return RuntimeError(f"a dispatcher failed:\n{self.message}")


@dataclass(frozen=True, slots=True)
class Said:
    """A dispatcher to its supervisor. `held`: the lease it was given last; `ended`: how it stopped; `events`:
    those since the last message that was answered; `missed`: how many more there were."""

    shard: int
    held: Lease | None
    report: Report
    ended: Ending | None = None
    failure: Failure | None = None
    events: Sequence[Event] = ()
    missed: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """The supervisor's answer. `interrupts`: how often the operator has asked to stop."""

    lease: Lease
    interrupts: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """Of the whole campaign. `silent`: shards that have said nothing for long; `ending`: set once every dispatcher
    has stopped; `failure`: the first that gave up; `events`: those since the last summary."""

    report: Report
    silent: tuple[int, ...] = ()
    ending: Ending | None = None
    failure: Failure | None = None
    events: Sequence[Event] = field(default_factory=tuple[Event, ...])
    missed: int = 0


class Unanswered(Exception):
    """The other side is being restarted, or cannot be reached just now: ask again."""


class Supervisor(Protocol):
    """The campaign's supervisor as others see it, in this process or elsewhere. Raises `Unanswered`."""

    def exchange(self, said: Said) -> Reply: ...

    def summary(self, interrupts: int) -> Summary:
        """Tell how often the operator has asked to stop; hear how it stands."""
        ...
