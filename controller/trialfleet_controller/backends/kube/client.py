"""Sends requests to a Kubernetes API server: raw JSON, typed errors, a time-out on every read."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, cast

import urllib3
from urllib3 import PoolManager
from urllib3.exceptions import HTTPError

from trialfleet_controller.backends.kube.api_requests import PODS, VERSION, Json, KubeRequest
from trialfleet_controller.backends.kube.errors import Unreachable, error_of
from trialfleet_controller.backends.kube.pods import Pod, json_object, parse
from trialfleet_ledger.errors import OperatorError

_SPARE = 8  # connections besides those of the callers' threads: the watch, deletes, diagnosis


@dataclass(frozen=True, slots=True)
class Connection:
    """`authorise` returns the headers for a request that is sent now: it refreshes a token that has expired."""

    pool: PoolManager
    host: str
    authorise: Callable[[], dict[str, str]]

    def __repr__(self) -> str:
        return f"Connection({self.host!r})"  # without credentials, wherever it is printed


def connect(context: str | None = None, *, threads: int = 16) -> Connection:
    """To the cluster of `context`; None: of the kubeconfig's current context, or the cluster that this pod runs
    in.

    Raises `OperatorError` when there is no kubeconfig or no such context. Sends nothing to the server.
    """
    configuration = _configuration(context)
    configuration.connection_pool_maxsize = threads + _SPARE
    configuration.keep_alive = True  # of TCP: it notices a silent path even without a read time-out
    configuration.retries = False  # callers decide what to repeat, and when
    from kubernetes.client import ApiClient

    pool: PoolManager = ApiClient(configuration).rest_client.pool_manager
    return Connection(pool, str(configuration.host).rstrip("/"), _Authorisation(configuration))


def _configuration(context: str | None) -> Any:
    """kubernetes.client.Configuration, filled in."""
    from kubernetes import config
    from kubernetes.client import Configuration

    filled = Configuration()
    untyped: Any = config
    try:
        if context is None and _inside_a_pod():
            untyped.load_incluster_config(client_configuration=filled)
        else:
            file = os.environ.get("KUBECONFIG") or None  # the library reads the variable only when it is imported
            untyped.load_kube_config(file, context=context, client_configuration=filled, persist_config=False)
    except config.ConfigException as error:
        raise _no_configuration(context, str(error)) from error
    return filled


def _inside_a_pod() -> bool:
    return "KUBECONFIG" not in os.environ and "KUBERNETES_SERVICE_HOST" in os.environ


def _no_configuration(context: str | None, why: str) -> OperatorError:
    file = os.environ.get("KUBECONFIG", "~/.kube/config")
    if context is not None and context in why:
        return OperatorError(
            f"there is no context {context!r}",
            where=file,
            hint="write one that `kubectl config get-contexts` lists: kubernetes: {context: NAME}",
        )
    return OperatorError(
        f"there is no Kubernetes configuration: {why}",
        where=file,
        hint="export KUBECONFIG=/path/to/kubeconfig, or start a local cluster with `make kind-up`",
    )


class _Authorisation:
    """Reads exec plugins and token files under a lock: the official hook is not thread-safe."""

    def __init__(self, configuration: Any) -> None:
        self._configuration = configuration
        self._lock = threading.Lock()

    def __call__(self) -> dict[str, str]:
        with self._lock:
            settings = self._configuration.auth_settings()
        return {entry["key"]: entry["value"] for entry in settings.values() if entry["value"]}


CONNECT_S = 5.0
READ_S = 30.0
PAGE = 500  # objects in a page of a listing
WATCH_SLACK_S = 15.0  # a watch that is silent this long past its own end is a dead connection
_NOT_JSON = "the answer is not a JSON object: the server at this address is not a Kubernetes API server"
_LINE_LIMIT = 16 * 2**20  # bytes: no pod is near it


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing. `resource_version` is the whole listing's; `more` is None on the last page."""

    items: list[Json]
    resource_version: str
    more: str | None


