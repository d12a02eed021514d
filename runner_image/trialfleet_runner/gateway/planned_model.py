"""The failures of the planned model since it last answered: what remains unanswered when the agent has ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trialfleet_ledger.token_usage import TokenUsage
from trialfleet_runner.gateway.dialects import Dialect
from trialfleet_runner.gateway.faults import Fault, ProviderFailure

FEWEST_FAILURES = 3
SHORTEST_OUTAGE_S = 60.0
_FAILURES_OF_AN_OUTAGE = 2
_OUTAGE_WAIT_S = 30  # clients of models do not obey longer waits than a minute


@dataclass(frozen=True)
class SentRequest:
    """A request as it went to the provider. `query` starts with "?" or is empty; header names are lower case."""

    dialect: Dialect
    query: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def model(self) -> str:
        """As the provider was asked for it."""
        return self.dialect.model(self.body)


@dataclass(frozen=True)
class FailedRequest:
    """`started`: seconds since the gateway opened."""

    started: float
    sent: SentRequest
    failure: ProviderFailure


@dataclass
class PlannedModelRecord:
    """`last`: the latest request that failed by the provider, if nothing was answered since; `row`: when all such
    started. `suspect`: the latest request whose failure may be permanent, likewise. `passed`: the most tokens of a
    prompt that was answered, without those that came from a cache, which count towards no limit. Not thread-safe.
    """

    last: FailedRequest | None = None
    row: list[float] = field(default_factory=list[float])
    suspect: FailedRequest | None = None
    passed: int = 0

    def add(self, one: FailedRequest) -> None:
        if one.failure.fault is Fault.TRANSIENT:
            self.last = one
            self.row.append(one.started)
        else:  # the provider answers
            self.suspect, self.last = one, None
            self.row.clear()

    def answered(self, started: float, usage: TokenUsage | None = None) -> None:
        """A request was answered. One that began before a failure proves nothing about it."""
        self.passed = max(self.passed, usage.input + usage.cache_write if usage else 0)
        self.row = [at for at in self.row if at > started]
        self.last = self.last if self.row else None
        if self.suspect is not None and self.suspect.started <= started:
            self.suspect = None

    @property
    def error(self) -> str | None:
        """Why the planned model could not be reached last."""
        if self.last is not None:
            return self.last.failure.message
        if self.suspect is not None and self.suspect.failure.fault is Fault.FATAL:
            return self.suspect.failure.message
        return None

    @property
    def advised_wait_s(self) -> int | None:
        """Seconds that an agent should wait in an outage, whose program may repeat a request five times within
        half a minute and end; None: no outage is seen yet."""
        return _OUTAGE_WAIT_S if len(self.row) >= _FAILURES_OF_AN_OUTAGE else None

    @property
    def outage(self) -> FailedRequest | None:
        """The last request, if the last three or more failed by the provider over a minute or more; larger ones
        than the plan allows never reach it. None: nothing says that the agent could not have continued."""
        if len(self.row) < FEWEST_FAILURES:
            return None
        return self.last if max(self.row) - min(self.row) >= SHORTEST_OUTAGE_S else None
