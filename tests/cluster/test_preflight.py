"""What a cluster lacks is found before the first trial, under the Roles of k8s/base: exit 2, and the way out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.minimal import Minimal, kubectl, minimal
from tests.support.attempts import LOCK, Lab
from tests.support.buckets import client
from trialfleet_ledger.plan import Plan

pytestmark = [pytest.mark.cluster, pytest.mark.needs("cluster", "s3", "image"), pytest.mark.slow]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minimal]:
    with minimal(tmp_path_factory.mktemp("operate")) as made:
        yield made


IMAGES = "jsonpath={.items[*].status.images[*].names[*]}"


def nothing_is_left(place: Minimal) -> None:
    """Neither pods nor a plan nor what the probe wrote."""
    assert kubectl("get", "pods", "-n", place.namespace, "-o", "name") == ""
    assert client().list_objects_v2(Bucket=place.bucket).get("KeyCount") == 0


def test_the_plan_freezes_what_the_probe_pod_saw(tmp_path: Path) -> None:
    with minimal(tmp_path) as place:
        ran = place.trialfleet("plan", str(place.campaign()), "--freeze", "--json")
        assert ran.code == 0, ran.err
        plan = Plan.model_validate(json.loads(ran.out)["plan"])
        assert plan.kubernetes is not None
        assert plan.kubernetes.image_id.rpartition(":")[0].endswith("sha256")
        loaded = "@" not in plan.kubernetes.image_id  # into the node, without a registry
        assert (plan.kubernetes.by_digest is None) == loaded
        assert (plan.kubernetes.reference == plan.kubernetes.image) == loaded
        assert plan.kubernetes.network in ("enforced", "unenforced")
        assert [(agent.kind, agent.version) for agent in plan.agent_specs] == [("nop", "1")]
        keys = {item["Key"] for item in client().list_objects_v2(Bucket=place.bucket)["Contents"]}
        assert "runs/looked-at/campaign.json" in keys
        assert not any(".probe/" in key for key in keys)
        assert kubectl("get", "pods", "-n", place.namespace, "-o", "name") == ""


def test_doctor_names_every_finding(place: Minimal) -> None:
    ran = place.trialfleet("doctor", str(place.campaign()), "--json")
    found = {check["name"]: check for check in json.loads(ran.out)}
    assert ran.code == 0, ran.out
    assert "not known" in found["nodes"]["found"]  # the Role does not list nodes
    for name in ("cluster", "grants", "image", "environments", "agent nop", "credentials", "store from pods"):
        assert found[name]["result"] == "ok", found[name]
    assert found[f"permissions in {place.namespace}"]["found"] == "all 15 that are needed"
    assert "admitted" in found[f"pods in {place.namespace}"]["found"]
    assert found["network"]["result"] in ("ok", "warning")
    nothing_is_left(place)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kubernetes": {"namespaces": ["no-such-namespace"]}}, ("no-such-namespace",)),
        ({"kubernetes": {"runtime_class": "no-such-class"}}, ('"no-such-class" not found', "runtime_class")),
        ({"kubernetes": {"priority_class": "no-such"}}, ("no-such", "priority_class")),
        ({"kubernetes": {"image": "no-such-image:1"}}, ("no-such-image:1 cannot be pulled", "kubernetes.image")),
        (
            {"kubernetes": {"model_secret": "no-such-secret"}},
            ("no Secret no-such-secret", "kubectl create secret"),
        ),
        ({"store": {"pod_endpoint": "http://127.0.0.1:9"}}, ("pods cannot reach it", "store.pod_endpoint")),
        (
            {"store": {"url": "s3://no-such-bucket-anywhere/x"}},
            ("no bucket", "s3 mb s3://no-such-bucket-anywhere"),
        ),
        (
            {"agent": {"kind": "claude-code", "options": {"binary": "/no/such"}}},
            ("agent claude-code", "image build"),
        ),
    ],
    ids=lambda value: "-".join(str(key) for key in value) if isinstance(value, dict) else "",
)
def test_refusals(place: Minimal, changed: dict[str, Any], words: tuple[str, ...]) -> None:
    ran = place.trialfleet("plan", str(place.campaign(**changed)), "--freeze")
    assert ran.code == 2, ran.out + ran.err
    for word in (*words, "fix:"):
        assert word in ran.err
    nothing_is_left(place)


def test_environments_that_the_image_lacks_name_their_tasks(place: Minimal, tmp_path: Path) -> None:
    """Environments are shared by lock, so this one is of no project in the image."""
    file, lock = Lab(tmp_path).task_file, tmp_path / "lock.txt"
    lock.write_text("\n".join(LOCK.read_text().splitlines()[3:]) + "\n")  # without its first package
    validated = file.read_text().replace("id: shop-discount", "id: shop-discount\n  status: validated")
    file.write_text(validated.replace(str(LOCK), str(lock)))
    ran = place.trialfleet("plan", str(place.campaign(tasks=[str(file)])), "--freeze")
    assert ran.code == 2
    assert "lacks the environments of shop-discount" in ran.err
    assert "trialfleet image build --for" in ran.err
    nothing_is_left(place)


def test_a_secret_without_the_key_is_found_by_mounting_it(place: Minimal) -> None:
    """The accounts of k8s/base may not read Secrets; the probe pod has it mounted, as a runner would."""
    agent = {"kind": "command", "options": {"argv": ["true"], "needs_model": True}}
    ran = place.trialfleet("plan", str(place.campaign(agent=agent)), "--freeze")
    assert ran.code == 2
    assert "no key for the model provider anthropic" in ran.err
    assert "model_secret" in ran.err
    kubectl("create", "secret", "generic", "empty-keys", "-n", place.namespace, "--from-literal=OTHER=x")
    with_secret = place.campaign(agent=agent, kubernetes={"model_secret": "empty-keys"})
    ran = place.trialfleet("plan", str(with_secret), "--freeze")
    assert ran.code == 2
    assert "in Secret empty-keys" in ran.err
    nothing_is_left(place)
    key = "--from-literal=ANTHROPIC_API_KEY=sk-nobody-reads-this"
    kubectl("create", "secret", "generic", "good-keys", "-n", place.namespace, key)
    good = place.campaign(agent=agent, kubernetes={"model_secret": "good-keys"})
    ran = place.trialfleet("plan", str(good), "--json")
    assert ran.code == 0, ran.err
    assert "sk-nobody-reads-this" not in ran.out + ran.err


def test_an_unenforced_network_is_refused_unless_allowed(place: Minimal) -> None:
    ran = place.trialfleet("plan", str(place.campaign(kubernetes={"allow_unenforced_network": False})), "--json")
    if ran.code == 0:  # a cluster whose network cuts what it is told to
        assert json.loads(ran.out)["plan"]["kubernetes"]["network"] == "enforced"
        return
    assert ran.code == 2
    assert "unenforced: a pod reaches" in ran.err
    assert "allow_unenforced_network: true" in ran.err
    nothing_is_left(place)


def test_no_kubeconfig(place: Minimal) -> None:
    ran = place.trialfleet("plan", str(place.campaign()), env={"KUBECONFIG": "/no/such/file"})
    assert ran.code == 2
    assert "KUBECONFIG" in ran.err


def test_no_permission(tmp_path: Path) -> None:
    with minimal(tmp_path, roles=()) as place:
        ran = place.trialfleet("plan", str(place.campaign()))
        assert ran.code == 2
        assert "not allowed: create pods (to launch attempts)" in ran.err
        assert "the namespace may not exist" in ran.err  # who may do nothing cannot tell, and neither can we
        assert "kubectl apply --server-side -k k8s/base" in ran.err
        assert f"kubectl -n {place.namespace} create rolebinding trialfleet-controller-too" in ran.err


def test_no_namespace_for_who_may_read_namespaces(place: Minimal) -> None:
    ran = place.trialfleet(
        "plan",
        str(place.campaign(kubernetes={"namespaces": ["no-such-namespace"]})),
        env={"KUBECONFIG": os.environ["KUBECONFIG"]},
    )
    assert ran.code == 2
    assert "namespace no-such-namespace: the namespace does not exist" in ran.err
    assert "kubectl create namespace no-such-namespace" in ran.err


def test_an_image_without_a_runner(place: Minimal) -> None:
    """The one that every node has: it holds its pods' network."""
    images = kubectl("get", "nodes", "-o", IMAGES).split()
    pause = next((name for name in images if "/pause:" in name), None)
    if pause is None:
        assert os.environ.get("TRIALFLEET_CI") != "1", "under TRIALFLEET_CI=1 the node must name it"
        pytest.skip("no node names the image of its sandboxes")
    ran = place.trialfleet("plan", str(place.campaign(kubernetes={"image": pause})), "--freeze")
    assert ran.code == 2, ran.out + ran.err
    assert f"image {pause} has no runner" in ran.err
    assert "build it with `trialfleet image build`" in ran.err
    nothing_is_left(place)


