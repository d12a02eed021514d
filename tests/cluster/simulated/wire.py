"""Requests over connections that are kept: to the API server as raw JSON, to the store by grants.

The runner's own `grants` module opens a connection per request, as one pod with four requests may; a thousand
pods in one process would measure little else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import urllib3

from trialfleet_controller.backends.kube.client import Connection, connect
from trialfleet_ledger.records.grants import PutGrant
from trialfleet_ledger.store.retry_policy import Patience

Json = dict[str, Any]

MERGE = "application/merge-patch+json"
_PATIENCE = Patience(total_s=300, longest_s=0.5)  # as long as a real runner bears with its store


class Refused(Exception):
    """An answer that no patience mends."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"HTTP {status}: {body[:300].decode(errors='replace')}")
        self.status = status


_NOT_NOW = (408, 429)


def _patiently(
    pool: urllib3.PoolManager, method: str, url: str, *, not_now: tuple[int, ...] = _NOT_NOW, **request: Any
) -> urllib3.BaseHTTPResponse:
    """The first answer that is one: servers are restarted under this."""
    trouble: object = None
    for _ in _PATIENCE.tries():
        try:
            answer = pool.request(method, url, retries=False, timeout=30, **request)
        except urllib3.exceptions.HTTPError as error:
            trouble = error
        else:
            if answer.status < 500 and answer.status not in not_now:
                return answer
            trouble = answer.status
    raise TimeoutError(f"no answer: {trouble}")


class Api:
    """The API server of the environment's kubeconfig."""

    def __init__(self, *, threads: int) -> None:
        self._at: Connection = connect(threads=threads)

    def call(self, method: str, path: str, body: Json | None = None, *, kind: str = "application/json") -> Json:
        """Raises `Refused` for every answer but 2xx."""
        answer = _patiently(
            self._at.pool,
            method,
            self._at.host + path,
            body=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": kind, "Accept": "application/json", **self._at.authorise()},
        )
        if not 200 <= answer.status < 300:
            raise Refused(answer.status, answer.data)
        return dict(json.loads(answer.data))

    def events(self, path: str, *, timeout_s: int) -> Iterator[Json]:
        """A watch, until the server or the connection ends it. Raises `Refused` when there is none: a server that
        has just started answers 429 until its cache is filled."""
        answer = self._at.pool.request(
            "GET",
            f"{self._at.host}{path}&watch=true&timeoutSeconds={timeout_s}",
            headers=self._at.authorise(),
            timeout=urllib3.Timeout(connect=5, read=timeout_s + 15),
            retries=False,
            preload_content=False,
        )
        rest = b""
        try:
            if answer.status != 200:
                raise Refused(answer.status, answer.read())
            for chunk in answer.stream(2**16):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from map(json.loads, filter(None, lines))
        finally:
            answer.close()


class Keys:
    """What grants allow, of any store that is reached over http or https."""

    def __init__(self, *, threads: int) -> None:
        self._pool = urllib3.PoolManager(
            maxsize=threads, ca_certs=os.environ.get("AWS_CA_BUNDLE"), num_pools=threads
        )

    def read(self, url: str) -> bytes:
        answer = _patiently(self._pool, "GET", url)
        if answer.status != 200:
            raise Refused(answer.status, answer.data)
        return answer.data

    def create(self, grant: PutGrant, data: bytes) -> bool:
        """True: the key holds `data`, written now or by an unanswered try. False: it holds something else."""
        answer = _patiently(
            self._pool, "PUT", grant.url, not_now=(*_NOT_NOW, 409), body=data, headers=grant.headers
        )
        if answer.status in (200, 201, 204):
            return True
        if answer.status == 412 and grant.readback is not None:
            return self.read(grant.readback.url) == data
        raise Refused(answer.status, answer.data)
