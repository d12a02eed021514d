"""The pods and their owner as JSON: values in, dict out. Nothing here asks a server or a clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trialfleet_controller.kube import names, shape
from trialfleet_controller.orders import attempt_deadline_s
from trialfleet_runner.campaign import KubernetesPlan, KubernetesSpec, Plan
from trialfleet_runner.canonical import digest
from trialfleet_runner.contract import Limits

Json = dict[str, Any]

FOLDER = "/opt/trialfleet"
GRANTS_URL = "TRIALFLEET_GRANTS_URL"  # the one secret in a spec: who may read pods could forge this one attempt

_SUPERVISE = (f"{FOLDER}/bin/python", "-I", "-S", f"{FOLDER}/supervise.py")
_RUNNER_MEMORY = 2**30  # git, archives and the gateway; far above what they take
_RUNNER_REQUESTS = {"cpu": "10m", "memory": "96Mi", "ephemeral-storage": "64Mi"}
_SCORE_REQUESTS = {"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "0"}  # the agent has gone by then
_GATE_BYTES = 64 * 2**20
_SHM_BYTES = 64 * 2**20  # as containers have it by default
# A file on the node's disk that no limit counts, made for every container to write: here only root could.
_OUT_OF_REACH = "/root/termination-log"
_STOP_SHARE = 0.75  # of the pod's grace: then a runner that is told to stop says its last words, whatever hangs
_RUNNER_TMP_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class Commands:
    """What the three containers run."""

    runner: tuple[str, ...] = (f"{FOLDER}/bin/trialfleet-pod", "run")
    agent: tuple[str, ...] = (*_SUPERVISE, "agent")
    score: tuple[str, ...] = (*_SUPERVISE, "score")


COMMANDS = Commands()


@dataclass(frozen=True, slots=True)
class Owner:
    """The campaign's ConfigMap as the server knows it: a wrong uid would get the pods collected as garbage."""

    name: str
    uid: str


def config_map(plan: Plan, *, store_url: str) -> Json:
    """Deleting it deletes every pod of the campaign in its namespace."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.config_map(plan.uid), "labels": {names.CAMPAIGN: plan.uid}},
        "data": {"campaign": plan.campaign, "store": store_url},
    }


def pod(
    plan: Plan,
    *,
    trial: str,
    attempt: int,
    owner: Owner,
    grants_url: str,
    shard: int = 0,
    commands: Commands = COMMANDS,
) -> Json:
    """One attempt: `runner` holds the grants, `agent` and `score` run others' code and share no volume."""
    kube = planned(plan)
    manifest: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": names.pod(plan.uid, trial, attempt),
            "labels": {**kube.labels, **names.labels(plan.uid, trial, attempt)},
            "annotations": dict(shape.STAY),
        },
        "spec": {
            **shape.pod_spec(kube),
            "activeDeadlineSeconds": math.ceil(attempt_deadline_s(plan) + kube.graces.pending_s),
            "containers": [
                _runner(kube, plan.limits, commands.runner),
                _worker(kube, plan.limits, names.AGENT, commands.agent, _requests(plan.limits)),
                _worker(kube, plan.limits, names.SCORE, commands.score, _SCORE_REQUESTS),
            ],
            "volumes": _volumes(kube, plan.limits),
        },
    }
    spec = digest(manifest)
    manifest["metadata"]["annotations"][names.SPEC] = spec
    manifest["metadata"]["labels"][names.SHARD] = str(shard)  # a resume may divide otherwise: the same pod
    manifest["metadata"]["ownerReferences"] = [_owner_reference(owner)]
    manifest["spec"]["containers"][0]["env"].append({"name": GRANTS_URL, "value": grants_url})
    return manifest


def probe_pod(
    kube: KubernetesSpec,
    *,
    name: str,
    env: Mapping[str, str],
    deadline_s: int,
    command: Sequence[str] = (f"{FOLDER}/bin/trialfleet-pod", "probe"),
    node: str | None = None,
) -> Json:
    """A pod that looks at the image and the network as a runner will, on any node or on one."""
    probe = {
        **shape.container(kube, "probe", command, env=[{"name": key, "value": env[key]} for key in sorted(env)]),
        "resources": {"requests": _RUNNER_REQUESTS, "limits": {"memory": str(_RUNNER_MEMORY)}},
        "volumeMounts": [shape.mount("tmp-probe", "/tmp"), *_keys_mount(kube)],  # noqa: S108 - in the pod
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {**kube.labels, f"{names.DOMAIN}/probe": "yes"}},
        "spec": {
            **shape.pod_spec(kube),
            "activeDeadlineSeconds": deadline_s,
            "containers": [probe],
            "volumes": [shape.empty_dir("tmp-probe", _RUNNER_TMP_BYTES), *_keys_volume(kube)],
            **({} if node is None else {"nodeName": node}),
        },
    }


