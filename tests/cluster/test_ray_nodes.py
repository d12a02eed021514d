"""The controller on several nodes of Ray: a head and two workers as pods, two shards over two namespaces, and one
worker that is killed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.minimal import Minimal, kubectl, minimal
from trialfleet_controller.shards import shard_of
from trialfleet_runner.store.open import open_store

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.needs("cluster", "s3", "image", "controller-image"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

TRIALS = 10
HEAD = ("--head", "--port=6379", "--num-cpus=0", "--include-dashboard=false")
ALL = ("--object-store-memory=80000000", "--disable-usage-stats", "--block")


def environment() -> dict[str, str]:
    """Of Ray's nodes. What they use of store and cluster is their own."""
    gateway = os.environ.get("TRIALFLEET_TEST_API_SERVER")
    return {
        "HOME": "/tmp",
        "RAY_AUTH_MODE": "disabled",
        "AWS_ENDPOINT_URL_S3": os.environ["S3_ENDPOINT_PODS"],
        **({"KUBERNETES_SERVICE_HOST": gateway, "KUBERNETES_SERVICE_PORT": "6443"} if gateway else {}),
    }


def ray_pod(name: str, *options: str) -> dict[str, Any]:
    secret = {"secretRef": {"name": "trialfleet-store"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "ray"}},
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": "trialfleet-controller",
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
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }


def start(place: Minimal, name: str, *options: str) -> str:
    """The pod's address, once its node of Ray runs."""
    kubectl("apply", "-n", place.namespace, "-f", "-", given=json.dumps(ray_pod(name, *options)))
    wait_for(lambda: "Ray runtime started" in kubectl("logs", "-n", place.namespace, name, "--tail=200"), name)
    return kubectl("get", "pod", "-n", place.namespace, name, "-o", "jsonpath={.status.podIP}")


def wait_for(done: Callable[[], bool], what: str, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            if done():
                return
        except AssertionError:  # kubectl: the container is not there yet
            pass
        assert time.monotonic() < end, f"it did not happen: {what}"
        time.sleep(1)


def store_secret(place: Minimal) -> None:
    keys = [f"--from-literal={name}={os.environ[name]}" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")]
    kubectl("create", "secret", "generic", "trialfleet-store", "-n", place.namespace, *keys)


def allow(place: Minimal, other: Minimal) -> None:
    """The dispatchers' account may work in the other namespace, too."""
    kubectl(
        "create", "rolebinding", "dispatchers", "-n", other.namespace,
        "--role=trialfleet-controller", f"--serviceaccount={place.namespace}:trialfleet-controller",
    )  # fmt: skip


def test_two_shards_on_two_nodes_and_one_node_is_killed(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with minimal(tmp_path) as place, minimal(tmp_path / "other") as other:
        allow(place, other)
        keys = [
            f"--from-literal={key}={os.environ[key]}" for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        ]
        kubectl("create", "secret", "generic", "trialfleet-store", "-n", place.namespace, *keys)
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

        wait_for(lambda: len(ended()) >= 2, "the first outcomes")
        kubectl("delete", "pod", "-n", place.namespace, "ray-worker-0", "--grace-period=0", "--force")
        assert len(ended()) < TRIALS, "killed too late to test anything"
        wait_for(lambda: len(ended()) == TRIALS, "all outcomes", 480)

        standing = json.loads(place.trialfleet("status", str(file), "--json").out)
        assert standing["terminal"] == TRIALS
        assert standing["losses"] == {}, "pods outlive their dispatcher"
        assert {shard_of(trial, 2) for trial in ended()} == {0, 1}
        attempts = {entry.key.rpartition("/")[0] for entry in store.list("spread/attempts/")}
        assert len(attempts) == TRIALS
