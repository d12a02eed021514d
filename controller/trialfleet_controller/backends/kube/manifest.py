"""The JSON of pods and of the objects that own them. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trialfleet_controller.backends.attempt_times import AttemptSettings, attempt_deadline_s
from trialfleet_controller.backends.kube import names
from trialfleet_controller.backends.kube.api_requests import Json
from trialfleet_controller.backends.kube.pod_requests import RUNNER_REQUESTS, SCORE_REQUESTS
from trialfleet_ledger.campaign_spec import KubernetesSpec
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.plan import KubernetesPlan
from trialfleet_ledger.quantities import cpu_quantity
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.records.grants import GRANTS_URL

FOLDER = "/opt/trialfleet"

_SUPERVISE = (f"{FOLDER}/bin/python", "-I", "-S", f"{FOLDER}/supervise.py")
_GATE_BYTES = 64 * 2**20
_SHM_BYTES = 64 * 2**20  # the default of container runtimes
# Each container may write to its termination log, a file on the node's disk that no limit counts. Only root can
# write to this path.
_OUT_OF_REACH = "/root/termination-log"
# of the pod's grace: a stopped runner then writes its termination message, even if a step hangs
_STOP_SHARE = 0.75
_RUNNER_TMP_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class ContainerCommands:
    """The commands of the three containers."""

    runner: tuple[str, ...] = (f"{FOLDER}/bin/trialfleet-pod", "run")
    agent: tuple[str, ...] = (*_SUPERVISE, "agent")
    score: tuple[str, ...] = (*_SUPERVISE, "score", "/dev/shm")  # noqa: S108 - emptied between scoring runs


COMMANDS = ContainerCommands()


@dataclass(frozen=True, slots=True)
class Owner:
    """An owning object. The uid must be right: Kubernetes deletes objects whose owner's uid does not exist."""

    name: str
    uid: str


def config_map(plan: AttemptSettings, *, store_url: str, expiry: Owner) -> Json:
    """Deleting it deletes every pod of the campaign in its namespace. `expiry`: its own owner, a Job."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.config_map(plan.uid),
            "labels": {names.CAMPAIGN: plan.uid},
            "ownerReferences": [_owner_reference(expiry, "batch/v1", "Job")],
        },
        "data": {"campaign": plan.campaign, "store": store_url},
    }


def expiry_job(plan: AttemptSettings, *, deadline_s: int) -> Json:
    """A Job that creates no pod and only has a deadline. It does not carry the campaign file's labels: a queue
    would suspend it."""
    kube = planned(plan)
    template = {
        **pod_spec(kube, uid=kube.uids.min),
        "containers": [container(kube, "never-started", ("/bin/true",), env=[])],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": names.expiry(plan.uid), "labels": {names.CAMPAIGN: plan.uid}},
        "spec": {
            "parallelism": 0,
            "completions": 1,
            "activeDeadlineSeconds": deadline_s,
            "ttlSecondsAfterFinished": 0,
            "template": {"spec": template},
        },
    }


def pod(
    plan: AttemptSettings,
    *,
    trial: str,
    attempt: int,
    owner: Owner,
    grants_url: str,
    place: int = 0,
    shard: int = 0,
    commands: ContainerCommands = COMMANDS,
) -> Json:
    """The pod of an attempt: `runner` holds the grants, `agent` and `score` run foreign code and share no volume.

    `place`: of its trial in launch order."""
    kube = planned(plan)
    manifest: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": names.pod(plan.uid, trial, attempt),
            "labels": {**kube.labels, **names.labels(plan.uid, trial, attempt)},
            "annotations": dict(STAY),
        },
        "spec": {
            **pod_spec(kube, uid=uid(plan, place)),
            "activeDeadlineSeconds": math.ceil(attempt_deadline_s(plan) + kube.graces.pending_s),
            "containers": [
                _runner(kube, plan.limits, commands.runner),
                _worker(kube, plan.limits, names.AGENT, commands.agent, _attempt_limits(plan.limits)),
                _worker(kube, plan.limits, names.SCORE, commands.score, SCORE_REQUESTS),
            ],
            "volumes": _volumes(kube, plan.limits),
        },
    }
    spec = digest(manifest)
    manifest["metadata"]["annotations"][names.SPEC] = spec
    # not in the digest: after a resume another shard may create the same pod
    manifest["metadata"]["labels"][names.SHARD] = str(shard)
    manifest["metadata"]["ownerReferences"] = [_owner_reference(owner, "v1", "ConfigMap")]
    manifest["spec"]["containers"][0]["env"].append({"name": GRANTS_URL, "value": grants_url})
    return manifest


def _probe(kube: KubernetesSpec, env: Mapping[str, str], command: Sequence[str]) -> Json:
    return {
        **container(
            kube, "probe", command, env=[HOST_IP, *({"name": key, "value": env[key]} for key in sorted(env))]
        ),
        "resources": {
            "requests": RUNNER_REQUESTS,
            "limits": {**_runner_limits(kube), "ephemeral-storage": str(_RUNNER_TMP_BYTES)},
        },
        "volumeMounts": [mount("tmp-probe", "/tmp"), *_keys_mount(kube)],  # noqa: S108 - in the pod
    }


def probe_pod(
    kube: KubernetesSpec,
    *,
    name: str,
    env: Mapping[str, str],
    deadline_s: int,
    command: Sequence[str] = (f"{FOLDER}/bin/trialfleet-pod", "probe"),
    node: str | None = None,
) -> Json:
    """A pod that inspects image and network as a runner would. `node`: only there; None: anywhere."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {**kube.labels, f"{names.DOMAIN}/probe": "yes"}},
        "spec": {
            **pod_spec(kube, uid=kube.uids.min),
            "activeDeadlineSeconds": deadline_s,
            "containers": [_probe(kube, env, command)],
            "volumes": [empty_dir("tmp-probe", _RUNNER_TMP_BYTES), *_keys_volume(kube)],
            **({} if node is None else {"affinity": _only_on(node)}),
        },
    }


