"""k8s/kuberay with the KubeRay operator: the Ray cluster becomes ready with its token, a campaign runs through it,
and its head is deleted in the middle."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.cluster import CHECKOUT, done, on_cluster, read_pods
from tests.cluster.cluster import kubectl as asked
from tests.cluster.minimal import GATED, Minimal, api_server, kubectl, minimal, store_secret
from tests.support.audit import audit
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import names
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.open import open_store

pytestmark = on_cluster("controller-image", "kuberay", timeout_s=900)

ADDRESS = "trialfleet-head-svc:6379"  # as docs/how-to/run-on-ray.md has it
TRIALS, WIDTH = 3, 2
LIMITS = {"cpu": 0.1, "memory": "256Mi", "disk": "256Mi", "parallel": WIDTH}
PATIENCE = "RAY_gcs_rpc_server_reconnect_timeout_s", "15"  # Ray's own is 60
SMALL = {"requests": {"cpu": "50m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}}


def ray_cluster(place: Minimal, folder: Path) -> None:
    """k8s/kuberay by an overlay that names the place and the image; smaller, so that it fits on any node, and with
    less patience with a dead head."""
    base = os.path.relpath(CHECKOUT / "k8s/kuberay", folder.resolve())
    image = os.environ["TRIALFLEET_TEST_CONTROLLER_IMAGE"]
    name, _, tag = image.rpartition(":")
    overlay = {
        "namespace": place.namespace,
        "resources": [base],
        "images": [{"name": "trialfleet-controller", "newName": name, "newTag": tag}],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    objects = [each for each in yaml.safe_load_all(done(asked("kustomize", str(folder)))) if each]
    for each in objects:
        if each["kind"] == "RayCluster":
            _shrink(each["spec"], image)
    whole = {"apiVersion": "v1", "kind": "List", "items": objects}
    done(asked("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=whole))


def _shrink(spec: dict[str, Any], image: str) -> None:
    spec["workerGroupSpecs"][0] |= {"replicas": 1, "minReplicas": 1, "maxReplicas": 1}
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        for container in group["template"]["spec"]["containers"]:
            container |= {"image": image, "resources": SMALL}
            container["env"].append({"name": PATIENCE[0], "value": PATIENCE[1]})


def token_secret(place: Minimal) -> str:
    """The command of docs/how-to/run-on-ray.md."""
    token = secrets.token_hex(32)
    pairs = [f"--from-literal={pair}" for pair in ("RAY_AUTH_MODE=token", f"RAY_AUTH_TOKEN={token}")]
    kubectl("create", "secret", "generic", "trialfleet-ray", "-n", place.namespace, *pairs)
    return token


def ray_pods(place: Minimal, kind: str) -> list[str]:
    labels = f"ray.io/cluster=trialfleet,ray.io/node-type={kind}"
    return kubectl("get", "pods", "-n", place.namespace, "-l", labels, "-o", "name").split()


def at_work(place: Minimal) -> list[str]:
    pods: list[str] = [pod["metadata"]["name"] for pod in read_pods(place.namespace, names.TRIAL)]
    return [pod for pod in pods if place.begun(pod)]


def let_go_until(place: Minimal, happens: Callable[[], bool], within_s: float) -> None:
    def let_go() -> bool:
        for pod in at_work(place):
            place.let_go(pod)
        return happens()

    wait_until(let_go, "all outcomes", within_s=within_s, every_s=1)


def restarts(place: Minimal) -> int:
    """Of the controller's container."""
    path = "jsonpath={.items[*].status.containerStatuses[*].restartCount}"
    selector = "app.kubernetes.io/name=trialfleet-controller"
    return sum(map(int, kubectl("get", "pods", "-n", place.namespace, "-l", selector, "-o", path).split()))


def ready(place: Minimal) -> bool:
    state = asked("-n", place.namespace, "get", "raycluster", "trialfleet", "-o", "jsonpath={.status.state}")
    return state.stdout == "ready"


def test_a_campaign_through_a_ray_cluster_whose_head_is_deleted(tmp_path: Path) -> None:
    with minimal(tmp_path) as place:
        store_secret(place)
        token = token_secret(place)
        (tmp_path / "overlay").mkdir()
        ray_cluster(place, tmp_path / "overlay")
        wait_until(lambda: ready(place), "the Ray cluster is ready", within_s=240, every_s=1)
        (head,) = ray_pods(place, "head")
        refused = asked("-n", place.namespace, "exec", head, "--", "env", "-u", "RAY_AUTH_TOKEN", "HOME=/tmp",
                        "/opt/trialfleet/bin/ray", "health-check", "--address", ADDRESS)  # fmt: skip
        assert refused.returncode != 0, "without the token nobody is let in"

        file = place.campaign(campaign="through-ray", reps=TRIALS, agent=GATED, limits=LIMITS)
        env = [word for name, value in api_server().items() for word in ("--env", f"{name}={value}")]
        image = os.environ["TRIALFLEET_TEST_CONTROLLER_IMAGE"]
        submitted = place.trialfleet(
            "submit", str(file), "--controller-image", image, "--ray-address", ADDRESS, "--cpu", "0.05",
            "--memory", "1Gi", "--env", "=".join(PATIENCE), *env,
        )  # fmt: skip
        assert submitted.code == 0, submitted.err
        store = open_store(f"s3://{place.bucket}/runs", endpoint=os.environ["S3_ENDPOINT"])
        wait_until(lambda: len(at_work(place)) == WIDTH, "the first agents run", within_s=240, every_s=1)
        kubectl("delete", "-n", place.namespace, head, "--grace-period=0", "--force")
        wait_until(
            lambda: restarts(place) >= 1, "the controller starts again, with the new head", within_s=300, every_s=1
        )
        let_go_until(place, lambda: sum(1 for _ in store.list("through-ray/outcomes/")) == TRIALS, 300)
        outcomes = audit(store, Ledger(store, "through-ray").plan(), verdict=Verdict.FAILED)
        assert [outcome.attempts for outcome in outcomes] == [1] * TRIALS, "pods outlive the head"
        standing = json.loads(place.trialfleet("status", str(file), "--json").out)
        assert standing["losses"] == {}
        objects = kubectl("get", "-n", place.namespace, "jobs,pods,rayclusters", "-o", "json")
        assert token not in objects
