"""Where requests go: the provider or any gateway that the user runs, and the connections to it."""

from __future__ import annotations

import gzip
import http.client
import io
import json
import re
import ssl
import threading
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from email.message import Message
from functools import cache
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.untrusted import mapping, objects

# What is passed on, by whole names. Everything else (cookies, the agent's own token, addresses, other encodings
# and forms of the answer, workspaces of the account) stays here.
_REQUEST_HEADERS = frozenset({"user-agent", "openai-beta", "anthropic-beta", "anthropic-version"})
_RESPONSE_HEADERS = (
    "content-type",
    "request-id",
    "x-request-id",
    "retry-after",
    "x-should-retry",
    "anthropic-ratelimit-",
    "x-ratelimit-",
)
_WHOLE_BYTES = 64 * 2**20
_UNAUTHORISED = 401

Auth = Literal["x-api-key", "x-goog-api-key", "bearer"]


@dataclass(frozen=True)
class Outgoing:
    """A request to the provider: path and query, headers (lower-case names), body."""

    method: str
    target: str
    headers: dict[str, str]
    data: bytes | None


class ProviderResponse(Protocol):
    """What is read of a provider's answer; `http.client.HTTPResponse` is one."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Message: ...
    def read(self, amt: int | None = None) -> bytes: ...
    def read1(self, n: int = -1) -> bytes: ...
    def getheaders(self) -> list[tuple[str, str]]: ...


class UpstreamRefusal(Exception):
    """The provider cannot take such a request from anybody: wrong API, or a model that is not mapped."""


@dataclass(frozen=True)
class Upstream:
    """`base_url` without `/v1`: https://api.anthropic.com, or a path of a gateway. The key stays in here.

    `auth`: `x-api-key` (Anthropic), `x-goog-api-key` (Google) or `bearer` (OpenAI, LiteLLM). Proxies of the
    environment are not used and redirects are not followed: the host is fixed. Raises `OperatorError`
    for an address that is none.
    """

    base_url: str
    key: str = field(repr=False)
    auth: Auth = "x-api-key"
    connect_timeout_s: float = 30
    idle_timeout_s: float = 300  # a streamed answer without a byte for so long has failed; some models think long
    whole_timeout_s: float = 600  # the same for an answer that is not streamed

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise OperatorError(
                f"{_without_login(self.base_url)!r} is not an address that requests can go to",
                where="model provider: base URL",
                hint="write https://host or http://host:port/path",
            )
        if any(ord(char) < 33 or ord(char) > 126 for char in self.key):
            raise OperatorError("the key holds spaces or line ends", where="model provider: key")

    @property
    def prefix(self) -> str:
        """Path before `/v1/…` or `/v1beta/…`."""
        return urlsplit(self.base_url).path.rstrip("/").removesuffix("/v1").removesuffix("/v1beta")

    def connection(self) -> http.client.HTTPConnection:
        """A new connection; the first request opens it."""
        parts = urlsplit(self.base_url)
        assert parts.hostname is not None
        if parts.scheme == "https":
            return http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=self.connect_timeout_s, context=_tls()
            )
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=self.connect_timeout_s)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be redacted wherever it stands."""
        return (self.key,) if self.key else ()

    def watch(self, hide: Callable[[str], None]) -> None:
        """`hide` gets every secret, also those that come later."""
        for secret in self.secrets:
            hide(secret)

    def outgoing(self, request: Outgoing) -> Outgoing:
        """The agent's request as this provider takes it. Raises `UpstreamRefusal`, or `OSError` without a key."""
        return replace(request, target=self.prefix + request.target, headers=self.headers(request.headers))

    def received(self, response: http.client.HTTPResponse) -> ProviderResponse:
        """The provider's answer as the agent's API has it."""
        return response

    def renew(self, refused: Outgoing) -> bool:
        """After a 401: whether there is another key now and the request is worth sending again."""
        return False

    @staticmethod
    def passed(given: dict[str, str]) -> dict[str, str]:
        """Of the agent's headers (lower-case names) those that are passed on. A body is JSON in UTF-8, whatever
        the agent says: a provider that reads another charset would read another request."""
        named = {name: value for name, value in given.items() if name in _REQUEST_HEADERS and value.isprintable()}
        return {**named, "content-type": "application/json"} if "content-type" in given else named

    def headers(self, given: dict[str, str]) -> dict[str, str]:
        """Of the agent's headers those that are passed on, and the key."""
        key = {"authorization": f"Bearer {self.key}"} if self.auth == "bearer" else {self.auth: self.key}
        return self.passed(given) | {"accept-encoding": "identity"} | key