def test_an_image_is_not_pulled_ahead_where_no_attempt_could_run(place: Minimal, tmp_path: Path) -> None:
    """The same findings as planning has, and no traceback."""
    admin, away = {"KUBECONFIG": os.environ["KUBECONFIG"]}, tmp_path / "away"
    away.write_text(re.sub(r'("server": "https://)[^"]*', r"\g<1>127.0.0.1:9", place.kubeconfig.read_text()))
    nowhere, class_ = {"namespaces": ["no-such-namespace"]}, {"runtime_class": "no-such-class"}
    for changed, env, words in (
        (nowhere, {}, "cannot create resource"),
        (nowhere, admin, "the namespace does not exist"),
        (class_, {}, "kubectl get runtimeclass"),
        ({}, {"KUBECONFIG": str(away)}, "kubectl version"),
    ):
        file = place.campaign(kubernetes=changed)
        ran = place.trialfleet("prepull", str(file), "--node", "any", env=env)
        assert ran.code == 2, ran.err
        assert words in ran.err


def test_a_shape_that_no_node_fits_is_said_by_who_may_read_nodes(place: Minimal) -> None:
    limits = {"cpu": 4000, "memory": "512Mi", "disk": "512Mi", "parallel": 2}
    file = place.campaign(limits=limits, kubernetes={"runtime_class": "no-such-class"})  # and no probe pod
    ran = place.trialfleet("doctor", str(file), "--json", env={"KUBECONFIG": os.environ["KUBECONFIG"]})
    found = {check["name"]: check for check in json.loads(ran.out)}["nodes"]
    assert found["result"] == "warning"
    assert re.fullmatch(
        r"an attempt fits on none of \d+ nodes? \(.*too little cpu.*\): it waits .*", found["found"]
    )
    assert "lower limits.cpu" in found["fix"]


