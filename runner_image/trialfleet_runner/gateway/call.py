"""One request of the agent, and its side of the connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from trialfleet_runner.gateway.dialects import Dialect


class ClientGone(Exception):
    """The agent hung up."""


class Reply(Protocol):
    """The agent's side of the connection. Every method raises `ClientGone` when it has hung up."""

    def start(self, status: int, headers: dict[str, str], length: int | None) -> None:
        """Status and headers; `length` None: a stream of chunks follows."""
        ...

    def send(self, data: bytes) -> None: ...

    def finish(self) -> None: ...

    def abort(self) -> None:
        """Cut the connection, so that a broken answer looks broken. Never raises."""
        ...


@dataclass(frozen=True)
class Call:
    """A request of the agent. `query` starts with "?" or is empty; header names are lower case."""

    dialect: Dialect
    query: str
    headers: dict[str, str]
    data: bytes
    body: dict[str, Any]

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def chain(self) -> str:
        """What a retry of this request would have in common with it."""
        return f"{self.dialect.path} {self.model}"