def _without_login(url: str) -> str:
    """`url` as a message may show it: what stands before an @ or after a ? may be a secret.

    >>> _without_login("https://me:secret@host/v1?key=x")
    'https://[redacted]@host/v1'
    """
    return re.sub(r"//[^/@]*@", "//[redacted]@", url.partition("?")[0])


@cache
def _tls() -> ssl.SSLContext:
    """Once: reading the machine's certificates takes longer than a handshake."""
    return ssl.create_default_context()


def passed_back(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Of the provider's headers those that the agent gets."""
    return {name.lower(): value for name, value in headers if name.lower().startswith(_RESPONSE_HEADERS)}


def whole_body(response: ProviderResponse) -> bytes:
    """The whole body; `OSError` when it is larger than any answer of a model."""
    data = response.read(_WHOLE_BYTES + 1)
    if len(data) > _WHOLE_BYTES:
        raise OSError("the provider's answer is too large")
    encoding = response.headers.get("content-encoding", "identity")
    if encoding == "gzip":  # asked for identity; some gateways compress errors all the same
        try:
            inflated = gzip.GzipFile(fileobj=io.BytesIO(data)).read(_WHOLE_BYTES + 1)
        except (EOFError, zlib.error) as error:
            raise OSError("the provider's answer is broken gzip") from error
        if len(inflated) > _WHOLE_BYTES:
            raise OSError("the provider's answer is too large")
        return inflated
    if encoding != "identity":
        raise OSError(f"the provider's answer is {encoding}-encoded")
    return data


def json_body(data: bytes) -> dict[str, Any]:
    """The body's object; of an array, as streams of Gemini have it, the first."""
    try:
        found: object = json.loads(data)
        return mapping(found) or mapping((objects(found) or [{}])[0])
    except (ValueError, RecursionError):
        return {"message": re.sub(r"\s+", " ", data[:300].decode(errors="replace"))}


class UpstreamConnections:
    """The live connections to the provider: closing the gateway closes them and stops the spending at once."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self._live: dict[http.client.HTTPConnection, object] = {}  # connection -> who asks
        self._lock = threading.Lock()
        self.closed = False

    @contextmanager
    def open(
        self,
        method: str,
        target: str,
        headers: dict[str, str],
        data: bytes | None,
        idle_s: float,
        *,
        owner: object = None,
    ) -> Generator[ProviderResponse, None, None]:
        """The response's head. `owner`: by which `cut` finds the connection. Raises `OSError` or `HTTPException`
        when there is none, `UpstreamRefusal` when there can be none. A key that was refused is renewed once."""
        asked = Outgoing(method, target, headers, data)
        sent = self.upstream.outgoing(asked)
        with self._exchange(sent, idle_s, owner) as response:
            if response.status != _UNAUTHORISED or not self.upstream.renew(sent):
                yield self.upstream.received(response)
                return
        with self._exchange(self.upstream.outgoing(asked), idle_s, owner) as response:
            yield self.upstream.received(response)

    @contextmanager
    def _exchange(
        self, sent: Outgoing, idle_s: float, owner: object
    ) -> Generator[http.client.HTTPResponse, None, None]:
        connection = self.upstream.connection()
        with self._lock:
            if self.closed:
                raise ConnectionAbortedError("the gateway is closed")
            self._live[connection] = owner
        try:
            connection.connect()
            if self.closed:
                raise ConnectionAbortedError("the gateway is closed")
            connection.sock.settimeout(idle_s)
            connection.request(sent.method, sent.target, sent.data, sent.headers)
            yield connection.getresponse()
        finally:
            with self._lock:
                self._live.pop(connection, None)
            connection.close()

    def cut(self, owner: object) -> None:
        """Hang up on the provider where it is asked for this one."""
        with self._lock:
            for connection in [one for one, asks in self._live.items() if asks is owner]:
                _shut(connection)

    def close(self) -> None:
        with self._lock:
            self.closed = True
            for connection in self._live:
                _shut(connection)


def _shut(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):  # AttributeError: it has no socket yet
        connection.sock.shutdown(2)