def test_a_rule_that_expires_commits(tmp_path: Path) -> None:
    with minimal(tmp_path) as place:
        rule = {"ID": "sweep", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 30}}
        client().put_bucket_lifecycle_configuration(Bucket=place.bucket, LifecycleConfiguration={"Rules": [rule]})
        ran = place.trialfleet("plan", str(place.campaign()), "--freeze")
        assert ran.code == 2
        assert "lifecycle rule sweep deletes results" in ran.err
        assert f"aws s3api get-bucket-lifecycle-configuration --bucket {place.bucket}" in ran.err
        nothing_is_left(place)


def test_credentials_that_end_before_an_attempt_could(place: Minimal, tmp_path: Path) -> None:
    """As a role's do: botocore knows when they end."""
    soon = datetime.now(UTC) + timedelta(minutes=40)
    told = {
        "Version": 1,
        "AccessKeyId": os.environ["AWS_ACCESS_KEY_ID"],
        "SecretAccessKey": os.environ["AWS_SECRET_ACCESS_KEY"],
        "Expiration": soon.isoformat(),
    }
    (tmp_path / "credentials.json").write_text(json.dumps(told))
    (tmp_path / "config").write_text(f"[profile soon]\ncredential_process = cat {tmp_path}/credentials.json\n")
    env = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_PROFILE": "soon"}
    place.env = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    try:
        ran = place.trialfleet("plan", str(place.campaign()), "--freeze", env=env)
    finally:
        place.env = {}
    assert ran.code == 2, ran.err
    assert "the credentials end at" in ran.err
    nothing_is_left(place)
