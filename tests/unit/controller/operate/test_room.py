"""Quotas and nodes: what fits where."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_controller.backends.kube.pod_requests import RUNNER_REQUESTS, SCORE_REQUESTS
from trialfleet_controller.operate.cluster import places_check
from trialfleet_controller.operate.cluster_capacity import (
    counted_resources,
    lower_limits,
    misfit_reason,
    node_places,
    quota_capacity,
)
from trialfleet_ledger.quantities import parse_quantity


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


def attempt(cpu: str = "1", memory: str = "1Gi") -> dict[str, Any]:
    """With what runner and tests request besides."""
    agent = {"cpu": cpu, "memory": memory, "ephemeral-storage": "1Gi"}
    made = [{"resources": {"requests": requests}} for requests in (RUNNER_REQUESTS, agent, SCORE_REQUESTS)]
    return {"spec": {"containers": made}}


def test_nodes_take_what_fits_if_they_were_empty() -> None:
    assert node_places([node()], attempt()) == 1, "two would need 2.04 CPUs"
    assert node_places([node(), node(), node(unschedulable=True)], attempt(cpu="0.5")) == 4 + 2
    assert node_places([], attempt()) == 0


def test_fewer_places_than_asked_for_name_the_field_and_a_value() -> None:
    check = places_check([node()], attempt(), 4, 1)
    assert check.result == "warning"
    assert check.found == (
        "an attempt fits on 1 of 1 node; if they were empty, 1 would fit at once, and limits.parallel is 4: the "
        "others wait until one ends, or an autoscaler adds a node"
    )
    assert check.fix == (
        "limits.cpu: 0.48, limits.memory: 896Mi at most, for 4 on nodes without DaemonSets; or "
        "limits.parallel: 1, or more nodes"
    )
    assert places_check([node(), node()], attempt(), None, 2).result == "ok"
    assert places_check([node(), node()], attempt(), 2, 2).result == "ok"


NODES = st.lists(
    st.tuples(st.integers(1, 16), st.integers(1, 64)).map(
        lambda size: (
            node()
            | {
                "status": node()["status"]
                | {
                    "allocatable": {
                        "cpu": str(size[0]),
                        "memory": f"{size[1]}Gi",
                        "ephemeral-storage": "900Gi",
                        "pods": "110",
                    }
                }
            }
        )
    ),
    min_size=1,
    max_size=5,
)


@given(NODES, st.integers(1, 40), st.floats(0.1, 4), st.integers(256, 8192))
def test_with_the_named_values_as_many_fit(
    nodes: list[dict[str, Any]], wanted: int, cpu: float, memory: int
) -> None:
    limits = {"cpu": f"{round(1000 * cpu)}m", "memory": f"{memory}Mi"}
    lower = lower_limits(nodes, attempt(**limits), wanted)
    for one in lower:
        name, _, value = one.removeprefix("limits.").partition(": ")
        assert parse_quantity(value) < parse_quantity(limits[name])
        limits[name] = value
    if lower:
        assert node_places(nodes, attempt(**limits)) >= wanted
