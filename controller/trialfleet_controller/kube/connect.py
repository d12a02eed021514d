"""From a kubeconfig, or a pod's own service account, to an authorised connection pool.

The official client reads the configuration (contexts, certificates, exec plugins, token refresh, proxies); its
urllib3 pool is the transport.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from urllib3 import PoolManager

from trialfleet_runner.errors import OperatorError

_SPARE = 8  # connections beside the callers' own threads: the watch, deletes, diagnosis


@dataclass(frozen=True, slots=True)
class Connection:
    """`authorise` gives the header that a request needs now: tokens are refreshed when they end."""

    pool: PoolManager
    host: str
    authorise: Callable[[], dict[str, str]]

    def __repr__(self) -> str:
        return f"Connection({self.host!r})"  # and no credentials, wherever it is printed


def connect(context: str | None = None, *, threads: int = 16) -> Connection:
    """The cluster of `context`, of the current context, or the one that this pod runs in.

    Raises `OperatorError` when there is no kubeconfig or no such context. Nothing is asked of the server yet.
    """
    configuration = _configuration(context)
    configuration.connection_pool_maxsize = threads + _SPARE
    configuration.keep_alive = True  # TCP's own: a path that went silent is noticed below the read time-outs too
    configuration.retries = False  # who calls knows what may be repeated, and when
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
            file = os.environ.get("KUBECONFIG") or None  # the library's own default is of its import
            untyped.load_kube_config(file, context=context, client_configuration=filled, persist_config=False)
    except config.ConfigException as error:
        raise _refusal(context, str(error)) from error
    return filled


def _inside_a_pod() -> bool:
    return "KUBECONFIG" not in os.environ and "KUBERNETES_SERVICE_HOST" in os.environ


def _refusal(context: str | None, why: str) -> OperatorError:
    file = os.environ.get("KUBECONFIG", "~/.kube/config")
    if context is not None and context in why:
        return OperatorError(
            f"no context is called {context!r}",
            where=file,
            hint="kubectl config get-contexts lists them; name one in kubernetes: {context: …}",
        )
    return OperatorError(
        f"no cluster to talk to: {why}",
        where=file,
        hint="export KUBECONFIG=/path/to/kubeconfig, or make a local cluster: make kind-up",
    )


class _Authorisation:
    """Exec plugins and token files are read under a lock: the official hook is not made for threads."""

    def __init__(self, configuration: Any) -> None:
        self._configuration = configuration
        self._lock = threading.Lock()

    def __call__(self) -> dict[str, str]:
        with self._lock:
            settings = self._configuration.auth_settings()
        return {entry["key"]: entry["value"] for entry in settings.values() if entry["value"]}
