"""One HTTP exchange with an S3 server: no redirects, verified TLS, a bound on time and size."""

from __future__ import annotations

import http.client
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from functools import cache
from typing import IO, NamedTuple, cast
from urllib.parse import urlsplit

_BLOCK = 2**20
_ERROR_BYTES = 65536  # of an error's XML


class Answer(NamedTuple):
    """A response; `body` is cut at the limit that the caller set, `whole` says whether it was not."""

    status: int
    body: bytes
    whole: bool = True

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
) -> Answer:
    """Sends one request and reads at most `limit` bytes of the answer, whatever its status.

    Raises `NoAnswerError` on connection errors, time-outs and broken answers. The message never holds the
    URL's query: that is the signature.
    """
    request = urllib.request.Request(url, data=body, headers=dict(headers or {}), method=method)  # noqa: S310
    deadline = time.monotonic() + timeout_s
    try:
        return _receive(request, limit, timeout_s, deadline)
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswerError(f"{without_query(url)}: {_reason(error)}") from error


def without_query(url: str) -> str:
    """The URL as it may be shown: without its signature.

    >>> without_query("https://s3.example/b/k?X-Amz-Signature=f00")
    'https://s3.example/b/k'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _receive(request: urllib.request.Request, limit: int, timeout_s: float, deadline: float) -> Answer:
    with _send(request, timeout_s) as response:
        blocks: list[bytes] = []
        left = limit + 1
        while left > 0 and (block := response.read(min(left, _BLOCK))):
            blocks.append(block)
            left -= len(block)
            if time.monotonic() > deadline:
                raise TimeoutError(f"the answer took longer than {timeout_s:.0f} s")
        body = b"".join(blocks)
        return Answer(response.status, body[:limit], whole=len(body) <= limit)


def _send(request: urllib.request.Request, timeout_s: float) -> http.client.HTTPResponse:
    try:
        response: object = _opener().open(request, timeout=timeout_s)
    except urllib.error.HTTPError as refusal:
        response = refusal  # any status is an answer here; it reads like a response
    return cast("http.client.HTTPResponse", response)


def _reason(error: BaseException) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    return f"{type(inner).__name__}: {inner}" if isinstance(inner, BaseException) else str(inner)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A signed request must not wander to another host: the redirect is the answer."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


@cache
def _opener() -> urllib.request.OpenerDirector:
    """Proxies as the environment says; authorities from $AWS_CA_BUNDLE, else $SSL_CERT_FILE, else the system."""
    context = ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)
    return urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=context))
