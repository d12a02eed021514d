"""A scripted API server, a client of it, and backends that use both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from urllib3 import PoolManager

from tests.integration.kube_http.pods import QUICK, SHORT
from tests.support.plans import kube_plan
from tests.support.scripted_api import Api, api_server
from trialfleet_controller.backends.kube.backend import KubernetesBackend
from trialfleet_controller.backends.kube.client import Client, Connection


@pytest.fixture
def api() -> Iterator[Api]:
    with api_server() as served:
        yield served


@pytest.fixture
def client(api: Api) -> Iterator[Client]:
    made = Client(Connection(PoolManager(maxsize=32), api.url, dict))
    yield made
    made.close()


@pytest.fixture
def opened(api: Api, client: Client) -> Iterator[Callable[..., KubernetesBackend]]:
    made: list[KubernetesBackend] = []

    def open_backend(
        *, max_pending: int | None = None, keep_failed: int = 0, outlives_s: float | None = None, **kube: Any
    ) -> KubernetesBackend:
        plan = kube_plan(namespaces=("trials",), graces=SHORT, **kube)
        own: dict[str, Any] = {"max_pending": max_pending, "keep_failed": keep_failed, "outlives_s": outlives_s}
        made.append(KubernetesBackend(plan, store_url="s3://b/p", client=client, intervals=QUICK, **own))
        return made[-1]

    yield open_backend
    for backend in made:
        backend.close()
