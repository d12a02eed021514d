"""Messages between supervisor, dispatchers and command line, and how often they are sent: plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from trialfleet_controller.dispatch.events import CampaignEvent
from trialfleet_controller.dispatch.shards import DispatcherStatus, Ending, Lease
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.protocol import StoreError


@dataclass(frozen=True, slots=True)
class DispatcherFailure:
    """Why a dispatcher gave up. `bug`: `message` is a traceback."""

    kind: Literal["operator", "store", "bug"]
    message: str
    where: str | None = None
    hint: str | None = None

    def raised(self) -> Exception:
        """The exception that the command line raises."""
        match self.kind:
            case "operator":
                return OperatorError(self.message, where=self.where, hint=self.hint)
            case "store":
                return StoreError(self.message, hint=self.hint)
            case "bug":
                return RuntimeError(f"a dispatcher failed:\n{self.message}")


@dataclass(frozen=True, slots=True)
class ShardReport:
    """From a dispatcher to its supervisor. `held`: the last lease it received; `ended`: how it stopped; `events`:
    since the last message that was answered; `missed`: how many more there were."""

    shard: int
    held: Lease | None
    report: DispatcherStatus
    ended: Ending | None = None
    failure: DispatcherFailure | None = None
    events: Sequence[CampaignEvent] = ()
    missed: int = 0


@dataclass(frozen=True, slots=True)
class SupervisorReply:
    """The supervisor's answer. `interrupts`: how often the operator has asked to stop."""

    lease: Lease
    interrupts: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """Of the whole campaign. `silent`: shards that have not reported for long; `ending`: set once every dispatcher
    has stopped; `failure`: the first one; `events`: since the last summary."""

    report: DispatcherStatus
    silent: tuple[int, ...] = ()
    ending: Ending | None = None
    failure: DispatcherFailure | None = None
    events: Sequence[CampaignEvent] = field(default_factory=tuple[CampaignEvent, ...])
    missed: int = 0


class Unanswered(Exception):
    """The other side is restarting or cannot be reached: ask again."""


class Supervisor(Protocol):
    """The campaign's supervisor, in this process or elsewhere. Raises `Unanswered`."""

    def exchange(self, said: ShardReport) -> SupervisorReply: ...

    def summary(self, interrupts: int) -> Summary:
        """Report how often the operator has asked to stop; returns the campaign's status."""
        ...


STILL = 4.0


@dataclass(frozen=True, slots=True)
class PollBackoff:
    """Seconds. `wait_s`: until the next message: `busy_s` after news, else doubled, up to `STILL` times `busy_s`.

    >>> backoff = PollBackoff.of(0.5)
    >>> backoff.after(news=False).wait_s, backoff.after(news=False).after(news=False).after(news=False).wait_s
    (1.0, 2.0)
    >>> backoff.after(news=False).after(news=True).wait_s
    0.5
    """

    busy_s: float
    wait_s: float

    @staticmethod
    def of(busy_s: float) -> PollBackoff:
        return PollBackoff(busy_s, busy_s)

    def after(self, *, news: bool) -> PollBackoff:
        return replace(self, wait_s=self.busy_s if news else min(STILL * self.busy_s, 2 * self.wait_s))
