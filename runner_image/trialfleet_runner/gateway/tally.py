"""Sums over one attempt's requests, except cost, and the report that is made of them."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from typing import Literal

from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.prices import bare
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_runner.gateway.answers import ModelAnswer
from trialfleet_runner.gateway.canary import Sighting
from trialfleet_runner.gateway.faults import Fault
from trialfleet_runner.gateway.model_names import list_spellings, match_model
from trialfleet_runner.gateway.planned_model import FailedRequest, PlannedModelRecord


class ProviderError(Frozen):
    """One failed request. `at_s`: seconds since the gateway opened; `status` None: no HTTP answer."""

    at_s: float
    status: int | None
    fault: Literal["transient", "fatal", "request"]
    message: str


class GatewayReport(Frozen):
    """Counts of the gateway; an agent's own claims are kept apart (`Parsed`) and must agree.

    `received`: model requests that came with the token, refused and malformed ones included, without those for
    foreign models and those that broke off before their end: what tells an agent that never began from one that
    failed. `requests`: those that were forwarded; `answered`: those that came back whole, or that were left after
    the answer had begun. `turns`: answered requests to the main model that belong to the agent's loop or to a
    sub-agent that the model started; which these are is decided by conversation (`Conversations`).
    `side_requests`: the other answered ones (titles, probes, the program's own helpers, sub-agents on smaller
    models); their tokens and cost are counted too. Token kinds do not overlap.
    `cost_usd`: None when a model without a known price answered; `uncached_cost_usd`: had nothing been cached.
    `estimated_input_tokens`, `estimated_output_tokens`: of `estimated_answers` answers that were left
    before the provider's count came, or that it did not count; not in `input_tokens` and `output_tokens`,
    but charged to budget and cost."""

    received: int
    requests: int
    answered: int
    turns: int
    side_requests: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    estimated_output_tokens: int
    estimated_input_tokens: int = 0
    estimated_answers: int = 0
    cost_usd: float | None
    uncached_cost_usd: float | None = None
    prices_as_of: str
    models: tuple[str, ...]  # as answered, sorted
    main_model: str | None  # as asked
    foreign_models: tuple[str, ...]  # as asked: neither planned nor declared, so that nothing was forwarded
    throttled_s: float
    errors: tuple[ProviderError, ...]  # the first 100
    error_count: int
    provider_error: str | None  # the main model's last request failed and nothing after it was answered
    provider_gave_up: (
        bool  # an outage: a repetition of that request, after the agent's end, was not answered either
    )
    halt: str | None  # credentials, credit or model, which a request of our own confirmed: no trial can succeed
    stop: Stop | None  # MAX_TURNS or COST: the budget ended the agent
    refused: tuple[str, ...]  # why requests were not forwarded, each reason once
    unauthorised: int  # requests without the token
    interrupted: int  # answers cut because the agent or the runner hung up
    reached: dict[str, bool]  # declared text -> all of it was in requests that the model answered
    undeclared: tuple[str, ...]  # contamination: paths or names, sorted
    own_files: tuple[str, ...]  # memory files that came in once a model had answered: no contamination
    first_request_s: float | None  # since the gateway opened
    last_answer_s: float | None


@dataclass
class Throttle:
    """Time from the start of a request for the planned model that the provider failed until the start of the next
    that it answers, or until the provider's own Retry-After.

    A chain is one API path and model: the unit that an agent retries. An answer of the main model closes every
    chain. Overlapping chains count once, because the agent has one wall clock. All of it together is at most
    `patience_s`: a permanent outage must not give an agent endless time.
    """

    patience_s: float
    _open: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    _closed: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def failed(self, chain: str, started: float, until: float = math.inf) -> None:
        """`until`: end of the Retry-After that the answer states."""
        since, before = self._open.get(chain, (started, 0.0))
        if started > before and chain in self._open:
            self._closed.append((since, before))
            since = started
        self._open[chain] = (since, until)

    def succeeded(self, chain: str, started: float, *, main: bool = False) -> None:
        """`started`: of the request that succeeded. One that began before the failure proves nothing."""
        for name in list(self._open) if main else [chain]:
            since, until = self._open.get(name, (math.inf, 0.0))
            if started >= since:
                del self._open[name]
                self._closed.append((since, min(started, until)))

    def is_open(self, chain: str) -> bool:
        return chain in self._open

    def seconds(self, now: float) -> float:
        """Length of the union of all chains' intervals up to `now`.

        >>> throttle = Throttle(patience_s=100)
        >>> throttle.failed("a", 10); throttle.failed("b", 12); throttle.succeeded("a", 15)
        >>> throttle.seconds(20)
        10
        >>> throttle.failed("b", 30, until=33)
        >>> throttle.seconds(40)
        23
        """
        running = [(since, min(now, until)) for since, until in self._open.values()]
        total: float = 0
        reached = float("-inf")
        for start, end in sorted(self._closed + running):
            total += max(0, end - max(start, reached))
            reached = max(reached, end)
        return min(total, self.patience_s)


_KEPT_ERRORS = 100


@dataclass
class RequestTally:
    """Every method is thread-safe; instants are seconds since the gateway opened."""

    throttle: Throttle
    main_model: str | None
    received: int = 0
    requests: int = 0
    answered: int = 0
    interrupted: int = 0
    unauthorised: int = 0
    error_count: int = 0
    stop: Stop | None = None
    halt: str | None = None
    gave_up: bool = False
    first_request_s: float | None = None
    last_answer_s: float | None = None
    models: set[str] = field(default_factory=set[str])
    foreign_models: set[str] = field(default_factory=set[str])
    answered_chains: set[str] = field(default_factory=set[str])  # of the main model
    answered_names: set[str] = field(default_factory=set[str])  # of the main model, as the provider spells them
    side_models: frozenset[str] | None = None  # patterns of names; None: every model is passed on
    refused: list[str] = field(default_factory=list[str])
    errors: list[ProviderError] = field(default_factory=list[ProviderError])
    undeclared: set[str] = field(default_factory=set[str])
    own_files: set[str] = field(default_factory=set[str])
    agent_acts: bool = False  # a model has begun to answer: what is sent from now on, the agent may have made
    planned: PlannedModelRecord = field(default_factory=PlannedModelRecord)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_main(self, model: str) -> bool:
        """Whether this is the main model. Without a named one, the first that is asked is it."""
        with self._lock:
            self.main_model = self.main_model or model
            return model in list_spellings(self.main_model) or model in self.answered_names

    def is_declared(self, model: str) -> bool:
        """Whether it is the main model, or one that the agent's adapter or the campaign declares."""
        if self.side_models is None or self.is_main(model):
            return True
        prefix = (self.main_model or "").rpartition("/")[0] + "/"
        return any(
            match_model(name, one) for name in (model, model.removeprefix(prefix)) for one in self.side_models
        )

    def refuse_model(self, model: str) -> None:
        """A request for a model that the plan lacks is no sign that the agent works."""
        self.uncount_received()
        self.note_foreign(model)

    def uncount_received(self) -> None:
        """Of a request that was not sent to its end."""
        with self._lock:
            self.received -= 1

    def note_foreign(self, model: str) -> None:
        """The agent has named a model that the plan lacks."""
        with self._lock:
            if len(self.foreign_models) < _KEPT_ERRORS:
                self.foreign_models.add(model)

    def count_received(self) -> None:
        """A request for a model came with the token, whatever becomes of it."""
        with self._lock:
            self.received += 1

    def sent(self, at: float, sighting: Sighting) -> None:
        """A request leaves for the provider. Files that it claims are contamination only while nobody but the
        agent's program can have written it: a claim is made of words, which any shell can send."""
        with self._lock:
            self.requests += 1
            self.first_request_s = at if self.first_request_s is None else self.first_request_s
            self.undeclared |= sighting.undeclared
            claimed = self.own_files if self.agent_acts else self.undeclared
            paths = sorted({one_line(path) for path in sighting.claimed} - self.undeclared - claimed)
            claimed.update(paths[: max(0, _KEPT_ERRORS - len(claimed))])

    def begin_answer(self, *, acts: bool) -> None:
        """The agent gets the first bytes of an answer. `acts`: its program may carry out what they say."""
        with self._lock:
            self.agent_acts = self.agent_acts or acts

    def succeeded(self, at: float, *, chain: str, started: float, main: bool, answer: ModelAnswer) -> None:
        with self._lock:
            self.throttle.succeeded(chain, started, main=main)
            if main:
                self.planned.answered(started, answer.usage)
                self.answered_chains.add(chain)
                if bare(answer.model or "") == bare(self.main_model or ""):
                    self.answered_names.add(answer.model or "")
            self.answered += 1
            self.last_answer_s = at
            if answer.model:
                self.models.add(answer.model)

    def declined(self, *, chain: str, started: float, main: bool) -> None:
        """The provider is up and found fault with the request."""
        with self._lock:
            self.throttle.succeeded(chain, started, main=main)

    def failed(self, at: float, *, chain: str, main: bool, one: FailedRequest, until: float = math.inf) -> None:
        """A request has no answer. Only the planned model's failures say something of the provider and stop the
        clock: an agent chooses the names of other models. `until`: end of the Retry-After."""
        failure = one.failure
        with self._lock:
            self.error_count += 1
            if len(self.errors) < _KEPT_ERRORS:
                kept = {"status": failure.status, "fault": failure.fault.value, "message": failure.message}
                self.errors.append(ProviderError.model_validate({"at_s": at, **kept}))
            if not main or not self._is_vouched_for(chain):
                return
            self.planned.add(one)
            if failure.fault is Fault.TRANSIENT:
                self.throttle.failed(chain, one.started, until)

    def _is_vouched_for(self, chain: str) -> bool:
        """Whether a failure there says something of the provider: the model is named as planned, or has answered
        by this name. A name that an answer gave it is the agent's choice, and may get a 429 from anybody."""
        return chain in self.answered_chains or chain.rpartition(" ")[2] in list_spellings(self.main_model or "")

    def halt_campaign(self, reason: str) -> None:
        """No trial of this campaign can succeed."""
        with self._lock:
            self.halt = self.halt or reason

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

    def advised_wait_s(self) -> int | None:
        """Seconds that an agent should wait before its next request for the planned model; None: as it likes."""
        with self._lock:
            return self.planned.advised_wait_s

    def provider_error(self) -> str | None:
        """Why the planned model could not be reached last, when nothing after it was answered."""
        with self._lock:
            return self.planned.error
