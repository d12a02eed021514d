"""Manifests: what runs where, what may be seen from where, and where secrets are not."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plans import kube_plan
from tests.support.raw_pods import GRANTS, OWNER, TRIAL
from trialfleet_controller.backends.attempt_times import attempt_deadline_s
from trialfleet_controller.backends.kube import manifest, names
from trialfleet_controller.operate.cluster_capacity import counted_resources
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.quantities import parse_quantity
from trialfleet_ledger.records.grants import GRANTS_URL
from trialfleet_runner.pod.isolation import FORBIDDEN, FORBIDDEN_S

SECRET = "model-keys-of-the-team"


def made(plan: Plan, grants_url: str = GRANTS, **more: Any) -> dict[str, Any]:
    return manifest.pod(plan, trial=TRIAL, attempt=2, owner=OWNER, grants_url=grants_url, **more)


def containers(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in pod["spec"]["containers"]}


def mounts(container: dict[str, Any]) -> dict[str, bool]:
    """Volume name -> whether it may be written."""
    return {one["name"]: not one.get("readOnly", False) for one in container["volumeMounts"]}


def test_who_sees_which_volume() -> None:
    seen = {name: mounts(one) for name, one in containers(made(kube_plan(model_secret=SECRET))).items()}
    assert seen == {
        "runner": {
            "runner": True,
            "agent": True,
            "agent-gate": True,
            "score": True,
            "score-gate": True,
            "tmp-runner": True,
            "renewed": False,
            "model-keys": False,
        },
        "agent": {"agent": True, "agent-gate": False, "agent-shm": True},
        "score": {"score": True, "score-gate": False, "score-shm": True},
    }
    assert not seen["agent"].keys() & seen["score"].keys()


def test_every_mount_has_its_volume_and_every_empty_folder_a_limit() -> None:
    pod = made(kube_plan(model_secret=SECRET))
    volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
    assert {name for one in containers(pod).values() for name in mounts(one)} == volumes.keys()
    assert all(int(one["emptyDir"]["sizeLimit"]) > 0 for one in volumes.values() if "emptyDir" in one)
    assert volumes["model-keys"]["secret"] == {"secretName": SECRET, "defaultMode": 0o440}


def test_fresh_grants_come_as_an_annotation_that_the_runner_alone_reads() -> None:
    (renewed,) = (one for one in made(kube_plan())["spec"]["volumes"] if one["name"] == "renewed")
    (item,) = renewed["downwardAPI"]["items"]
    assert item == {"path": "grants", "fieldRef": {"fieldPath": f"metadata.annotations['{names.GRANTS}']"}}
    assert names.GRANTS not in made(kube_plan())["metadata"]["annotations"]


def test_agent_and_tests_get_no_message_file_to_fill() -> None:
    where = {name: one.get("terminationMessagePath") for name, one in containers(made(kube_plan())).items()}
    assert where == {"runner": None, "agent": "/root/termination-log", "score": "/root/termination-log"}


def test_the_restricted_level_holds() -> None:
    spec = made(kube_plan())["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert spec["restartPolicy"] == "Never"
    assert "initContainers" not in spec
    for one in spec["containers"]:
        context = one["securityContext"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (False, True)
    assert {"emptyDir", "downwardAPI", "name"} == {key for volume in spec["volumes"] for key in volume}


def user(pod: dict[str, Any]) -> int:
    return int(pod["spec"]["securityContext"]["runAsUser"])


def test_trials_that_run_at_once_have_different_users_and_one_group_for_their_volumes() -> None:
    plan = kube_plan()
    pods = [made(plan, place=place) for place in range(2500)]
    assert len({user(pod) for pod in pods}) == 2500
    assert all(70000 <= user(pod) <= 74095 for pod in pods)
    for pod in pods[:2]:
        context = pod["spec"]["securityContext"]
        assert (context["runAsNonRoot"], context["runAsGroup"], context["fsGroup"]) == (True, 65532, 65532)
        assert "hostUsers" not in pod["spec"]
        assert all("runAsUser" not in one["securityContext"] for one in pod["spec"]["containers"])
    assert user(made(plan, place=7)) == user(made(plan, place=7)), "every controller makes the same pod"


def test_campaigns_begin_at_different_users_and_keep_to_the_range_that_is_set() -> None:
    one, other = (kube_plan().model_copy(update={"uid": letter * 32}) for letter in "ab")
    assert user(made(one)) != user(made(other))
    narrow = kube_plan(uids={"min": 1000680000, "max": 1000680001})
    assert {user(made(narrow, place=place)) for place in range(5)} == {1000680000, 1000680001}


def test_resources_are_the_plans() -> None:
    plan = kube_plan()
    agent, score = (containers(made(plan))[name]["resources"] for name in ("agent", "score"))
    assert agent["requests"]["memory"] == agent["limits"]["memory"] == str(plan.limits.memory_bytes)
    assert agent["requests"]["cpu"] == agent["limits"]["cpu"] == "1000m"
    assert score["limits"] == agent["limits"]
    assert score["requests"]["memory"] == "32Mi"
    assert all("ephemeral-storage" in one["resources"]["limits"] for one in made(plan)["spec"]["containers"])


def test_the_deadline_leaves_room_for_pending_and_the_whole_attempt() -> None:
    plan = kube_plan(graces={"pending_s": 77})
    assert made(plan)["spec"]["activeDeadlineSeconds"] >= attempt_deadline_s(plan) + 77


def test_what_the_campaign_says_is_passed_through() -> None:
    pod = made(
        kube_plan(
            runtime_class="gvisor",
            node_selector={"pool": "trials"},
            priority_class="low",
            labels={"kueue.x-k8s.io/queue-name": "evals", names.CAMPAIGN: "forged"},
            image_pull_secrets=["registry"],
            tolerations=[{"key": "trials", "operator": "Exists", "effect": "NoSchedule"}],
            graces={"termination_s": 7, "unreachable_s": 5},
        )
    )
    spec = pod["spec"]
    assert (spec["runtimeClassName"], spec["priorityClassName"]) == ("gvisor", "low")
    assert spec["nodeSelector"] == {"pool": "trials"}
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "evals"
    assert pod["metadata"]["labels"][names.CAMPAIGN] == "0f" * 16, "ours win"
    assert spec["terminationGracePeriodSeconds"] == 7
    left = {one["key"]: one.get("tolerationSeconds") for one in spec["tolerations"]}
    assert left == {"node.kubernetes.io/not-ready": 5, "node.kubernetes.io/unreachable": 5, "trials": None}
    plain = made(kube_plan())["spec"]
    assert not {"runtimeClassName", "priorityClassName", "nodeSelector", "imagePullSecrets"} & plain.keys()


def test_the_owner_is_the_campaigns_config_map() -> None:
    (owner,) = made(kube_plan())["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("ConfigMap", OWNER.name, OWNER.uid)
    bound = manifest.Owner("trialfleet-expiry-0", "u")
    config_map = manifest.config_map(kube_plan(), store_url="s3://bucket/prefix", expiry=bound)
    (above,) = config_map["metadata"]["ownerReferences"]
    assert (above["kind"], above["name"], above["uid"]) == ("Job", "trialfleet-expiry-0", "u")
    assert config_map["metadata"]["name"] == names.config_map("0f" * 16)
    assert config_map["data"] == {"campaign": "demo", "store": "s3://bucket/prefix"}


def test_the_job_that_bounds_a_campaigns_pods_makes_none() -> None:
    job = manifest.expiry_job(kube_plan(labels={"kueue.x-k8s.io/queue-name": "evals"}), deadline_s=77)
    assert job["metadata"]["labels"] == {names.CAMPAIGN: "0f" * 16}
    spec = job["spec"]
    assert (spec["parallelism"], spec["completions"]) == (0, 1), "and it is never complete"
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (77, 0)
    assert spec["template"]["spec"]["securityContext"]["runAsNonRoot"] is True


WORDS = st.text("abcdefgh0123456789", min_size=1, max_size=8)
KUBE = st.fixed_dictionaries(
    {},
    optional={
        "model_secret": st.just(SECRET),
        "model_base_url": st.just("http://gateway.example"),
        "runtime_class": WORDS,
        "labels": st.dictionaries(WORDS, WORDS, max_size=3),
        "node_selector": st.dictionaries(WORDS, WORDS, max_size=3),
        "priority_class": WORDS,
        "network": st.sampled_from(["enforced", "unenforced"]),
    },
)


@given(kube=KUBE, token=st.text("0123456789abcdef", min_size=24, max_size=40), shard=st.integers(0, 5))
def test_the_grants_address_is_in_one_variable_of_the_runner_alone(
    kube: dict[str, Any], token: str, shard: int
) -> None:
    url = f"https://store.example/grants?signature={token}"
    pod = made(kube_plan(**kube), url, shard=shard)
    assert json.dumps(pod).count(token) == 1
    (value,) = [one["value"] for one in containers(pod)["runner"]["env"] if one["name"] == GRANTS_URL]
    assert value == url
    assert not containers(pod)["agent"]["env"]
    assert not containers(pod)["score"]["env"]


def test_another_division_makes_the_same_pod() -> None:
    """A resume of another width meets the pods that the narrower one made."""
    here, there = (made(kube_plan(), GRANTS, shard=shard)["metadata"] for shard in (0, 3))
    assert [head["labels"][names.SHARD] for head in (here, there)] == ["0", "3"]
    assert here["annotations"] == there["annotations"]


@given(kube=KUBE, token=st.text("0123456789abcdef", min_size=24, max_size=40))
def test_the_spec_hash_leaves_the_grants_address_out_and_nothing_else(kube: dict[str, Any], token: str) -> None:
    def spec(**more: Any) -> str:
        pod = made(kube_plan(**(kube | more)), f"https://store.example/?{token}")
        return str(pod["metadata"]["annotations"][names.SPEC])

    assert spec() == made(kube_plan(**kube), GRANTS)["metadata"]["annotations"][names.SPEC]
    assert spec() != spec(image="another:2")
    assert spec() != spec(runtime_class="another-class")


@given(kube=KUBE)
def test_model_keys_are_never_variables(kube: dict[str, Any]) -> None:
    text = json.dumps(made(kube_plan(**kube)))
    assert "secretKeyRef" not in text
    assert "envFrom" not in text


def test_the_runner_knows_its_pod_its_node_and_its_image() -> None:
    env = {one["name"]: one for one in containers(made(kube_plan(model_secret=SECRET)))["runner"]["env"]}
    assert env["TRIALFLEET_POD_UID"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.uid"
    assert env["TRIALFLEET_NODE"]["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
    assert env["TRIALFLEET_IMAGE"]["value"] == "trialfleet-runner:1"
    assert env["TRIALFLEET_NETWORK"]["value"] == "enforced"
    assert env["TRIALFLEET_KEYS"]["value"] == "/trialfleet/keys"


def test_a_runner_gets_what_its_policy_must_refuse_where_the_campaign_asks_for_one() -> None:
    forbidden = {"forbidden_addresses": (manifest.API_ADDRESS, manifest.KUBELET_ADDRESS)}

    def variables(**kube: Any) -> dict[str, Any]:
        env = containers(made(kube_plan(**forbidden, **kube)))["runner"]["env"]
        names_in_order = [one["name"] for one in env]
        assert names_in_order[0] == "TRIALFLEET_HOST_IP", "the kubelet expands only what comes before"
        return {one["name"]: one.get("value") for one in env}

    asked = variables(graces={"open_network_s": 7})
    assert asked["TRIALFLEET_FORBIDDEN"] == (
        "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT) $(TRIALFLEET_HOST_IP):10250"
    )
    assert asked["TRIALFLEET_FORBIDDEN_S"] == "7"
    assert {FORBIDDEN, FORBIDDEN_S} <= set(asked), "the names that the runner reads"
    assert "TRIALFLEET_FORBIDDEN" not in variables(allow_unenforced_network=True)
    assert "TRIALFLEET_FORBIDDEN" not in variables(allow_unenforced_network=True, network="unenforced")


def test_pods_name_the_image_by_its_digest_where_there_is_one() -> None:
    found = "registry.example/trialfleet-runner@sha256:" + "0a" * 32
    pod = made(kube_plan(by_digest=found))
    assert {one["image"] for one in pod["spec"]["containers"]} == {found}
    env = {one["name"]: one.get("value") for one in containers(pod)["runner"]["env"]}
    assert env["TRIALFLEET_IMAGE"] == found, "what bundles say"
    assert {one["image"] for one in made(kube_plan())["spec"]["containers"]} == {"trialfleet-runner:1"}


def test_a_probe_is_as_restricted_as_a_trial_and_may_be_pinned_to_a_node() -> None:
    kube = kube_plan(model_secret=SECRET).kubernetes
    assert kube is not None
    probe = manifest.probe_pod(kube, name="probe-1", env={"A": "1"}, deadline_s=60, node="node-7")
    trial = made(kube_plan(model_secret=SECRET))
    for key in ("automountServiceAccountToken", "tolerations"):
        assert probe["spec"][key] == trial["spec"][key]
    assert probe["spec"]["securityContext"] == {**trial["spec"]["securityContext"], "runAsUser": 70000}
    (container,) = probe["spec"]["containers"]
    assert container["securityContext"] == containers(trial)["runner"]["securityContext"]
    affinity = probe["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = affinity["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-7"]}]}
    assert "nodeName" not in probe["spec"], "no pod behind a scheduling gate may have it"
    assert re.search(r"trialfleet-pod$", container["command"][0])


def test_a_local_plan_has_no_pods() -> None:
    with pytest.raises(ValueError, match="not planned for Kubernetes"):
        made(kube_plan().model_copy(update={"kubernetes": None}))


def test_what_a_queue_must_cover_for_one_attempt() -> None:
    """As docs/reference/campaign-file.md and docs/how-to/run-with-kueue.md say it."""
    pod = made(kube_plan())
    limits = kube_plan().limits
    sums = counted_resources(pod)
    assert sums["cpu"] == parse_quantity(str(limits.cpu)) + parse_quantity("20m")
    assert sums["memory"] == limits.memory_bytes + 128 * 2**20
    assert sums["ephemeral-storage"] == limits.disk_bytes + 64 * 2**20
