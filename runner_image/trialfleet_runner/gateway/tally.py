"""What one attempt's requests add up to, besides what they cost."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from trialfleet_runner.contract import Stop
from trialfleet_runner.gateway.canary import Sighting
from trialfleet_runner.gateway.faults import Fault
from trialfleet_runner.gateway.report import ProviderError
from trialfleet_runner.gateway.throttle import Throttle

_KEPT_ERRORS = 100


@dataclass
class Tally:
    """Every method is thread-safe; instants are seconds since the gateway opened."""

    throttle: Throttle
    main_model: str | None
    requests: int = 0
    answered: int = 0
    turns: int = 0
    interrupted: int = 0
    unauthorised: int = 0
    error_count: int = 0
    stop: Stop | None = None
    halt: str | None = None
    first_request_s: float | None = None
    last_answer_s: float | None = None
    models: set[str] = field(default_factory=set[str])
    refused: list[str] = field(default_factory=list[str])
    errors: list[ProviderError] = field(default_factory=list[ProviderError])
    reached: set[str] = field(default_factory=set[str])
    undeclared: set[str] = field(default_factory=set[str])
    _main_chains: dict[str, str] = field(default_factory=dict[str, str])  # chain -> its last error
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_turn(self, model: str, *, tools: bool) -> bool:
        """Whether an answer to this request is a turn. Without a named main model the first model that is
        asked with tools is it."""
        with self._lock:
            if tools and self.main_model is None:
                self.main_model = model
            return tools and model == self.main_model

    def sent(self, at: float, sighting: Sighting) -> None:
        """A request leaves for the provider."""
        with self._lock:
            self.requests += 1
            self.first_request_s = at if self.first_request_s is None else self.first_request_s
            self.undeclared |= sighting.undeclared

    def began(self, sighting: Sighting) -> None:
        """The model has read the request: the provider answers it."""
        with self._lock:
            self.reached |= sighting.declared

    def succeeded(self, at: float, *, chain: str, started: float, turn: bool, model: str | None) -> int | None:
        """A whole answer; returns the number of its turn, from 1, or None."""
        with self._lock:
            self.throttle.succeeded(chain, started)
            self.answered += 1
            self.last_answer_s = at
            if model:
                self.models.add(model)
            self.turns += turn
            return self.turns if turn else None

    def declined(self, *, chain: str, started: float) -> None:
        """The provider is up and found fault with the request."""
        with self._lock:
            self.throttle.succeeded(chain, started)

    def failed(
        self, at: float, *, chain: str, started: float, main: bool, status: int | None, fault: Fault, message: str
    ) -> bool:
        """The provider failed. Returns whether this is the first reason to halt the campaign."""
        with self._lock:
            self.error_count += 1
            if len(self.errors) < _KEPT_ERRORS:
                self.errors.append(ProviderError(at_s=at, status=status, fault=fault.value, message=message))
            if fault is Fault.REQUEST:
                return False
            self.throttle.failed(chain, started)
            if main:
                self._main_chains[chain] = message
            if fault is Fault.FATAL and self.halt is None:
                self.halt = message
                return True
            return False

    def refuse(self, reason: str, stop: Stop | None) -> None:
        with self._lock:
            self.stop = self.stop or stop
            if reason not in self.refused and len(self.refused) < _KEPT_ERRORS:
                self.refused.append(reason)

    def hung_up(self) -> None:
        with self._lock:
            self.interrupted += 1

    def stranger(self) -> None:
        with self._lock:
            self.unauthorised += 1

    def throttled_s(self, now: float) -> float:
        with self._lock:
            return self.throttle.seconds(now)

    def provider_error(self) -> str | None:
        """Why the main model could not be reached last, when nothing after it succeeded."""
        with self._lock:
            left = [text for chain, text in self._main_chains.items() if self.throttle.is_open(chain)]
            return left[-1] if left else None
