"""What k8s/kind's files have to agree on, and where its store runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from trialfleet_controller.kind_cluster.engine import STORE_PORT
from trialfleet_controller.kind_cluster.machine import DEFAULT_CLUSTER, DEFAULT_PORT
from trialfleet_controller.operate.submit import KIND_IMAGE
from trialfleet_controller.planning.campaign_file import load_campaign

FOLDER = Path(__file__).parents[4] / "k8s/kind"


def manifest(kind: str) -> dict[str, Any]:
    return next(one for one in yaml.safe_load_all((FOLDER / "store.yaml").read_text()) if one["kind"] == kind)


def test_the_port_is_the_same_from_this_machine_to_the_store() -> None:
    nodes = yaml.safe_load((FOLDER / "cluster.yaml").read_text())["nodes"]
    (mapping,) = nodes[0]["extraPortMappings"]
    (port,) = manifest("Service")["spec"]["ports"]
    assert f"{port['nodePort']}/tcp" == f"{mapping['containerPort']}/tcp" == STORE_PORT
    assert (mapping["hostPort"], mapping["listenAddress"]) == (DEFAULT_PORT, "127.0.0.1")
    store = load_campaign(FOLDER / "demo.yaml").spec.store_spec
    assert store.endpoint == f"http://127.0.0.1:{DEFAULT_PORT}"
    assert f"KIND_PORT:-{DEFAULT_PORT}" in (FOLDER / "up").read_text()


def test_the_cluster_has_the_same_name_everywhere() -> None:
    kube = load_campaign(FOLDER / "demo.yaml").spec.kubernetes
    assert kube is not None
    assert kube.context == f"kind-{DEFAULT_CLUSTER}"
    assert f"KIND_CLUSTER:-{DEFAULT_CLUSTER}" in (FOLDER / "settings.sh").read_text()
    assert KIND_IMAGE in (FOLDER / "up").read_text()


def test_either_worker_can_be_drained_without_the_store() -> None:
    nodes = yaml.safe_load((FOLDER / "cluster.yaml").read_text())["nodes"]
    assert [node["role"] for node in nodes] == ["control-plane", "worker", "worker"]
    pod = manifest("Deployment")["spec"]["template"]["spec"]
    role = "node-role.kubernetes.io/control-plane"
    assert pod["nodeSelector"] == {role: ""}
    assert pod["tolerations"] == [{"key": role, "operator": "Exists", "effect": "NoSchedule"}]