def planned(plan: Plan) -> KubernetesPlan:
    """Its section for Kubernetes, which a plan for pods has."""
    if plan.kubernetes is None:
        raise ValueError(f"campaign {plan.campaign} was not planned for Kubernetes")
    return plan.kubernetes


def _runner(kube: KubernetesPlan, limits: Limits, command: Sequence[str]) -> Json:
    folders = ("runner", "agent", "agent-gate", "score", "score-gate")
    return {
        **shape.container(kube, names.RUNNER, command, env=_runner_env(kube)),
        "resources": {
            "requests": _RUNNER_REQUESTS,
            "limits": {
                "memory": str(_RUNNER_MEMORY),
                "ephemeral-storage": str(limits.disk_bytes + _RUNNER_TMP_BYTES),
            },
        },
        "volumeMounts": [
            *(shape.mount(name, f"/trialfleet/{name}") for name in folders),
            shape.mount("tmp-runner", "/tmp"),  # noqa: S108 - in the pod
            *_keys_mount(kube),
        ],
    }


def _runner_env(kube: KubernetesPlan) -> list[Json]:
    """`GRANTS_URL` is added last, by who has it."""
    plain = {
        "TRIALFLEET_IMAGE": kube.image,
        "TRIALFLEET_NETWORK": kube.network,
        "TRIALFLEET_STOP_S": f"{_STOP_SHARE * kube.graces.termination_s:g}",
        **shape.model_env(kube),
    }
    return [
        {"name": "TRIALFLEET_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": "TRIALFLEET_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        *({"name": name, "value": value} for name, value in plain.items()),
    ]


def _worker(kube: KubernetesPlan, limits: Limits, name: str, command: Sequence[str], requests: Json) -> Json:
    """`agent` or `score`: its own folder, and the gate through which the runner tells it what to run."""
    return {
        **shape.container(kube, name, command, env=[]),
        "terminationMessagePath": _OUT_OF_REACH,
        "resources": {
            "requests": requests,
            "limits": {
                "cpu": _cpu(limits.cpu),
                "memory": str(limits.memory_bytes),
                "ephemeral-storage": str(limits.disk_bytes),
            },
        },
        "volumeMounts": [
            shape.mount(name, f"/trialfleet/{name}"),
            shape.mount(f"{name}-gate", f"/trialfleet/{name}-gate", read_only=True),
            # In the folder that the runner watches: a full disk is the program's own, and evicts no pod.
            shape.mount(name, "/tmp", within="tmp"),  # noqa: S108 - in the pod
            # The pod's own is one for all containers: what the agent leaves there would wait for the tests.
            shape.mount(f"{name}-shm", "/dev/shm"),  # noqa: S108
        ],
    }


def _requests(limits: Limits) -> Json:
    """What the agent may use is what the node sets aside: no neighbour slows it down or takes its memory."""
    return {
        "cpu": _cpu(limits.cpu),
        "memory": str(limits.memory_bytes),
        "ephemeral-storage": str(limits.disk_bytes),
    }


def _cpu(cores: float) -> str:
    return f"{math.ceil(cores * 1000)}m"


def _volumes(kube: KubernetesPlan, limits: Limits) -> list[Json]:
    disk = limits.disk_bytes
    return [
        *(shape.empty_dir(name, disk) for name in ("runner", "agent", "score")),
        *(shape.empty_dir(name, _GATE_BYTES) for name in ("agent-gate", "score-gate")),
        *(shape.memory(name, _SHM_BYTES) for name in ("agent-shm", "score-shm")),
        shape.empty_dir("tmp-runner", _RUNNER_TMP_BYTES),
        *_keys_volume(kube),
    ]


def _keys_mount(kube: KubernetesSpec) -> list[Json]:
    return [] if kube.model_secret is None else [shape.mount("model-keys", shape.KEYS, read_only=True)]


def _keys_volume(kube: KubernetesSpec) -> list[Json]:
    """Files for the pod's group alone; the other containers do not mount them."""
    if kube.model_secret is None:
        return []
    return [{"name": "model-keys", "secret": {"secretName": kube.model_secret, "defaultMode": 0o440}}]


def _owner_reference(owner: Owner) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner.name,
        "uid": owner.uid,
        "blockOwnerDeletion": False,
        "controller": False,
    }