def uid(plan: AttemptSettings, place: int) -> int:
    """Trials that run at the same time are close in launch order, so their pods have different users and do not
    share a user's limits on a node. Campaigns begin at different uids."""
    return planned(plan).uids.at(int(digest(plan.uid), 16) + place)


def _only_on(node: str) -> Json:
    """An affinity instead of `nodeName`, which a pod with a scheduling gate may not have."""
    named = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [named]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def planned(plan: AttemptSettings) -> KubernetesPlan:
    """The plan's section for Kubernetes. Raises `ValueError` if it has none."""
    if plan.kubernetes is None:
        raise ValueError(f"campaign {plan.campaign} was not planned for Kubernetes")
    return plan.kubernetes


def _runner(kube: KubernetesPlan, limits: Limits, command: Sequence[str]) -> Json:
    folders = ("runner", "agent", "agent-gate", "score", "score-gate")
    return {
        **container(kube, names.RUNNER, command, env=_runner_env(kube)),
        "resources": {
            "requests": RUNNER_REQUESTS,
            "limits": {
                **_runner_limits(kube),
                "ephemeral-storage": str(limits.disk_bytes + _RUNNER_TMP_BYTES),
            },
        },
        "volumeMounts": [
            *(mount(name, f"/trialfleet/{name}") for name in folders),
            mount("tmp-runner", "/tmp"),  # noqa: S108 - in the pod
            mount("renewed", "/trialfleet/renewed", read_only=True),
            *_keys_mount(kube),
        ],
    }


def _runner_limits(kube: KubernetesSpec) -> Json:
    """Without a limit on the CPU by default: the runner is idle while the agent works."""
    cpu = {} if kube.runner.cpu is None else {"cpu": cpu_quantity(kube.runner.cpu)}
    return {**cpu, "memory": str(kube.runner.memory)}


