"""The model gateway of one attempt: the agent's only way to a model, and the place where all of it is counted."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from trialfleet_runner.errors import OperatorError
from trialfleet_runner.gateway.account import Account, Budget
from trialfleet_runner.gateway.canary import Canaries
from trialfleet_runner.gateway.line import Line
from trialfleet_runner.gateway.listener import Listener, loopback_socket, unix_socket
from trialfleet_runner.gateway.prices import PRICES_AS_OF, Price, price_of
from trialfleet_runner.gateway.record import JsonLines
from trialfleet_runner.gateway.report import GatewayReport
from trialfleet_runner.gateway.room import Room
from trialfleet_runner.gateway.server import Handler
from trialfleet_runner.gateway.shared import Shared
from trialfleet_runner.gateway.tally import Tally
from trialfleet_runner.gateway.throttle import Throttle
from trialfleet_runner.gateway.upstream import Upstream

_NO_BUDGET = Budget()
_NO_CANARIES = Canaries()
_CLOSE_WAIT_S = 5.0


def _silent(_: str) -> None:
    pass


class Gateway:
    """A context manager; serves from construction until `close`, after which `report` is final.

    `record`: folder for `model.jsonl` (bodies, redacted) and `answers.jsonl` (counts and times by message id).
    `listen`: unix socket to listen on, for sandboxes without a network; without it a free loopback port.
    `model`: the main model, as requests name it; None: the first that is asked.
    `prices`: override or add to the list. `patience_s`: how long one provider failure may stretch the agent's
    time budget. `allow_remote_tools`: let requests use tools that the provider runs (web search and the like).
    `on_halt`: called once, from a thread, when no trial of the campaign can succeed any more.

    Nobody retries here: errors pass through as they are, the agent's own client retries, and the time until
    its next success is counted as throttled. Raises `OperatorError` when there is a money budget and the
    model's price is unknown.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        record: Path,
        listen: Path | None = None,
        budget: Budget = _NO_BUDGET,
        canaries: Canaries = _NO_CANARIES,
        model: str | None = None,
        prices: Mapping[str, Price] | None = None,
        patience_s: float = 1800,
        allow_remote_tools: bool = False,
        on_halt: Callable[[str], None] = _silent,
    ) -> None:
        prices = prices or {}
        if budget.max_cost_usd is not None and model is not None and price_of(model, prices) is None:
            raise OperatorError(
                f"the price of {model!r} is not known, so limits.cost_usd cannot be kept",
                where="agent: model",
                hint="give its price in agent.options.prices, or drop limits.cost_usd.trial",
            )
        self.token = "tf-" + secrets.token_urlsafe(32)
        self.socket = listen
        self._canaries = canaries
        self._opened = time.monotonic()
        self._account = Account(budget, prices)
        self._tally = Tally(Throttle(patience_s), model)
        hidden = (upstream.key, self.token)
        self._bodies = JsonLines(record / "model.jsonl", hidden)
        self._answers = JsonLines(record / "answers.jsonl", hidden)
        self._line = Line(upstream)
        shared = Shared(
            line=self._line,
            account=self._account,
            tally=self._tally,
            canaries=lambda: self._canaries,
            bodies=self._bodies,
            answers=self._answers,
            clock=self._clock,
            room=Room(),
            allow_remote=allow_remote_tools,
            on_halt=on_halt,
        )
        listening = unix_socket(listen) if listen else loopback_socket()
        self.port: int | None = None if listen else int(listening.getsockname()[1])
        self._listener = Listener(listening, _serving(shared, self.token))

    @property
    def url(self) -> str:
        """Base URL on loopback. Behind a unix socket, the sandbox decides the port: use `url_at`."""
        if self.port is None:
            raise ValueError("this gateway listens on a unix socket")
        return url_at(self.port)

    def _clock(self) -> float:
        return time.monotonic() - self._opened

    def expect(self, declared: Mapping[str, tuple[str, ...]]) -> None:
        """Deliveries that were not known when it was opened, as `Canaries.declared`."""
        self._canaries = replace(self._canaries, declared={**self._canaries.declared, **declared})

    def throttled_s(self) -> float:
        """Seconds so far in which the provider kept the agent waiting: taken out of its time budget."""
        return self._tally.throttled_s(self._clock())

    def report(self) -> GatewayReport:
        """So far; final after `close`."""
        tally, usage, turns = self._tally, self._account.usage, self._account.turns
        return GatewayReport(
            requests=tally.requests,
            answered=tally.answered,
            turns=turns,
            side_requests=tally.answered - turns,
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            estimated_output_tokens=self._account.estimated_output,
            cost_usd=self._account.cost_usd,
            prices_as_of=PRICES_AS_OF,
            models=tuple(sorted(tally.models)),
            main_model=tally.main_model,
            throttled_s=round(self.throttled_s(), 3),
            errors=tuple(tally.errors),
            error_count=tally.error_count,
            provider_error=tally.provider_error(),
            halt=tally.halt,
            stop=tally.stop,
            refused=tuple(tally.refused),
            unauthorised=tally.unauthorised,
            interrupted=tally.interrupted,
            reached={name: name in tally.reached for name in self._canaries.declared},
            undeclared=tuple(sorted(tally.undeclared)),
            own_files=tuple(sorted(tally.own_files)),
            first_request_s=tally.first_request_s,
            last_answer_s=tally.last_answer_s,
        )

    def close(self) -> None:
        """Hang up on the provider at once, then on the agent; idempotent. The socket's file is removed."""
        self._line.close()
        self._account.close()
        self._listener.close(_CLOSE_WAIT_S)
        self._bodies.close()
        self._answers.close()
        if self.socket is not None:
            self.socket.unlink(missing_ok=True)

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def url_at(port: int) -> str:
    """Base URL of a gateway that appears on this loopback port."""
    return f"http://127.0.0.1:{port}"


def _serving(shared: Shared, token: str) -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        Handler(connection, shared, token)

    return serve