class OpenWatch:
    """An open watch. Iterating gives one line of JSON per event; `shut` ends it from another thread."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        """Ends when the server ends the watch. Raises `Unreachable` when the connection breaks or falls silent."""
        rest = b""
        try:
            for chunk in self._response.stream(2**16):
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > _LINE_LIMIT:
                    raise Unreachable("an event is too long")
                yield from (line for line in lines if line)
        except (HTTPError, OSError) as error:
            raise Unreachable(_one_line(error)) from error

    def shut(self) -> None:
        with suppress(OSError, ValueError, RuntimeError):  # it may be over already
            self._response.shutdown()


class Client:
    """Safe from any thread. A request that fails raises an error of `kube.errors` and nothing else.

    Nothing is repeated here: each caller decides what to repeat, how long, and when to stop waiting.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._throttled_until = 0.0

    @classmethod
    def connect(cls, context: str | None = None, *, threads: int = 16) -> Client:
        """Raises `OperatorError`: no kubeconfig, no such context."""
        return cls(connect(context, threads=threads))

    @property
    def host(self) -> str:
        return self._connection.host

    @property
    def throttled_s(self) -> float:
        """How many seconds remain of the longest wait that the server has asked for, of any caller."""
        return max(0.0, self._throttled_until - time.monotonic())

    def close(self) -> None:
        self._connection.pool.clear()

    def call(self, request: KubeRequest) -> Json:
        """The answer, a JSON object."""
        try:
            answer: object = json.loads(self._read(request))
        except ValueError as error:
            raise Unreachable(_NOT_JSON) from error
        if not isinstance(answer, dict):
            raise Unreachable(_NOT_JSON)
        return json_object(cast("object", answer))

    def text(self, request: KubeRequest) -> str:
        return self._read(request).decode(errors="replace")

    def page(self, request: KubeRequest) -> Page:
        """The answer to a listing."""
        answer = self.call(request)
        head = json_object(answer.get("metadata"))
        return Page(answer.get("items") or [], str(head.get("resourceVersion", "")), head.get("continue") or None)

    def pages(self, request: KubeRequest) -> Iterator[Page]:
        """A long listing, in parts of `PAGE` objects."""
        more: str | None = None
        while True:
            page = self.page(replace(request, query={**request.query, "limit": PAGE, "continue": more}))
            yield page
            more = page.more
            if more is None:
                return

    @contextmanager
    def watch(self, request: KubeRequest) -> Generator[OpenWatch]:
        response = self.send(request)
        try:
            yield OpenWatch(response)
        finally:
            response.close()  # not back into the pool: its stream may have been left in the middle

    def server_time(self) -> float:
        """Seconds since 1970 on the API server's clock, from the header of an answer."""
        response = self.send(VERSION)
        response.drain_conn()
        response.release_conn()
        date = response.headers.get("Date")
        return parsedate_to_datetime(date).timestamp() if date else time.time()

    def send(self, request: KubeRequest) -> urllib3.BaseHTTPResponse:
        """The only place that sends. Returns the answer with its body unread; raises for every status but 2xx."""
        try:
            response = self._sent(request)
            if 200 <= response.status < 300:
                return response
            refused = error_of(response.status, response.headers, response.read())
        except (HTTPError, OSError) as error:
            raise Unreachable(_one_line(error)) from error
        response.release_conn()
        self._throttled_until = max(self._throttled_until, time.monotonic() + refused.retry_after_s)
        raise refused

    def _sent(self, request: KubeRequest) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": "trialfleet", **self._connection.authorise()}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        read_s = READ_S if request.watch_s is None else request.watch_s + WATCH_SLACK_S
        return self._connection.pool.request(
            request.method,
            f"{self._connection.host}{request.target}",
            body=None if request.body is None else json.dumps(request.body, separators=(",", ":")).encode(),
            headers=headers,
            timeout=urllib3.Timeout(connect=CONNECT_S, read=read_s),
            retries=False,
            redirect=False,
            preload_content=False,
        )

    def _read(self, request: KubeRequest) -> bytes:
        response = self.send(request)
        try:
            return response.read()
        except (HTTPError, OSError) as error:
            raise Unreachable(_one_line(error)) from error
        finally:
            response.release_conn()


def _one_line(error: Exception) -> str:
    """urllib3's messages hold addresses, never headers."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def pods(client: Client, namespace: str, selector: str) -> Iterator[Pod]:
    """All pods with these labels, page by page. Raises `ApiError`."""
    for page in client.pages(PODS.list(namespace, labels=selector)):
        yield from (parse(raw) for raw in page.items)
