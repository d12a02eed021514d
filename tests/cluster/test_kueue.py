"""Campaigns behind a queue of a real Kueue, made from k8s/kueue: quota, a held period, preemption, cancelling; and
commands whose pods only look."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster import CHECKOUT, done, on_cluster, read_pods, restricted_pod
from tests.cluster.cluster import kubectl as asked
from tests.cluster.minimal import GATED, Minimal, kubectl, minimal
from tests.cluster.test_day_two import real_node
from tests.support.audit import audit
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import names
from trialfleet_controller.campaigns import from_file
from trialfleet_ledger.campaign_spec import QUEUE_LABEL
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.verdicts import LossClass, Verdict

pytestmark = on_cluster("kueue", timeout_s=900)

PRIORITY = "kueue.x-k8s.io/priority-class"
TESTED = "kueue.x-k8s.io/tested=yes"  # where an administrator confines Kueue's webhooks to some namespaces
QUOTA = {"cpu": "300m", "memory": "1Gi", "ephemeral-storage": "2Gi"}  # two attempts of the size below
LIMITS = {"cpu": 0.1, "memory": "256Mi", "disk": "256Mi", "parallel": 4}
URGENT = 4  # rounds of preemption, of two attempts each
WITHIN_S = 240


@dataclass
class Queue:
    """Objects of k8s/kueue in a namespace of the test's own; all are named as that is."""

    place: Minimal
    name: str

    def campaign(self, **changed: Any) -> Path:
        wait_until(lambda: not self.attempts(), within_s=WITHIN_S)  # of the campaign before
        kube = {"labels": {QUEUE_LABEL: self.name}} | changed.pop("kubernetes", {})
        changed["campaign"] += (
            f"-{secrets.token_hex(2)}"  # a test that runs again finds no campaign of its first run
        )
        return self.place.campaign(**{"limits": LIMITS, "kubernetes": kube} | changed)

    def hold(self, policy: str) -> None:
        patch = json.dumps({"spec": {"stopPolicy": policy}})
        kubectl("patch", "clusterqueue", self.name, "--type=merge", "-p", patch)

    def attempts(self) -> dict[str, dict[str, Any]]:
        """Pods of attempts by their uids."""
        return {pod["metadata"]["uid"]: pod for pod in read_pods(self.place.namespace, names.TRIAL)}

    def placed(self) -> list[str]:
        """Uids of attempts' pods that have a node."""
        return [uid for uid, pod in self.attempts().items() if "nodeName" in pod["spec"]]

    def at_work(self) -> list[str]:
        """Names of attempts' pods whose `GATED` agents run."""
        pods = [pod for pod in self.attempts().values() if "deletionTimestamp" not in pod["metadata"]]
        found = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"]
        return [pod for pod in found if self.place.begun(pod)]

    @contextmanager
    def urgent(self) -> Generator[None]:
        """A pod of higher priority that takes the whole quota."""
        pod = restricted_pod("urgent", os.environ["TRIALFLEET_TEST_IMAGE"], "sleep", "600")
        pod["metadata"] |= {"labels": {QUEUE_LABEL: self.name, PRIORITY: f"{self.name}-urgent"}}
        pod["spec"]["containers"][0]["resources"] = {"requests": QUOTA}
        done(asked("create", "-n", self.place.namespace, "-f", "-", stdin=pod))
        try:
            yield
        finally:
            kubectl("delete", "pod", "urgent", "-n", self.place.namespace, "--grace-period=1")

    def ledger(self, file: Path) -> Ledger:
        return from_file(file).ledger


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with minimal(tmp_path_factory.mktemp("kueue")) as place:
        name = place.namespace
        kubectl("label", "namespace", name, TESTED)
        text = done(asked("kustomize", str(CHECKOUT / "k8s/kueue")))
        objects = list(yaml.safe_load_all(re.sub(r"\btrialfleet\b", name, text)))
        for each in objects:
            if each["kind"] == "ClusterQueue":
                (group,) = each["spec"]["resourceGroups"]
                for resource in group["flavors"][0]["resources"]:
                    resource["nominalQuota"] = QUOTA[resource["name"]]
        whole = {"apiVersion": "v1", "kind": "List", "items": objects}
        done(asked("apply", "--server-side", "-f", "-", stdin=whole))
        people = (f"--role={name}-queue", f"--serviceaccount={name}:operator")
        kubectl("create", "rolebinding", "people", "-n", name, *people)
        try:
            yield Queue(place, name)
        finally:
            asked("delete", "-f", "-", "--wait=false", stdin=whole)


