"""What one attempt's requests add up to, besides what they cost."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field

from trialfleet_runner.contract import Stop
from trialfleet_runner.gateway.answers import Answer
from trialfleet_runner.gateway.canary import Sighting, strings
from trialfleet_runner.gateway.faults import Fault
from trialfleet_runner.gateway.prices import bare
from trialfleet_runner.gateway.report import ProviderError
from trialfleet_runner.gateway.throttle import Throttle

_KEPT_ERRORS = 100
_MARKDOWN = re.compile(r"[\w./~-]{1,300}\.md\b")


@dataclass
class Tally:
    """Every method is thread-safe; instants are seconds since the gateway opened."""

    throttle: Throttle
    main_model: str | None
    requests: int = 0
    answered: int = 0
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
    own_files: set[str] = field(default_factory=set[str])
    _named: set[str] = field(default_factory=set[str])  # Markdown files in the model's own words
    _main_chains: dict[str, str] = field(default_factory=dict[str, str])  # chain -> its last error
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_main(self, model: str) -> bool:
        """Whether this is the main model. Without a named one, the first that is asked is it."""
        with self._lock:
            self.main_model = self.main_model or model
            return bare(model) == bare(self.main_model)

    def sent(self, at: float, sighting: Sighting) -> None:
        """A request leaves for the provider."""
        with self._lock:
            self.requests += 1
            self.first_request_s = at if self.first_request_s is None else self.first_request_s
            self.undeclared |= sighting.undeclared
            for path in sighting.claimed:
                (self.own_files if _named(path, self._named) else self.undeclared).add(path)

    def began(self, sighting: Sighting) -> None:
        """The model has read the request: the provider answers it."""
        with self._lock:
            self.reached |= sighting.declared

    def succeeded(self, at: float, *, chain: str, started: float, main: bool, answer: Answer) -> None:
        """A whole answer."""
        with self._lock:
            self.throttle.succeeded(chain, started, main=main)
            self.answered += 1
            self.last_answer_s = at
            if answer.model:
                self.models.add(answer.model)
            self._named |= {name for text in strings(answer.body) for name in _MARKDOWN.findall(text)}

    def declined(self, *, chain: str, started: float, main: bool) -> None:
        """The provider is up and found fault with the request."""
        with self._lock:
            self.throttle.succeeded(chain, started, main=main)

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


def _named(path: str, names: set[str]) -> bool:
    """Whether the model has spoken of this file before: then the agent may have made it itself."""
    return any(path == name or path.endswith("/" + name.removeprefix("./")) for name in names)
