"""The controller on several nodes of Ray: a head and two workers as pods, two shards over two namespaces, and one
worker that is killed."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.cluster.cluster import SERVES, allow, on_cluster
from tests.cluster.minimal import Minimal, api_server, kubectl, minimal, store_secret
from tests.support.waiting import wait_until
from trialfleet_controller.dispatch.shards import shard_of
from trialfleet_ledger.store.open import open_store

pytestmark = on_cluster("controller-image", timeout_s=900)

CONTROLLER = "trialfleet-controller"
TRIALS = 10
HEAD = ("--head", "--port=6379", "--num-cpus=0", "--include-dashboard=false")
ALL = ("--object-store-memory=80000000", "--disable-usage-stats", "--block")


def environment() -> dict[str, str]:
    """Of Ray's nodes. What they use of store and cluster is their own."""
    return {
        "HOME": "/tmp",
        "RAY_AUTH_MODE": "disabled",
        "AWS_ENDPOINT_URL_S3": os.environ["S3_ENDPOINT_PODS"],
        **api_server(),
    }


def ray_pod(name: str, *options: str) -> dict[str, Any]:
    secret = {"secretRef": {"name": "trialfleet-store"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "ray"}},
        "spec": {
            "restartPolicy": "Always",  # a node that takes more than Ray's 30 s to appear ends, and starts again
            "serviceAccountName": CONTROLLER,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "ray",
                    "image": os.environ["TRIALFLEET_TEST_CONTROLLER_IMAGE"],
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["/opt/trialfleet/bin/ray", "start", *options, *ALL],
                    "env": [{"name": key, "value": value} for key, value in environment().items()],
                    "envFrom": [secret],
                    "resources": SERVES,
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }


def start(place: Minimal, name: str, *options: str) -> str:
    """The pod's address, once its node of Ray runs."""
    kubectl("apply", "-n", place.namespace, "-f", "-", stdin=ray_pod(name, *options))

    def logs() -> str:
        with suppress(AssertionError):  # kubectl: the container is not there yet
            return kubectl("logs", "-n", place.namespace, name, "--tail=200")
        return ""

    wait_until(
        lambda: "Ray runtime started" in logs(),
        lambda: f"{name}: {logs()[-2000:] or kubectl('describe', 'pod', '-n', place.namespace, name)[-2000:]}",
        within_s=240,
        every_s=1,
    )
    return kubectl("get", "pod", "-n", place.namespace, name, "-o", "jsonpath={.status.podIP}")


def test_two_shards_on_two_nodes_and_one_node_is_killed(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with minimal(tmp_path) as place, minimal(tmp_path / "other") as other:
        allow(place.namespace, CONTROLLER, CONTROLLER, at=other.namespace)
        store_secret(place)
        head = start(place, "ray-head", *HEAD)
        for name in ("ray-worker-0", "ray-worker-1"):
            start(place, name, f"--address={head}:6379", "--num-cpus=2")

        file = place.campaign(
            campaign="spread", reps=TRIALS, kubernetes={"namespaces": [place.namespace, other.namespace]}
        )
        env = [
            word for key, value in environment().items() for word in ("--env", f"{key}={value}") if key != "HOME"
        ]
        image = os.environ["TRIALFLEET_TEST_CONTROLLER_IMAGE"]
        submitted = place.trialfleet(
            "submit", str(file), "--controller-image", image, "--ray-address", f"{head}:6379", *env,
            env={"KUBECONFIG": os.environ["KUBECONFIG"]},
        )  # fmt: skip
        assert submitted.code == 0, submitted.err

        store = open_store(f"s3://{place.bucket}/runs", endpoint=os.environ["S3_ENDPOINT"])

        def ended() -> list[str]:
            return [entry.key.rpartition("/")[2].removesuffix(".json") for entry in store.list("spread/outcomes/")]

        wait_until(lambda: len(ended()) >= 2, "the first outcomes", within_s=240, every_s=1)
        kubectl("delete", "pod", "-n", place.namespace, "ray-worker-0", "--grace-period=0", "--force")
        assert len(ended()) < TRIALS, "killed too late to test anything"
        wait_until(lambda: len(ended()) == TRIALS, "all outcomes", within_s=480, every_s=1)

        standing = json.loads(place.trialfleet("status", str(file), "--json").out)
        assert standing["terminal"] == TRIALS
        assert standing["losses"] == {}, "pods outlive their dispatcher"
        assert {shard_of(trial, 2) for trial in ended()} == {0, 1}
        attempts = {entry.key.rpartition("/")[0] for entry in store.list("spread/attempts/")}
        assert len(attempts) == TRIALS
