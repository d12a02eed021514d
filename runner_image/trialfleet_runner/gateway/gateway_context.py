"""One request of the agent, its connection, and what the requests of one attempt share."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol

from trialfleet_deliveries.received_texts import ReceivedTexts
from trialfleet_ledger.prices import REQUEST_TOKENS
from trialfleet_runner.gateway.budget import BudgetLedger
from trialfleet_runner.gateway.canary import Canaries
from trialfleet_runner.gateway.dialects import Dialect
from trialfleet_runner.gateway.first_request import FirstAnswered, KeptRequest
from trialfleet_runner.gateway.listener import Room
from trialfleet_runner.gateway.planned_model import SentRequest
from trialfleet_runner.gateway.record import JsonLinesFile
from trialfleet_runner.gateway.redaction import KeyRedaction
from trialfleet_runner.gateway.tally import RequestTally
from trialfleet_runner.gateway.upstream import UpstreamConnections

# Called with the turns so far when a request comes; what it returns, before the model's answer is passed on.
RequestWatch = Callable[[int], Callable[[], object]]


def _nothing() -> None:
    pass


class LiveRequest(Protocol):
    """One that waits for the provider. `left`: the agent has hung up."""

    reply: AgentConnection
    left: bool


@dataclass
class GatewayContext:
    """Everything that requests of one attempt share. `received`: of the texts that are declared."""

    line: UpstreamConnections
    account: BudgetLedger
    tally: RequestTally
    canaries: Canaries
    received: ReceivedTexts
    bodies: JsonLinesFile
    answers: JsonLinesFile
    keys: KeyRedaction
    permitted: frozenset[str] = frozenset()  # fields of requests that pass although no API's list has them
    request_tokens: int = REQUEST_TOKENS
    on_request: RequestWatch = lambda _: _nothing
    first_request: FirstAnswered = field(default_factory=FirstAnswered)
    live: set[LiveRequest] = field(default_factory=set["LiveRequest"])
    room: Room = field(default_factory=Room)
    opened: float = field(default_factory=time.monotonic)

    def clock(self) -> float:
        """Seconds since the gateway opened."""
        return time.monotonic() - self.opened

    def drop_left(self) -> None:
        """Hang up on the provider where the agent has left: such a request takes no place of another."""
        for one in list(self.live):
            if one.reply.is_left():
                one.left = True
                self.line.cut(one)

    def hide(self, secret: str) -> None:
        """Keep this out of everything that is recorded and out of what the agent gets."""
        self.keys.hide(secret)
        self.bodies.hide(secret)
        self.answers.hide(secret)


class ClientGone(Exception):
    """The agent hung up."""


class AgentConnection:
    """The agent's side of the connection. Every method but `abort` raises `ClientGone` when it has hung up."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self._handler = handler
        self._chunked = False

    def start(self, status: int, headers: dict[str, str], length: int | None) -> None:
        """Status and headers; `length` None: a stream of chunks follows."""
        handler = self._handler
        self._chunked = length is None and handler.request_version == "HTTP/1.1"
        if length is None and not self._chunked:  # the end of the connection is then the end of the answer
            handler.close_connection = True
        handler.send_response_only(status)
        framing = [("content-length", str(length))] if length is not None else []
        framing += [("transfer-encoding", "chunked")] if self._chunked else []
        closing = [("connection", "close")] if handler.close_connection else []
        for name, value in (*headers.items(), *framing, *closing):
            handler.send_header(name, value)
        self._act(handler.end_headers)

    def send(self, data: bytes) -> None:
        if data:
            framed = b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data
            self._act(lambda: self._handler.wfile.write(framed))

    def finish(self) -> None:
        if self._chunked:
            self._act(lambda: self._handler.wfile.write(b"0\r\n\r\n"))

    def whole(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.start(status, headers, len(data))
        self.send(data)

    def is_left(self) -> bool:
        """Whether the agent has closed its side."""
        try:
            return not self._handler.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def abort(self) -> None:
        """Cut the connection, so that a broken answer looks broken."""
        self._handler.close_connection = True
        with suppress(OSError):
            self._handler.connection.shutdown(socket.SHUT_RDWR)

    def _act(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            self._handler.close_connection = True
            raise ClientGone from error


@dataclass(frozen=True)
class AgentRequest:
    """A request of the agent. `query` starts with "?" or is empty; header names are lower case. `data`: `body`, as
    the gateway writes it."""

    dialect: Dialect
    query: str
    headers: dict[str, str]
    data: bytes
    body: dict[str, Any]

    @property
    def model(self) -> str:
        return self.dialect.model(self.body)

    @property
    def sent(self) -> SentRequest:
        """As a request of our own would repeat it."""
        return SentRequest(self.dialect, self.query, self.headers, self.body)

    def keep_request(self, *, has_tools: bool) -> KeptRequest:
        """What another run's request is compared with."""
        return KeptRequest(self.dialect.path, self.headers, self.body, len(self.data), has_tools)

    @property
    def chain(self) -> str:
        """What a retry of this request would have in common with it."""
        return f"{self.dialect.path} {self.model}"
