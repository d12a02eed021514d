"""A scripted API server, a client of it, and backends that use both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scripted_api import Api, api_server
from urllib3 import PoolManager

from tests.integration.kube_http.pods import QUICK, SHORT
from tests.unit.controller.kube.lab import kube_plan
from trialfleet_controller.kube.backend import KubernetesBackend
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.connect import Connection


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
        *, keep_failed: int = 0, graces: dict[str, float] | None = None, **kube: Any
    ) -> KubernetesBackend:
        plan = kube_plan(
            namespaces=("trials",), creates_per_s=1000, creates_burst=100, graces=graces or SHORT, **kube
        )
        made.append(
            KubernetesBackend.open(plan, store_url="s3://b/p", client=client, keep_failed=keep_failed, pace=QUICK)
        )
        return made[-1]

    yield open_backend
    for backend in made:
        backend.close()
