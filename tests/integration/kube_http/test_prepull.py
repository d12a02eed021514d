"""Pulling ahead on nodes that are not there, or whose kubelets are silent: it ends, and says so."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from scripted_api import Api

from tests.integration.kube_http.pods import eventually
from trialfleet_controller.kube.client import Client
from trialfleet_controller.operate import prepull as pulling
from trialfleet_controller.operate.prepull import Pulled, prepull
from trialfleet_runner.campaign import KubernetesSpec

KUBE = {"image": "trialfleet-runner:1", "namespaces": ("trials",), "graces": {"image_pull_s": 0.5}}


def begun(client: Client, done: list[Pulled]) -> threading.Thread:
    kube = KubernetesSpec.model_validate(KUBE)
    thread = threading.Thread(target=prepull, args=(client, kube, ["nowhere"]), kwargs={"tell": done.append})
    thread.start()
    return thread


def only(api: Api) -> dict[str, Any]:
    (pod,) = api.pods.values()
    return dict(pod)


def test_a_node_that_is_not_there(api: Api, client: Client) -> None:
    """The cluster's own sweeper deletes pods of such nodes."""
    done: list[Pulled] = []
    thread = begun(client, done)
    eventually(lambda: len(api.pods) == 1)
    api.remove(only(api)["metadata"]["name"])
    thread.join(60)
    assert not thread.is_alive()
    assert [(one.node, "is there such a node?" in str(one.trouble)) for one in done] == [("nowhere", True)]


def test_a_kubelet_that_is_silent(api: Api, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "_BEYOND_S", 0.5)
    done: list[Pulled] = []
    thread = begun(client, done)
    thread.join(60)
    assert not thread.is_alive()
    assert [(one.node, "is the node there, and ready?" in str(one.trouble)) for one in done] == [("nowhere", True)]
    eventually(lambda: not api.pods)
