"""k8s/: accepted by a real API server, and worth there what its comments say.

What is done in the namespace is done under its Roles, never as admin.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster import (
    CHECKOUT,
    Raw,
    account,
    applied_base,
    done,
    fresh_namespace,
    kubectl,
    restricted_pod,
)
from tests.cluster.policies import Peer, reached, reaches
from tests.cluster.ray_schema import ray_clusters
from tests.support.plans import kube_plan
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import manifest, names
from trialfleet_controller.operate.permissions import DRIVING, Need

pytestmark = [pytest.mark.cluster, pytest.mark.needs("cluster")]

# What is said of a kind that has just been defined, while discovery, or who serves it, is behind.
BEHIND = ("ensure CRDs are installed first", "could not find the requested resource")

# Every account may ask what it may do; that is all of it.
SELF = {
    ("authorization.k8s.io", resource, "create")
    for resource in ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
} | {("authentication.k8s.io", "selfsubjectreviews", "create")}


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("overlay")
    with applied_base(folder, "manifests") as name:
        assert done(kubectl("diff", "--server-side", "-k", str(folder))) == "", "applying again changes nothing"
        yield name


def rendered(folder: str) -> list[Raw]:
    return [
        each for each in yaml.safe_load_all(done(kubectl("kustomize", str(CHECKOUT / "k8s" / folder)))) if each
    ]


def renamed(objects: list[Raw], name: str) -> list[Raw]:
    """The same in namespaces of the test's own: `trialfleet…` becomes `<name>…`."""
    text = re.sub(r'("namespace": ")trialfleet', rf"\1{name}", json.dumps(objects))
    moved: list[Raw] = json.loads(text)
    for each in moved:
        if each["kind"] == "Namespace":
            each["metadata"]["name"] = each["metadata"]["name"].replace("trialfleet", name)
    return moved


# --- permissions ----------------------------------------------------------------------------------------


