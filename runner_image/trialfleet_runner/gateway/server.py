"""HTTP towards the agent: checks the token, the path and the size, then hands the request on."""

from __future__ import annotations

import hmac
import http.client
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from trialfleet_runner.gateway.gateway_context import AgentConnection, AgentRequest, ClientGone, GatewayContext
from trialfleet_runner.gateway.proxied_request import describe_foreign, serve
from trialfleet_runner.gateway.request_json import MalformedRequest, parse_request, serialise_request
from trialfleet_runner.gateway.routes import (
    collect_models,
    count_fields,
    dialect_of,
    lists_models,
    local_error,
    without_key,
)
from trialfleet_runner.gateway.upstream import UpstreamRefusal, passed_back

MAX_REQUEST_BYTES = 32 * 2**20  # the Messages API's own limit
_QUERY = re.compile(r"[A-Za-z0-9_.=&-]{0,200}")
_MODEL_QUERY = re.compile(r"(?:(?:beta=true|alt=sse|alt=json)(?:&|$)){0,3}")  # where a model answers
_MAX_ERROR_BYTES = 2**20
_RELAY_S = 60.0  # without a byte, where no model has to answer
_MOST_TRAILERS, _TRAILER_BYTES = 20, 1000


class _Refused(Exception):
    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


def _read(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The request's object, and the bytes that every parser reads as this object."""
    try:
        body = parse_request(data)
        return body, serialise_request(body)
    except (MalformedRequest, RecursionError) as error:
        message = str(error) if isinstance(error, MalformedRequest) else "the body is nested too deeply"
        raise _Refused(400, "invalid_request_error", f"trialfleet: {message}") from None


class Handler(BaseHTTPRequestHandler):
    """One connection of the agent; several requests may follow each other on it."""

    protocol_version = "HTTP/1.1"
    server_version = "trialfleet"
    sys_version = ""

    def __init__(self, connection: socket.socket, shared: GatewayContext, token: str) -> None:
        self._shared, self._token = shared, token
        self._reply = AgentConnection(self)
        super().__init__(connection, ("", 0), None)  # type: ignore[arg-type]  # the server is never used

    def handle(self) -> None:
        with suppress(OSError, ClientGone):  # the agent hung up between or inside requests
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: what matters is in the report."""

    def do_POST(self) -> None:
        self._guarded(self._post)

    def do_GET(self) -> None:
        self._guarded(self._get)

    def _guarded(self, act: Callable[[str, str, dict[str, str]], None]) -> None:
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        lengths = {value.strip() for value in self.headers.get_all("content-length", [])}
        try:
            key, query = without_key(query)
            self._authorise(headers, key)
            if len(lengths) > 1:
                raise self._unread(400, "the request states two lengths")
            asks = self.command == "POST" and dialect_of(path, query) is not None
            if asks:
                self._shared.tally.count_received()
            if not (_MODEL_QUERY if asks else _QUERY).fullmatch(query):
                raise _Refused(400, "invalid_request_error", "this query is not passed on")
            act(path, f"?{query}" if query else "", headers)
        except _Refused as refused:
            with suppress(ClientGone):
                self._json(refused.status, refused.kind, refused.message)
        except ClientGone:
            self.close_connection = True

    def _authorise(self, headers: dict[str, str], key: str) -> None:
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        for given in (headers.get("x-api-key", ""), headers.get("x-goog-api-key", ""), bearer, key):
            if hmac.compare_digest(given.encode(), self._token.encode()):
                return
        self._shared.tally.stranger()
        self.close_connection = True  # its body is not read
        raise _Refused(401, "authentication_error", "trialfleet: this token opens nothing here")

    def _post(self, path: str, query: str, headers: dict[str, str]) -> None:
        stated = headers.get("content-length", "")
        size = int(stated) if re.fullmatch(r"\d{1,12}", stated) else MAX_REQUEST_BYTES
        with self._shared.room.take(min(size, MAX_REQUEST_BYTES)):
            self._serve(path, query, headers)

    def _serve(self, path: str, query: str, headers: dict[str, str]) -> None:
        counted, dialect = count_fields(path), dialect_of(path, query)
        try:
            data = self._body(headers)
        except (ClientGone, OSError):
            if dialect is not None:
                self._shared.tally.uncount_received()
            raise
        if counted is None and dialect is None:
            raise _Refused(404, "not_found_error", f"trialfleet: {path[:100]} is not served here")
        body, data = _read(data)
        if dialect is not None:
            serve(self._shared, AgentRequest(dialect, query, headers, data, body), self._reply)
        elif counted is not None:
            if problem := counted.problem(body, "", self._shared.permitted):
                raise _Refused(400, "invalid_request_error", f"trialfleet: {problem}")
            self._declare(collect_models(path, body))
            self._relay("POST", path + query, headers, data)

    def _get(self, path: str, query: str, headers: dict[str, str]) -> None:
        if not lists_models(path):
            raise _Refused(404, "not_found_error", f"trialfleet: {path[:100]} is not served here")
        self._declare(collect_models(path, {}))
        self._relay("GET", path + query, headers, None)

    def _declare(self, models: list[str]) -> None:
        """Refuse a request that names a model which the plan lacks."""
        for model in models:
            if not self._shared.tally.is_declared(model):
                self._shared.tally.note_foreign(model)
                raise _Refused(404, "not_found_error", f"trialfleet: {describe_foreign(model)}")

    def _relay(self, method: str, target: str, headers: dict[str, str], data: bytes | None) -> None:
        """A request that no model answers: passed through, and counted with the others."""
        with self._shared.account.hold_place(self._shared.drop_left) as held:
            if held.refused is not None:
                self._shared.tally.refuse(held.refused.message, held.refused.stop)
                raise _Refused(400, "invalid_request_error", f"trialfleet: {held.refused.message}")
            status, back, answer = self._relayed(method, target, headers, data)
            held.counted = status < 500 and status != HTTPStatus.TOO_MANY_REQUESTS
        self._reply.whole(status, back, answer)

    def _relayed(
        self, method: str, target: str, headers: dict[str, str], data: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        line, keys = self._shared.line, self._shared.keys
        try:
            with line.open(method, target, headers, data, _RELAY_S) as response:
                answer = response.read(_MAX_ERROR_BYTES)
                status, back = response.status, passed_back(response.getheaders())
        except UpstreamRefusal as error:
            raise _Refused(404, "not_found_error", f"trialfleet: {error}") from None
        except (OSError, http.client.HTTPException):
            raise _Refused(502, "api_error", "trialfleet: the model provider does not answer") from None
        return status, keys.redact_headers(back), keys.redact_bytes(answer)

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("content-encoding", "identity") != "identity":
            raise self._unread(415, "compressed requests are not served")
        length, transfer = headers.get("content-length", ""), headers.get("transfer-encoding")
        if transfer is not None and (transfer.strip().lower() != "chunked" or length):
            raise self._unread(400, "the request's framing is ambiguous")
        if transfer is not None:
            return self._chunks()
        if not re.fullmatch(r"\d{1,12}", length):
            raise self._unread(411, "the request states no length")
        if int(length) > MAX_REQUEST_BYTES:
            raise self._unread(413, "the request is too large")
        data = self.rfile.read(int(length))
        if len(data) < int(length):
            raise ClientGone
        return data

    def _chunks(self) -> bytes:
        data = b""
        while True:
            line = self.rfile.readline(100)
            if not line:
                raise ClientGone
            head = line.partition(b";")[0].strip()
            if not re.fullmatch(rb"[0-9a-fA-F]{1,8}", head):
                raise self._unread(400, "a chunk of the request is malformed")
            size = int(head, 16)
            if len(data) + size > MAX_REQUEST_BYTES:
                raise self._unread(413, "the request is too large")
            if size == 0:
                return self._without_trailers(data)
            piece = self.rfile.read(size + 2)
            if len(piece) < size + 2:
                raise ClientGone
            data += piece[:size]

    def _without_trailers(self, data: bytes) -> bytes:
        for _ in range(_MOST_TRAILERS):
            if self.rfile.readline(_TRAILER_BYTES) in (b"\r\n", b"\n"):
                return data
        raise self._unread(400, "the request's trailers do not end")

    def _unread(self, status: int, message: str) -> _Refused:
        self.close_connection = True
        return _Refused(status, "invalid_request_error", f"trialfleet: {message}")

    def _json(self, status: int, kind: str, message: str) -> None:
        data = local_error(self.path.partition("?")[0], status, kind, message)
        self._reply.whole(status, {"content-type": "application/json"}, data)
