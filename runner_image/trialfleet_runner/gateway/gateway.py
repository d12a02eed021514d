"""The model gateway of one attempt: the agent's only way to a model. It counts requests, tokens and cost."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path

from trialfleet_deliveries.received_texts import DeclaredText, ReceivedTexts
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.prices import PRICES_AS_OF, REQUEST_TOKENS, Price, price_of
from trialfleet_ledger.records.receipts import Receipts
from trialfleet_runner.gateway.budget import BudgetLedger, TrialBudget
from trialfleet_runner.gateway.canary import Canaries
from trialfleet_runner.gateway.gateway_context import GatewayContext, RequestWatch
from trialfleet_runner.gateway.listener import Listener, loopback_socket, unix_socket
from trialfleet_runner.gateway.provider_probe import ProviderProbe
from trialfleet_runner.gateway.record import JsonLinesFile
from trialfleet_runner.gateway.redaction import KeyRedaction
from trialfleet_runner.gateway.server import Handler
from trialfleet_runner.gateway.tally import GatewayReport, RequestTally, Throttle
from trialfleet_runner.gateway.upstream import Upstream, UpstreamConnections

_NO_BUDGET = TrialBudget()
_NO_CANARIES = Canaries()
_CLOSE_WAIT_S = 5.0
PATIENCE_S = 1800.0  # so long may failures of the provider stretch the agent's time


class Gateway:
    """A context manager; serves from construction until `close`, after which `report` is final.

    `record`: folder, in that of the attempt, for `model.jsonl` (bodies, redacted) and `answers.jsonl` (counts and
    times by message id).
    `listen`: unix socket to listen on, for sandboxes without a network; without it a free loopback port.
    `model`: the main model, as requests name it; None: the model of the first request.
    `side_models`: patterns of other models that are passed on; None: all. `request_tokens`: of the largest request
    that is passed on.
    `prices`: override or add to the list. `fields`: fields of requests, such as `messages.content.odd`, that pass
    although the list of the API does not have them. `given`: texts that the agent was given beside the declared
    ones: ids and dates in them count where first requests are compared. `patience_s`: most that throttling may
    add to the agent's time. `probe`: sends the requests of our own.

    The gateway does not retry: errors pass through unchanged, the agent's client retries, and the time until its
    next success counts as throttled. Raises `OperatorError` if there is a money budget and the model's price is
    unknown.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        record: Path,
        listen: Path | None = None,
        budget: TrialBudget = _NO_BUDGET,
        canaries: Canaries = _NO_CANARIES,
        model: str | None = None,
        side_models: Collection[str] | None = None,
        request_tokens: int = REQUEST_TOKENS,
        prices: Mapping[str, Price] | None = None,
        fields: Collection[str] = (),
        given: Iterable[str] = (),
        patience_s: float = PATIENCE_S,
        probe: ProviderProbe | None = None,
    ) -> None:
        prices = prices or {}
        if budget.max_cost_usd is not None and model is not None and price_of(model, prices) is None:
            raise OperatorError(
                f"the price of {model!r} is not known, so limits.cost_usd cannot be kept",
                where="agent: model",
                hint="give its price in agent.options.prices, or drop limits.cost_usd.trial",
            )
        self.token = token = "tf-" + secrets.token_urlsafe(32)
        self.socket = listen
        hidden = (*upstream.secrets, token)
        self._shared = shared = GatewayContext(
            line=UpstreamConnections(upstream),
            account=BudgetLedger(budget, prices),
            tally=RequestTally(
                Throttle(patience_s), model, side_models=None if side_models is None else frozenset(side_models)
            ),
            canaries=canaries,
            received=ReceivedTexts(canaries.declared),
            bodies=JsonLinesFile(record / "model.jsonl", hidden),
            answers=JsonLinesFile(record / "answers.jsonl", hidden),
            keys=KeyRedaction(upstream.secrets),
            permitted=frozenset(fields),
            request_tokens=request_tokens,
        )
        self._folder, self._given = str(record.parent), tuple(given)
        self._probe, self._closed = probe or ProviderProbe(upstream), False
        upstream.watch(shared.hide)
        listening = unix_socket(listen) if listen else loopback_socket()
        self.port: int | None = None if listen else int(listening.getsockname()[1])
        self._listener = Listener(listening, lambda connection: Handler(connection, shared, token))

    @property
    def url(self) -> str:
        """Base URL on loopback. Behind a unix socket, the sandbox decides the port: use `url_at`."""
        if self.port is None:
            raise ValueError("this gateway listens on a unix socket")
        return url_at(self.port)

    def expect(self, declared: Iterable[DeclaredText]) -> None:
        """Texts that were not known when it was opened, as `Canaries.declared`."""
        self._shared.received.declare_more(declared)

    def receipts(self) -> Receipts:
        """What the model has received so far."""
        received = self._shared.received
        texts = (*self._given, *(one.text for one in received.declared))
        return Receipts(
            requests=received.requests,
            unread=received.unread,
            first_request_sha256=self._shared.first_request.make_digest(texts, self._folder),
            receipts=received.make_receipts(),
        )

    @contextmanager
    def watch_requests(self, look: RequestWatch) -> Generator[None]:
        """Meanwhile, call `look` at every model request with the number of turns so far: the agent has the results
        of their tools. It may be called by several threads at once, and must raise nothing."""
        before, self._shared.on_request = self._shared.on_request, look
        try:
            yield
        finally:
            self._shared.on_request = before

    @property
    def turns(self) -> int:
        """So far."""
        return self._shared.account.spent.turns

    def begin_run(self) -> None:
        """Another run of the agent's program follows, which may offer its model other tools."""
        self._shared.account.begin_run()
        self._shared.first_request.begin_run()

    def throttled_s(self) -> float:
        """Seconds so far in which the provider kept the agent waiting. The agent's time budget excludes them."""
        return self._shared.tally.throttled_s(self._shared.clock())

    def report(self) -> GatewayReport:
        """So far; final after `close`."""
        tally, spent = self._shared.tally, self._shared.account.spent
        return GatewayReport(
            received=tally.received,
            requests=tally.requests,
            answered=tally.answered,
            turns=spent.turns,
            side_requests=tally.answered - spent.turns,
            **spent.usage.by_kind(),
            estimated_output_tokens=spent.estimated,
            estimated_input_tokens=spent.estimated_input,
            estimated_answers=spent.estimates,
            cost_usd=spent.cost_usd,
            uncached_cost_usd=spent.uncached_cost_usd,
            prices_as_of=PRICES_AS_OF,
            models=tuple(sorted(tally.models)),
            main_model=tally.main_model,
            foreign_models=tuple(sorted(tally.foreign_models)),
            throttled_s=round(self.throttled_s(), 3),
            errors=tuple(tally.errors),
            error_count=tally.error_count,
            provider_error=tally.provider_error(),
            provider_gave_up=tally.gave_up,
            halt=tally.halt,
            stop=tally.stop,
            refused=tuple(tally.refused),
            unauthorised=tally.unauthorised,
            interrupted=tally.interrupted,
            reached={one.name: one.is_complete for one in self._shared.received.make_receipts()},
            undeclared=tuple(sorted(tally.undeclared)),
            own_files=tuple(sorted(tally.own_files)),
            first_request_s=tally.first_request_s,
            last_answer_s=tally.last_answer_s,
        )

    def close(self) -> None:
        """Hang up on the provider at once, then on the agent; idempotent. The socket's file is removed. If the
        planned model's last failure may be permanent, a request of our own then confirms it or not."""
        if self._closed:
            return
        self._closed, shared = True, self._shared
        shared.line.close()
        shared.account.close()
        self._listener.close(_CLOSE_WAIT_S)
        shared.bodies.close()
        shared.answers.close()
        if self.socket is not None:
            self.socket.unlink(missing_ok=True)
        suspect = shared.tally.planned.suspect
        if suspect is not None and self._probe.confirms(suspect, suspect.sent.model, shared.bodies.redact):
            shared.tally.halt_campaign(suspect.failure.message)

    def ask_again(self, stop: threading.Event) -> None:
        """After `close`: whether the provider has given up. Takes up to a minute, and only after an outage of a
        minute or more; ends early when `stop` is set."""
        tally = self._shared.tally
        outage = tally.planned.outage
        if outage is not None:
            passed = tally.planned.passed if tally.agent_acts else None
            tally.gave_up = self._probe.gave_up(outage, outage.sent.model, passed, stop)

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def url_at(port: int) -> str:
    """Base URL of a gateway that appears on this loopback port."""
    return f"http://127.0.0.1:{port}"