def rules(user: str, namespace: str) -> set[tuple[str, str, str]]:
    """(API group, resource, verb) that the API server grants the user in the namespace."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    status = json.loads(
        done(kubectl("create", "--validate=false", "-f", "-", "-o", "json", stdin=review, user=user))
    )["status"]
    assert not status["incomplete"]
    return {
        (group, resource, verb)
        for rule in status["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def needed(needs: Iterable[Need]) -> set[tuple[str, str, str]]:
    return {(need.group, need.resource, need.verb) for need in needs}


def test_the_controller_may_do_what_it_does_and_nothing_else(namespace: str) -> None:
    assert rules(account(namespace, "trialfleet-controller"), namespace) - SELF == needed(DRIVING)


def test_the_controller_may_do_nothing_elsewhere(namespace: str) -> None:
    assert rules(account(namespace, "trialfleet-controller"), "default") <= SELF


def test_trials_may_do_nothing(namespace: str) -> None:
    assert rules(account(namespace, "default"), namespace) <= SELF


def test_a_campaigns_requests_succeed_under_the_role(namespace: str) -> None:
    controller = account(namespace, "trialfleet-controller")

    def do(*argv: str, stdin: Any = None) -> str:
        return done(kubectl("-n", namespace, *argv, stdin=stdin, user=controller))

    owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "campaign"}, "data": {"campaign": "x"}}
    uid = json.loads(do("create", "-f", "-", "-o", "json", stdin=owner))["metadata"]["uid"]
    assert do("get", "configmap", "campaign", "-o", "jsonpath={.metadata.uid}") == uid
    pod = restricted_pod("one-trial", "absent.invalid/image:1", "true", schedulingGates=[{"name": "test/never"}])
    pod["metadata"]["labels"] = {"trialfleet.dev/campaign": uid}
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "campaign", "uid": uid, "blockOwnerDeletion": False}
    ]
    do("create", "-f", "-", stdin=pod)
    assert do("get", "pods", "-l", f"trialfleet.dev/campaign={uid}", "-o", "name") == "pod/one-trial\n"
    # From any version: a busy server takes long to be sure of the newest, and refuses to watch from there.
    watch = f"/api/v1/namespaces/{namespace}/pods?watch=1&timeoutSeconds=1&resourceVersion=0"
    wait_until(lambda: '"type":"ADDED"' in do("get", "--raw", watch))
    do("get", "events", "-o", "name")
    do("delete", "pod", "one-trial", "--wait=false")
    do("delete", "configmap", "campaign", "--wait=false")
    do("create", "-f", "-", stdin=manifest.expiry_job(kube_plan(), deadline_s=60))
    bound = names.expiry("0f" * 16)
    do("patch", "job", bound, "--type=merge", "-p", '{"spec": {"activeDeadlineSeconds": 90}}')
    assert do("get", "job", bound, "-o", "jsonpath={.spec.activeDeadlineSeconds}") == "90"
    do("delete", "job", bound, "--wait=false")


DENIED = [
    ("get", "secrets"),
    ("list", "secrets"),
    ("create", "secrets"),
    ("create", "pods/exec"),
    ("create", "pods/attach"),
    ("create", "pods/portforward"),
    ("create", "pods/eviction"),
    ("update", "pods"),
    ("deletecollection", "pods"),
    ("patch", "configmaps"),
    ("list", "configmaps"),
    ("list", "jobs.batch"),
    ("create", "cronjobs.batch"),
    ("create", "serviceaccounts/token"),
    ("create", "rolebindings.rbac.authorization.k8s.io"),
    ("delete", "networkpolicies.networking.k8s.io"),
    ("delete", "resourcequotas"),
    ("patch", "namespaces"),
    ("list", "nodes"),
]


@pytest.mark.parametrize(("verb", "resource"), DENIED)
def test_what_the_controller_may_not(namespace: str, verb: str, resource: str) -> None:
    whole, _, part = resource.partition("/")  # kubectl takes what follows the slash for a name
    asked = kubectl(
        *("-n", namespace, "auth", "can-i", verb, whole, f"--subresource={part}"),
        user=account(namespace, "trialfleet-controller"),
    )
    assert (asked.stdout.strip(), asked.returncode) == ("no", 1)


@pytest.mark.parametrize(
    "argv",
    [
        ("get", "secrets"),
        ("patch", "configmap", "trialfleet-controller", "-p", '{"data": {"a": "b"}}'),
        ("exec", "waiting", "--", "true"),
        ("create", "token", "default"),
    ],
    ids=lambda argv: argv[0],
)
def test_forbidden_requests_are_refused(namespace: str, argv: tuple[str, ...]) -> None:
    waiting = restricted_pod("waiting", "absent.invalid/image:1", "true", schedulingGates=[{"name": "test/never"}])
    done(kubectl("-n", namespace, "apply", "-f", "-", stdin=waiting))
    refused = kubectl("-n", namespace, *argv, user=account(namespace, "trialfleet-controller"))
    assert refused.returncode != 0
    assert "forbidden" in refused.stderr.lower(), refused.stderr


# --- what pods may be -----------------------------------------------------------------------------------


def admitted(namespace: str, pod: Raw) -> Raw:
    """As the API server would store it."""
    made: Raw = json.loads(
        done(kubectl("-n", namespace, "create", "--dry-run=server", "-f", "-", "-o", "json", stdin=pod))
    )
    return made


def test_a_restricted_pod_is_admitted_without_a_token(namespace: str) -> None:
    made = admitted(namespace, restricted_pod("trial", "i", "true"))
    assert [volume["name"] for volume in made["spec"]["volumes"]] == ["tmp"]


def test_the_controllers_pod_gets_a_token(namespace: str) -> None:
    made = admitted(namespace, restricted_pod("c", "i", "true", serviceAccountName="trialfleet-controller"))
    assert len(made["spec"]["volumes"]) == 2


@pytest.mark.parametrize(
    "loosened",
    [
        {"hostNetwork": True},
        {"hostPID": True},
        {"securityContext": {"runAsUser": 0, "seccompProfile": {"type": "RuntimeDefault"}}},
        {"volumes": [{"name": "tmp", "hostPath": {"path": "/"}}]},
        {"securityContext": {"runAsNonRoot": True, "runAsUser": 65532}},
    ],
    ids=["host network", "host processes", "root", "host path", "no seccomp"],
)
def test_a_looser_pod_is_refused(namespace: str, loosened: Raw) -> None:
    pod = restricted_pod("loose", "i", "true", **loosened)
    refused = kubectl("-n", namespace, "create", "--dry-run=server", "-f", "-", stdin=pod)
    assert 'violates PodSecurity "restricted:latest"' in refused.stderr


def test_the_quota_refuses_what_would_outlive_pods(namespace: str) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "kept"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    refused = kubectl("-n", namespace, "create", "-f", "-", stdin=claim)
    assert "exceeded quota: trialfleet" in refused.stderr


# --- what pods may reach --------------------------------------------------------------------------------

TRIAL = {"trialfleet.dev/campaign": "x"}
CONTROLLER_POD = {"trialfleet.dev/role": "controller"}
STORE, PROVIDER, API_SERVER = Peer("192.0.2.7"), Peer("198.51.100.7"), Peer("203.0.113.7")
DNS = Peer(labels={"k8s-app": "kube-dns"}, namespace="kube-system")


@pytest.fixture(scope="module")
def base_policies() -> list[Raw]:
    return [each for each in rendered("base") if each["kind"] == "NetworkPolicy"]


@pytest.fixture(scope="module")
def kind_policies() -> list[Raw]:
    return [each for each in rendered("kind") if each["kind"] == "NetworkPolicy"]


@pytest.mark.parametrize(
    ("labels", "peer", "port", "open_"),
    [
        (TRIAL, STORE, 443, True),
        (TRIAL, PROVIDER, 443, True),
        (TRIAL, DNS, 53, True),
        ({}, STORE, 443, True),  # a probe, an image that is pulled ahead
        (TRIAL, STORE, 22, False),
        (TRIAL, API_SERVER, 443, False),
        (TRIAL, Peer("169.254.169.254"), 80, False),
        (TRIAL, Peer("10.96.0.1"), 443, False),  # where clusters commonly have the API server's Service
        (TRIAL, Peer("140.82.112.3"), 443, False),  # a git host
        (TRIAL, Peer("151.101.0.223"), 443, False),  # a package index
        (TRIAL, Peer(labels=TRIAL, namespace="trialfleet"), 8080, False),
        (TRIAL, Peer(labels=CONTROLLER_POD, namespace="trialfleet"), 6379, False),
        (CONTROLLER_POD, STORE, 443, True),
        (CONTROLLER_POD, API_SERVER, 443, True),
        (CONTROLLER_POD, Peer(labels=CONTROLLER_POD, namespace="trialfleet"), 6379, True),
        (CONTROLLER_POD, PROVIDER, 443, False),
        (CONTROLLER_POD, Peer("169.254.169.254"), 80, False),
    ],
)
def test_egress(base_policies: list[Raw], labels: dict[str, str], peer: Peer, port: int, open_: bool) -> None:
    assert reaches(base_policies, labels, "trialfleet", peer, port) is open_


@pytest.mark.parametrize("by", [Peer("10.1.2.3"), Peer(labels=TRIAL, namespace="trialfleet"), DNS])
def test_nobody_reaches_a_trial(base_policies: list[Raw], by: Peer) -> None:
    assert not reached(base_policies, TRIAL, "trialfleet", by, 8080)


def test_on_kind_pods_reach_the_store_beside_them(kind_policies: list[Raw]) -> None:
    store = Peer(labels={"app.kubernetes.io/name": "versitygw"}, namespace="trialfleet-store")
    assert reaches(kind_policies, TRIAL, "trialfleet", store, 7070)
    assert not reaches(kind_policies, TRIAL, "trialfleet", STORE, 443), "the base's placeholder is gone"
    assert not reaches(kind_policies, TRIAL, "trialfleet", Peer("172.18.0.2"), 6443)
    assert reaches(kind_policies, CONTROLLER_POD, "trialfleet", Peer("172.18.0.2"), 6443)


def test_the_overlay_in_the_docs_opens_what_it_names(tmp_path: Path) -> None:
    """As a user would write it down, but for where the base lies."""
    page = (CHECKOUT / "docs/how-to/run-on-kubernetes.md").read_text()
    told = page.partition("# my-cluster/kustomization.yaml\n")[2].partition("```")[0]
    base = os.path.relpath(CHECKOUT / "k8s/base", tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(told.replace("../k8s/base", base))
    policies = [each for each in rendered(str(tmp_path)) if each["kind"] == "NetworkPolicy"]
    opened = {
        peer: [
            who for who in (TRIAL, CONTROLLER_POD) if reaches(policies, who, "trialfleet", Peer(peer[0]), peer[1])
        ]
        for peer in (("10.1.2.9", 7480), ("10.1.3.7", 4000), ("10.0.0.1", 6443), ("10.1.3.8", 4000))
    }
    assert list(opened.values()) == [[TRIAL, CONTROLLER_POD], [TRIAL], [CONTROLLER_POD], []]


def test_the_overlay_of_the_queue_in_the_docs_sets_the_quota(tmp_path: Path) -> None:
    page = (CHECKOUT / "docs/how-to/run-with-kueue.md").read_text()
    told = page.partition("# my-queue/kustomization.yaml\n")[2].partition("```")[0]
    queue = os.path.relpath(CHECKOUT / "k8s/kueue", tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(told.replace("../k8s/kueue", queue))
    (found,) = [each for each in rendered(str(tmp_path)) if each["kind"] == "ClusterQueue"]
    (group,) = found["spec"]["resourceGroups"]
    quotas = {each["name"]: each["nominalQuota"] for each in group["flavors"][0]["resources"]}
    assert quotas == {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "256Gi"}
    assert list(quotas) == group["coveredResources"]


# --- the overlays ---------------------------------------------------------------------------------------


def test_the_api_server_accepts_all_of_kind() -> None:
    with fresh_namespace("kind") as name, fresh_namespace(f"{name}-store"):
        objects = renamed(rendered("kind"), name)
        spaces = [each for each in objects if each["kind"] == "Namespace"]
        assert [each["metadata"]["name"] for each in spaces] == [name, f"{name}-store"]
        for each in spaces:
            done(kubectl("create", "-f", "-", stdin=each))
        try:
            rest = {"apiVersion": "v1", "kind": "List", "items": [o for o in objects if o["kind"] != "Namespace"]}
            said = done(kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=rest))
            assert len(said.splitlines()) == len(rest["items"])
            assert "would violate PodSecurity" not in said
        finally:
            kubectl("delete", "namespace", f"{name}-store", "--wait=false")


def test_the_store_on_kind_is_restricted_too(namespace: str) -> None:
    (deployment,) = [each for each in rendered("kind") if each["kind"] == "Deployment"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "store"},
        "spec": deployment["spec"]["template"]["spec"],
    }
    admitted(namespace, pod)


def ray_cluster() -> Raw:
    (found,) = [each for each in rendered("kuberay") if each["kind"] == "RayCluster"]
    return found


def test_rays_pods_are_admitted_and_run_as_the_controller(namespace: str) -> None:
    spec = ray_cluster()["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        template = group["template"]
        assert template["metadata"]["labels"] == CONTROLLER_POD
        made = admitted(
            namespace,
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ray"}, "spec": template["spec"]},
        )
        assert made["spec"]["serviceAccountName"] == "trialfleet-controller"


def test_the_api_server_accepts_the_ray_cluster_and_nothing_misspelled(namespace: str) -> None:
    with ray_clusters():
        right, wrong = ray_cluster(), ray_cluster()
        wrong["spec"]["headGroupSpec"]["rayStartParam"] = wrong["spec"]["headGroupSpec"].pop("rayStartParams")
        dry = ("-n", namespace, "create", "--dry-run=server", "--validate=strict", "-f", "-")
        for each in (right, wrong):
            each["metadata"]["namespace"] = namespace
        end = time.monotonic() + 60
        while "created (server dry run)" not in (said := kubectl(*dry, stdin=right)).stdout:
            assert any(words in said.stderr for words in BEHIND), said.stderr
            assert time.monotonic() < end, said.stderr
        assert 'unknown field "spec.headGroupSpec.rayStartParam"' in kubectl(*dry, stdin=wrong).stderr


def test_the_ray_cluster_is_of_the_locked_version() -> None:
    locked = re.search(r"^ray==(\S+)", (CHECKOUT / "requirements/controller.txt").read_text(), re.MULTILINE)
    assert locked is not None
    assert ray_cluster()["spec"]["rayVersion"] == locked[1]