def _runner_env(kube: KubernetesPlan) -> list[Json]:
    """Without `GRANTS_URL`, the only secret in the spec: a reader of the pod could forge this attempt with it."""
    plain = {
        "TRIALFLEET_IMAGE": kube.reference,
        "TRIALFLEET_NETWORK": kube.network,
        "TRIALFLEET_STOP_S": f"{_STOP_SHARE * kube.graces.termination_s:g}",
        **_isolation_env(kube),
        **model_env(kube),
    }
    return [
        HOST_IP,
        {"name": "TRIALFLEET_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": "TRIALFLEET_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        *({"name": name, "value": value} for name, value in plain.items()),
    ]


def _isolation_env(kube: KubernetesPlan) -> dict[str, str]:
    """What the runner must find refused before anything of agent or repository runs. Nothing where the campaign
    allows a network without policies."""
    if kube.network != "enforced" or kube.allow_unenforced_network or not kube.forbidden_addresses:
        return {}
    return {
        "TRIALFLEET_FORBIDDEN": " ".join(kube.forbidden_addresses),
        "TRIALFLEET_FORBIDDEN_S": f"{kube.graces.open_network_s:g}",
    }


def _worker(kube: KubernetesPlan, limits: Limits, name: str, command: Sequence[str], requests: Json) -> Json:
    """`agent` or `score`: it has its own folder and the gate through which the runner starts a command."""
    return {
        **container(kube, name, command, env=[]),
        "terminationMessagePath": _OUT_OF_REACH,
        "resources": {"requests": requests, "limits": _attempt_limits(limits)},
        "volumeMounts": [
            mount(name, f"/trialfleet/{name}"),
            mount(f"{name}-gate", f"/trialfleet/{name}-gate", read_only=True),
            # In the folder that the runner watches: a full disk then fails the program and does not evict the pod.
            mount(name, "/tmp", within="tmp"),  # noqa: S108 - in the pod
            # The pod's default /dev/shm is shared by its containers: the tests would see what the agent leaves
            # there.
            mount(f"{name}-shm", "/dev/shm"),  # noqa: S108
        ],
    }


def _attempt_limits(limits: Limits) -> Json:
    """The agent requests them too: the node then reserves all that it may use, so neighbours do not affect it."""
    return {
        "cpu": cpu_quantity(limits.cpu),
        "memory": str(limits.memory_bytes),
        "ephemeral-storage": str(limits.disk_bytes),
    }


def _volumes(kube: KubernetesPlan, limits: Limits) -> list[Json]:
    disk = limits.disk_bytes
    return [
        *(empty_dir(name, disk) for name in ("runner", "agent", "score")),
        *(empty_dir(name, _GATE_BYTES) for name in ("agent-gate", "score-gate")),
        *(memory(name, _SHM_BYTES) for name in ("agent-shm", "score-shm")),
        empty_dir("tmp-runner", _RUNNER_TMP_BYTES),
        {"name": "renewed", "downwardAPI": {"items": [_annotation("grants", names.GRANTS)]}},
        *_keys_volume(kube),
    ]


def _annotation(file: str, name: str) -> Json:
    """A file that follows the annotation while the pod runs; empty without it."""
    return {"path": file, "fieldRef": {"fieldPath": f"metadata.annotations['{name}']"}}


def _keys_mount(kube: KubernetesSpec) -> list[Json]:
    return [] if kube.model_secret is None else [mount("model-keys", KEYS, read_only=True)]


def _keys_volume(kube: KubernetesSpec) -> list[Json]:
    """Only the pod's group can read the files; the other containers do not mount them."""
    if kube.model_secret is None:
        return []
    return [{"name": "model-keys", "secret": {"secretName": kube.model_secret, "defaultMode": 0o440}}]


def _owner_reference(owner: Owner, version: str, kind: str) -> Json:
    return {
        "apiVersion": version,
        "kind": kind,
        "name": owner.name,
        "uid": owner.uid,
        "blockOwnerDeletion": False,
        "controller": False,
    }


# Of the pod's node. Variables that name it in their values come after it.
HOST_IP: Json = {"name": "TRIALFLEET_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
KUBELET_ADDRESS = "$(TRIALFLEET_HOST_IP):10250"  # the kubelet fills it in; 10250 is its default port
API_ADDRESS = "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"  # likewise

GID = 65532  # the group of all pods, which owns their volumes
KEYS = "/trialfleet/keys"

# Moving a pod loses its attempt.
STAY = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}

_LOST_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def pod_spec(kube: KubernetesSpec, *, uid: int) -> Json:
    """A pod's spec without containers, volumes and deadline."""
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": kube.graces.termination_s,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": uid,
            "runAsGroup": GID,
            "fsGroup": GID,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [
            *(_tolerate_for(key, kube.graces.unreachable_s) for key in _LOST_NODE_TAINTS),
            *(toleration.model_dump(mode="json", exclude_none=True) for toleration in kube.tolerations),
        ],
        **_passed_through(kube),
    }


def container(kube: KubernetesSpec, name: str, command: Sequence[str], *, env: Sequence[Json]) -> Json:
    """Without its resources and mounts."""
    return {
        "name": name,
        "image": kube.reference,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "env": list(env),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def model_env(kube: KubernetesSpec) -> dict[str, str]:
    """The address of the model and the folder of its keys, for the runner."""
    base = kube.model_base_url
    apis = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
    names = (*apis, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "VERTEX_BASE_URL")
    bases: dict[str, str] = {} if base is None else dict.fromkeys(names, base)
    return bases if kube.model_secret is None else {**bases, "TRIALFLEET_KEYS": KEYS}


def empty_dir(name: str, size: int) -> Json:
    return {"name": name, "emptyDir": {"sizeLimit": str(size)}}


def memory(name: str, size: int) -> Json:
    """A folder in memory, which counts as memory of the container that writes to it."""
    return {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": str(size)}}


def mount(volume: str, path: str, *, within: str | None = None, read_only: bool = False) -> Json:
    """`within`: mount this folder of the volume instead of all of it."""
    return {
        "name": volume,
        "mountPath": path,
        **({} if within is None else {"subPath": within}),
        **({"readOnly": True} if read_only else {}),
    }


def _tolerate_for(key: str, seconds: int) -> Json:
    """Replaces the five minutes that a cluster adds, so that the attempts of a lost node start again sooner."""
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


def _passed_through(kube: KubernetesSpec) -> Json:
    given = {
        "runtimeClassName": kube.runtime_class,
        "priorityClassName": kube.priority_class,
        "nodeSelector": dict(kube.node_selector),
        "imagePullSecrets": [{"name": name} for name in kube.image_pull_secrets],
    }
    return {key: value for key, value in given.items() if value}
