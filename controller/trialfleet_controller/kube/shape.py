"""What all our pods have in common: the `restricted` Pod Security level, and what the campaign passes through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trialfleet_runner.campaign import KubernetesSpec

Json = dict[str, Any]

UID = 65532  # "nonroot" of the distroless images; no image of ours has another user
KEYS = "/trialfleet/keys"

# An attempt that is moved is an attempt lost.
STAY = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}

_LEFT_NODES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def pod_spec(kube: KubernetesSpec) -> Json:
    """All of a pod's spec but containers, volumes and deadline."""
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": kube.graces.termination_s,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": UID,
            "fsGroup": UID,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [
            *(_for_a_while(key, kube.graces.unreachable_s) for key in _LEFT_NODES),
            *(toleration.model_dump(mode="json", exclude_none=True) for toleration in kube.tolerations),
        ],
        **_passed_through(kube),
    }


def container(kube: KubernetesSpec, name: str, command: Sequence[str], *, env: Sequence[Json]) -> Json:
    """Without its resources and mounts."""
    return {
        "name": name,
        "image": kube.image,
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
    """Where the runner finds the model and the files that hold its keys."""
    base = kube.model_base_url
    bases = {} if base is None else {"ANTHROPIC_BASE_URL": base, "OPENAI_BASE_URL": base}
    return bases if kube.model_secret is None else {**bases, "TRIALFLEET_KEYS": KEYS}


def empty_dir(name: str, size: int) -> Json:
    return {"name": name, "emptyDir": {"sizeLimit": str(size)}}


def memory(name: str, size: int) -> Json:
    """A folder of the node's memory, counted as that of the container that writes there."""
    return {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": str(size)}}


def mount(volume: str, path: str, *, within: str | None = None, read_only: bool = False) -> Json:
    """`within`: a folder of the volume instead of all of it."""
    return {
        "name": volume,
        "mountPath": path,
        **({} if within is None else {"subPath": within}),
        **({"readOnly": True} if read_only else {}),
    }


def _for_a_while(key: str, seconds: int) -> Json:
    """Instead of the five minutes that a cluster adds: a lost node's attempts start again sooner."""
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


def _passed_through(kube: KubernetesSpec) -> Json:
    given = {
        "runtimeClassName": kube.runtime_class,
        "priorityClassName": kube.priority_class,
        "nodeSelector": dict(kube.node_selector),
        "imagePullSecrets": [{"name": name} for name in kube.image_pull_secrets],
    }
    return {key: value for key, value in given.items() if value}
