"""Pulling ahead on nodes that are not there, or whose kubelets are silent: it ends, and says so."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from tests.support.scripted_api import Api
from tests.support.waiting import in_background, wait_until
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.operate import prepull as pulling
from trialfleet_controller.operate.prepull import Pulled, prepull
from trialfleet_ledger.campaign_spec import KubernetesSpec

KUBE = {"image": "trialfleet-runner:1", "namespaces": ("trials",), "graces": {"image_pull_s": 0.5}}


def begun(client: Client, done: list[Pulled]) -> Future[object]:
    kube = KubernetesSpec.model_validate(KUBE)
    return in_background(partial(prepull, client, kube, ["nowhere"], tell=done.append))


def only(api: Api) -> dict[str, Any]:
    (pod,) = api.pods.values()
    return dict(pod)


def test_a_pod_that_somebody_deletes(api: Api, client: Client) -> None:
    done: list[Pulled] = []
    run = begun(client, done)
    wait_until(lambda: len(api.pods) == 1)
    api.remove(only(api)["metadata"]["name"])
    run.result(60)
    assert [(one.node, one.trouble) for one in done] == [("nowhere", "its pod was deleted")]


def test_a_kubelet_that_is_silent(api: Api, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "_BEYOND_S", 0.5)
    done: list[Pulled] = []
    begun(client, done).result(60)
    assert [(one.node, "is the node there, and ready?" in str(one.trouble)) for one in done] == [("nowhere", True)]
    wait_until(lambda: not api.pods)
