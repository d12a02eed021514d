"""Quotas and nodes: what fits where."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from trialfleet_controller.operate.cluster_capacity import (
    counted_resources,
    misfit_reason,
    quota_capacity,
)


def pod(cpu: str = "500m", memory: str = "1Gi", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}
    return {"spec": {"containers": [{"resources": resources}, {}], **spec}}


def node(**spec: Any) -> dict[str, Any]:
    allocatable = {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "10Gi", "pods": "110"}
    return {
        "metadata": {"name": "n", "labels": {"disk": "ssd"}},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def quota(**hard: str) -> dict[str, Any]:
    named = {name.replace("_", "."): value for name, value in hard.items()}
    return {"metadata": {"name": "q"}, "spec": {}, "status": {"hard": named, "used": dict.fromkeys(named, "0")}}


def test_requests_stand_under_both_of_their_names() -> None:
    sums = counted_resources(pod())
    assert sums["cpu"] == sums["requests.cpu"] == Decimal("0.5")
    assert sums["limits.memory"] == 2**30
    assert "limits.cpu" not in sums


def test_the_resource_that_ends_first_decides() -> None:
    assert quota_capacity([quota(pods="9", requests_cpu="2")], pod()) == (4, "requests.cpu of quota q")
    used = quota(pods="9")
    used["status"]["used"]["pods"] = "9"
    assert quota_capacity([quota(cpu="100"), used], pod()) == (0, "pods of quota q")


def test_an_overused_quota_has_no_room_and_others_do_not_count() -> None:
    over = quota(pods="1")
    over["status"]["used"]["pods"] = "3"
    assert quota_capacity([over], pod())[0] == 0
    scoped = quota(pods="0")
    scoped["spec"] = {"scopes": ["BestEffort"]}
    assert quota_capacity([scoped, quota(services="0")], pod()) == (None, None)


@pytest.mark.parametrize(
    ("made", "asked_pod", "why"),
    [
        (node(), pod(), None),
        (node(), pod(cpu="3"), "too little cpu"),
        (node(), pod(cpu="3", memory="5Gi"), "too little cpu and memory"),
        (node(unschedulable=True), pod(), "cordoned"),
        (node(), pod(nodeSelector={"disk": "ssd"}), None),
        (node(), pod(nodeSelector={"disk": "hdd"}), "node_selector does not match"),
        (node(taints=[{"key": "gpu", "effect": "NoSchedule"}]), pod(), "taint gpu is not tolerated"),
        (node(taints=[{"key": "gpu", "effect": "PreferNoSchedule"}]), pod(), None),
        (
            node(taints=[{"key": "gpu", "value": "a", "effect": "NoSchedule"}]),
            pod(tolerations=[{"key": "gpu", "operator": "Exists"}]),
            None,
        ),
        (
            node(taints=[{"key": "gpu", "value": "a", "effect": "NoSchedule"}]),
            pod(tolerations=[{"key": "gpu", "value": "b", "effect": "NoSchedule"}]),
            "taint gpu is not tolerated",
        ),
        (node(taints=[{"key": "x", "effect": "NoExecute"}]), pod(tolerations=[{"operator": "Exists"}]), None),
    ],
)
def test_why_a_node_does_not_do(made: dict[str, Any], asked_pod: dict[str, Any], why: str | None) -> None:
    assert misfit_reason(made, asked_pod) == why


def test_a_node_that_is_not_ready() -> None:
    lost = node()
    lost["status"]["conditions"][0]["status"] = "Unknown"
    assert misfit_reason(lost, pod()) == "not ready"
