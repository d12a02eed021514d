"""What keeps a pod from starting, from its status and its events."""

from __future__ import annotations

from typing import Any

import pytest

from trialfleet_controller.backends.kube.pods import Pod, parse
from trialfleet_controller.operate.submit import image_hint
from trialfleet_controller.operate.waiting import PodStart, start_problem
from trialfleet_ledger.campaign_spec import Graces, KubernetesSpec

KUBE = KubernetesSpec(
    image="runner:1",
    labels={"kueue.x-k8s.io/queue-name": "team"},
    graces=Graces(unschedulable_s=77, image_pull_s=88, config_error_s=99),
)


def waiting(reason: str, message: str = "") -> Pod:
    state = {"waiting": {"reason": reason, "message": message}}
    return pod({"containerStatuses": [{"name": "probe", "state": state}]})


def pod(status: dict[str, Any]) -> Pod:
    return parse({"metadata": {"uid": "u", "name": "p"}, "status": {"phase": "Pending", **status}})


@pytest.mark.parametrize(
    ("seen", "words", "patience_s"),
    [
        (waiting("InvalidImageName"), "runner:1 cannot be pulled", 0),
        (waiting("ImagePullBackOff", "no such host"), "no such host", 0),
        (waiting("ErrImagePull", "no such host"), "no such host", 88),
        (waiting("ImagePullBackOff", "pull QPS exceeded"), "QPS", 88),
        (waiting("RunContainerError", 'exec: "/opt/trialfleet/bin/x": no such file'), "has no runner", 0),
        (waiting("CreateContainerConfigError", 'couldn\'t find key K in Secret "s"'), "couldn't find key K", 10),
        (
            pod({"conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
            ]}),
            "no node fits the pod: 0/3 nodes",
            77,
        ),
        (
            pod({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            "it waits in queue team",
            77,
        ),
    ],
)  # fmt: skip
def test_troubles(seen: Pod, words: str, patience_s: float) -> None:
    found = start_problem(seen, (), KUBE)
    assert found is not None
    assert words in found.message
    assert found.patience_s == patience_s
    assert found.hint


def test_the_last_problem_is_kept_until_the_pod_is_better() -> None:
    start = PodStart(KUBE)
    start.check(waiting("ErrImagePull", "no such host"), (), where="pod p")
    assert start.last is not None
    assert "no such host" in start.last.message
    start.check(pod({}), (), where="pod p")
    assert start.last is None


def test_a_missing_secret_is_known_by_the_pods_events_alone() -> None:
    told = 'MountVolume.SetUp failed for volume "model-keys" : secret "keys" not found'
    found = start_problem(waiting("ContainerCreating"), [{"reason": "FailedMount", "message": told}], KUBE)
    assert found is not None
    assert (found.message, found.patience_s) == ("there is no Secret keys", 0)
    other = start_problem(waiting("ContainerCreating"), [{"reason": "FailedMount", "message": "timed out"}], KUBE)
    assert other is not None
    assert other.patience_s == 99


def test_what_is_on_its_way_is_no_trouble() -> None:
    assert start_problem(waiting("ContainerCreating"), [{"reason": "Pulling", "message": "…"}], KUBE) is None
    assert start_problem(pod({"phase": "Running"}), (), KUBE) is None


@pytest.mark.parametrize(
    ("image", "context", "command"),
    [
        ("trialfleet-controller:dev", "kind-trialfleet", "CONTROLLER=1 make kind-up: the Job waits"),
        ("trialfleet-controller:dev", "kind-other", "KIND_CLUSTER=other CONTROLLER=1 make kind-up"),
        ("mine:1", "kind-other", "--target controller --tag mine:1 && kind load docker-image --name other mine:1"),
        ("r.example/c:1", "prod", "push it where the nodes pull from; or submit with another --controller-image"),
        ("r.example/c:1", None, "trialfleet image build --target controller --tag r.example/c:1"),
    ],
)
def test_a_controllers_image_that_the_cluster_lacks(image: str, context: str | None, command: str) -> None:
    hint = image_hint(image, context)
    assert command in hint
    found = start_problem(waiting("ImagePullBackOff"), (), KUBE, pull_hint=hint)
    assert found is not None
    assert found.hint == hint
