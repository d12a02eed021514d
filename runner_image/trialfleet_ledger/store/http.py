"""One HTTP exchange with an S3 server: no redirects, verified TLS, a bound on time and size."""

from __future__ import annotations

import http.client
import io
import os
import re
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

_BLOCK = 2**20
_ERROR_BYTES = 65536  # of an error's XML
_LARGE = 16384  # bytes; larger bodies are sent when the server says that it wants them
_CONTINUE_S = 1.0  # how long it has to say so
_AUTHORITIES = ("AWS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


class HttpResponse(NamedTuple):
    """A response; `body` is cut at the limit that the caller set, `whole` says whether it was not. `headers`: with
    names in lower case."""

    status: int
    body: bytes
    whole: bool = True
    headers: Mapping[str, str] = MappingProxyType({})

    @property
    def code(self) -> str:
        """The S3 error code in the body, or "" (some servers send none)."""
        found = re.search(rb"<Code>([A-Za-z0-9]{1,64})</Code>", self.body[:_ERROR_BYTES])
        return found[1].decode() if found else ""


class NoAnswerError(Exception):
    """No response, or half of one: nobody knows whether the request took effect."""


def exchange(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    limit: int = _ERROR_BYTES,
    timeout_s: float = 60,
) -> HttpResponse:
    """Sends one request and reads at most `limit` bytes of the answer; every status is returned.

    Raises `NoAnswerError` on connection errors, time-outs and broken answers. The message never holds the
    URL's query: that is the signature.
    """
    deadline = time.monotonic() + timeout_s
    connection, target = _connection(url, timeout_s)
    try:
        with closing(connection):
            response = _ask(connection, method, target, headers or {}, body)
            return _receive(response, limit, deadline)
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswerError(f"{without_query(url)}: {type(error).__name__}: {error}") from error


def without_query(url: str) -> str:
    """The URL as it may be shown: without its signature.

    >>> without_query("https://s3.example/b/k?X-Amz-Signature=f00")
    'https://s3.example/b/k'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _ask(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
) -> http.client.HTTPResponse:
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    if body is None or len(body) < _LARGE:
        connection.endheaders(body)
        return connection.getresponse()
    return _ask_first(connection, method, body)


def _ask_first(connection: http.client.HTTPConnection, method: str, body: bytes) -> http.client.HTTPResponse:
    """Send the body only if the server wants it: a refusal then costs no upload."""
    connection.putheader("Expect", "100-continue")
    connection.endheaders()
    word = _first_word(connection.sock)
    if not word or _says_continue(word):
        with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            connection.send(body)  # versitygw says "continue", then refuses: the refusal may still be there
    response = http.client.HTTPResponse(cast("socket.socket", _Resumed(connection.sock, word)), method=method)
    response.begin()  # skips "100 Continue"
    return response


def _first_word(sock: socket.socket) -> bytes:
    """The beginning of the answer to the headers alone; b"" from a server that waits for the body.

    A server that refuses a large body closes without reading it; had the body been sent, the refusal would
    be lost to the reset (seen with both real servers).
    """
    patience = sock.gettimeout()
    sock.settimeout(_CONTINUE_S)
    word = b""
    try:
        while len(word) < len("HTTP/1.1 100") and (block := sock.recv(4096)):
            word += block
    except TimeoutError:
        pass
    finally:
        sock.settimeout(patience)
    return word


def _says_continue(word: bytes) -> bool:
    return word[: len("HTTP/1.")] == b"HTTP/1." and word[9:12] == b"100"


class _Resumed(io.RawIOBase):
    """What `HTTPResponse` needs of a socket, with the bytes that were read before put back in front."""

    def __init__(self, sock: socket.socket, read_before: bytes) -> None:
        self._sock, self._before = sock, read_before

    def makefile(self, mode: str) -> io.BufferedReader:
        del mode
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._before:
            return self._sock.recv_into(buffer)
        part, self._before = self._before[: len(buffer)], self._before[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def _receive(response: http.client.HTTPResponse, limit: int, deadline: float) -> HttpResponse:
    length = response.length  # None: in chunks, which mark their own end
    left = limit + 1 if length is None else min(limit + 1, length)
    blocks: list[bytes] = []
    while left > 0 and (block := response.read1(min(left, _BLOCK))):
        blocks.append(block)
        left -= len(block)
        if time.monotonic() > deadline:
            raise TimeoutError("the answer took too long")
    if left > 0 and length is not None:  # http.client lets a body that ends early pass as whole
        raise http.client.IncompleteRead(b"", left)
    body = b"".join(blocks)
    headers = {name.lower(): value for name, value in response.getheaders()}
    return HttpResponse(response.status, body[:limit], len(body) <= limit, headers)


def _connection(url: str, timeout_s: float) -> tuple[http.client.HTTPConnection, str]:
    """A connection, not yet open, and the request's target. Proxies (without passwords) as the environment
    says; authorities from $AWS_CA_BUNDLE, else $SSL_CERT_FILE, else the system's."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    proxy = None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
    via = urlsplit(proxy) if proxy else parts
    if parts.scheme == "http":
        plain = http.client.HTTPConnection(via.hostname or "", via.port, timeout=timeout_s)
        return plain, url if proxy else target
    context = _trusting(*(os.environ.get(name) for name in _AUTHORITIES))
    tls = http.client.HTTPSConnection(via.hostname or "", via.port, timeout=timeout_s, context=context)
    if proxy:
        tls.set_tunnel(host, port)
    return tls, target


@lru_cache(maxsize=1)
def _trusting(bundle: str | None, *_: str | None) -> ssl.SSLContext:
    """Kept for the process: reading a system's authorities takes 30 ms, and an attempt sends some ten requests. By
    the variables that choose the authorities."""
    return ssl.create_default_context(cafile=bundle or None)