def age_s(made: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(made)).total_seconds()


def status(queue: Queue, file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(queue.place.trialfleet("status", str(file), "--json").out)
    return found


def test_a_campaign_through_quota_a_held_period_and_eight_preemptions(queue: Queue) -> None:
    graces = {"queued_s": 8, "termination_s": 5}
    kube = {"labels": {QUEUE_LABEL: queue.name}, "graces": graces}
    file = queue.campaign(campaign="queued", reps=3, agent=GATED, kubernetes=kube)
    queue.hold("Hold")
    with queue.place.controller("run", str(file), "--json") as controller:
        first = wait_until(lambda: len(found := queue.attempts()) == 3 and found, within_s=WITHIN_S)
        wait_until(lambda: status(queue, file)["pending"] == {"queued": 3}, within_s=WITHIN_S)
        none = status(queue, file)["conditions"]["none"]
        assert (none["running"], none["pending"]) == (0, 3)
        wait_until(
            lambda: len(found := queue.attempts()) == 3 and not found.keys() & first.keys(), within_s=WITHIN_S
        )

        queue.hold("None")
        for _ in range(URGENT):
            wait_until(lambda: len(queue.at_work()) == 2, within_s=WITHIN_S)  # the quota holds the third back
            with queue.urgent():
                wait_until(lambda: not queue.placed(), within_s=WITHIN_S)

        def ended() -> bool:
            for pod in queue.at_work():
                queue.place.let_go(pod)
            return controller.poll() is not None

        wait_until(ended, within_s=WITHIN_S)
        said, _ = controller.communicate()
        assert controller.returncode == 0, said
        assert '"queued": ' in said

    ledger = queue.ledger(file)
    outcomes = audit(ledger.store, ledger.plan(), verdict=Verdict.FAILED)
    assert all(outcome.abandoned is None for outcome in outcomes)
    ends = [attempt.end for outcome in outcomes for attempt in ledger.attempts.chain(outcome.trial.id)]
    losses = [end.loss for end in ends if end is not None and end.loss is not None]
    preempted = [loss for loss in losses if loss.loss is LossClass.EVICTED]
    # More, where the queue lets one go while the urgent pod still waits for the other's place, and takes it back:
    # by preemption again, or before the pod has a node.
    assert len(preempted) >= 2 * URGENT
    assert all("Preempted" in loss.message for loss in preempted), losses
    others = [loss for loss in losses if loss.loss is not LossClass.EVICTED]
    assert not any(loss.agent_started for loss in others), losses
    assert all("before it had a node" in loss.message for loss in others), losses


def test_pods_that_left_the_queue_when_their_grants_had_ended_cost_nothing(queue: Queue) -> None:
    """Nobody drove the campaign meanwhile."""
    file = queue.campaign(campaign="unattended", reps=2)
    queue.hold("Hold")
    lives_s = 30
    short_grants = ("tests.cluster.short_grants", str(lives_s))
    with queue.place.controller("run", str(file), module=short_grants) as controller:
        pods = wait_until(lambda: len(found := queue.attempts()) == 2 and found, within_s=WITHIN_S)
        controller.send_signal(signal.SIGINT)
        controller.wait(60)
    made = max(pod["metadata"]["creationTimestamp"] for pod in pods.values())
    wait_until(lambda: age_s(made) > lives_s + 1)
    queue.hold("None")
    wait_until(  # on a machine with a load of 29 they took more than 240 s
        lambda: {pod["status"]["phase"] for pod in queue.attempts().values()} == {"Failed"}, within_s=2 * WITHIN_S
    )
    with queue.place.controller(
        "resume", str(file)
    ) as controller:  # a slow machine takes longer than short grants
        said, _ = controller.communicate(timeout=WITHIN_S)
        assert controller.returncode == 0, said
    ledger = queue.ledger(file)
    outcomes = audit(ledger.store, ledger.plan(), verdict=Verdict.FAILED)
    assert [(outcome.attempts, outcome.losses) for outcome in outcomes] == [(1, ())] * 2


def test_what_is_gated_can_be_cancelled(queue: Queue) -> None:
    file = queue.campaign(campaign="given-up", reps=2)
    queue.hold("Hold")
    with queue.place.controller("run", str(file)) as controller:
        wait_until(lambda: len(queue.attempts()) == 2, within_s=WITHIN_S)
        assert queue.place.trialfleet("cancel", str(file), "--now").code == 0
        controller.communicate(timeout=WITHIN_S)
    wait_until(lambda: not queue.attempts())
    assert status(queue, file)["stops"] == {"cancelled": 2}


def test_probes_and_prepull_do_not_wait_in_the_queue(queue: Queue) -> None:
    queue.hold("Hold")
    file = str(queue.campaign(campaign="looked-at"))
    ran = queue.place.trialfleet("doctor", file)
    assert ran.code == 0, ran.out + ran.err
    assert f"queue {queue.name} in {queue.name}: admits nothing" in ran.out
    ran = queue.place.trialfleet("prepull", file, "--node", real_node(), "--node", "no-such-node")
    assert f"{real_node()}: ready" in ran.out, ran.err
    assert "no-such-node: no pod can run there; check" in ran.out


def test_a_queue_that_is_not_there_is_refused(queue: Queue) -> None:
    file = str(queue.campaign(campaign="nowhere", kubernetes={"labels": {QUEUE_LABEL: "no-such-queue"}}))
    for command in ("plan", "doctor"):
        ran = queue.place.trialfleet(command, file)
        assert ran.code == 2, ran.out
        assert "this LocalQueue does not exist" in ran.out + ran.err


@pytest.fixture
def queue_demanded(queue: Queue) -> Iterator[None]:
    """The cluster refuses pods that name no queue, as some do by policy."""
    name = f"{queue.name}-demands"
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    labelled = f"has(object.metadata.labels) && '{QUEUE_LABEL}' in object.metadata.labels"
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": labelled, "message": "name a queue"}],
    }
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": queue.place.namespace}}}
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": where}
    objects = [
        head | {"kind": "ValidatingAdmissionPolicy", "spec": policy},
        head | {"kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    ]
    whole = {"apiVersion": "v1", "kind": "List", "items": objects}
    done(asked("create", "-f", "-", stdin=whole))
    bare = restricted_pod("bare", "i", "true")
    dry = ("create", "-n", queue.place.namespace, "--dry-run=server", "-f", "-")
    try:
        wait_until(lambda: "name a queue" in asked(*dry, stdin=bare).stderr)
        yield
    finally:
        done(asked("delete", "-f", "-", stdin=whole))


@pytest.mark.usefixtures("queue_demanded")
def test_a_probe_that_must_wait_in_a_queue_says_so_and_not_for_ever(queue: Queue) -> None:
    queue.hold("Hold")
    kube = {"labels": {QUEUE_LABEL: queue.name}, "graces": {"unschedulable_s": 5}}
    file = str(queue.campaign(campaign="nowhere", kubernetes=kube))
    probes = ("-n", queue.place.namespace, "-l", "trialfleet.dev/probe", "-o", "name")
    for command in ("plan", "doctor"):
        ran = queue.place.trialfleet(command, file)
        assert ran.code == 2, ran.out
        assert f"it waits in queue {queue.name}" in ran.out + ran.err
        wait_until(lambda: not kubectl("get", "pods", *probes), "the probe's pods are gone", every_s=0.5)


@pytest.mark.usefixtures("queue_demanded")
def test_sigterm_removes_a_probe_that_waits(queue: Queue) -> None:
    queue.hold("Hold")
    file = str(queue.campaign(campaign="stopped"))
    probes = ("get", "pods", "-n", queue.place.namespace, "-l", "trialfleet.dev/probe", "-o", "name")
    argv = [sys.executable, "-m", "trialfleet_runner.cli", "plan", file]
    env = {**os.environ, "KUBECONFIG": str(queue.place.kubeconfig)}
    with subprocess.Popen(argv, cwd=queue.place.folder, env=env, stderr=subprocess.PIPE, text=True) as command:
        wait_until(lambda: kubectl(*probes))
        command.terminate()
        command.communicate(timeout=60)
        assert command.returncode == 128 + signal.SIGTERM
    wait_until(lambda: not kubectl(*probes))
