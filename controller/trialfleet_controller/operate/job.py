"""The controller's Job: values in, manifest out. It holds no campaign file and no credentials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trialfleet_runner.canonical import digest

PROGRAM = "/opt/trialfleet/bin/trialfleet"
UID = 65532
SPEC = "trialfleet.dev/spec"
ROLE = "trialfleet.dev/role"  # opens the API server to this pod, in the network policies of k8s/base
CONTROLS = "trialfleet.dev/controls"  # not the label of a campaign's attempts: this pod is none
STORE_SECRET = "trialfleet-store"  # noqa: S105 - a name
CONFIG = "trialfleet-controller"  # ConfigMap: environment that is no secret
BACKOFF_LIMIT = 1000  # restarts, up to five minutes apart: an outage of days is survived
STOP_S = 120  # a controller that is told to stop lets go of its pods; it does not wait for them
RAY_SECRET = "trialfleet-ray"  # noqa: S105 - a name; of a Ray cluster that asks for a token
_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")  # keys of the store's Secret


@dataclass(frozen=True)
class Submission:
    """One campaign's controller. `campaign`: its place in the store as `resume` takes it; `uid`: of the plan.

    `endpoint`: the store as pods see it, None: AWS. `store_secret`: a Secret with AWS_ACCESS_KEY_ID and
    AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN); None: the one of k8s/base where it is there, else the service
    account brings credentials by itself.
    """

    campaign: str
    uid: str
    namespace: str
    image: str
    service_account: str = "trialfleet-controller"
    endpoint: str | None = None
    path_style: bool | None = None
    region: str | None = None
    store_secret: str | None = None
    ray_address: str | None = None
    metrics_port: int | None = None
    keep_failed: int = 0
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    pull_secrets: tuple[str, ...] = ()
    cpu: float = 1
    memory: str = "3Gi"

    @property
    def name(self) -> str:
        """One Job per campaign: whoever submits again finds it."""
        return f"trialfleet-controller-{self.uid[:8]}"


def job(asked: Submission) -> dict[str, Any]:
    """The Job. `trialfleet.dev/spec` on it is the digest of the rest, so that another one of this name is seen."""
    labels = {"app.kubernetes.io/name": "trialfleet-controller", ROLE: "controller", CONTROLS: asked.uid}
    whole: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": asked.name, "namespace": asked.namespace, "labels": labels},
        "spec": {
            "backoffLimit": BACKOFF_LIMIT,
            "podReplacementPolicy": "Failed",  # never two controllers side by side
            "template": {"metadata": {"labels": labels, "annotations": _annotations(asked)}, "spec": _pod(asked)},
        },
    }
    whole["metadata"]["annotations"] = {"trialfleet.dev/campaign": asked.campaign, SPEC: digest(whole)}
    return whole


_KEEP = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}


def _annotations(asked: Submission) -> dict[str, str]:
    if asked.metrics_port is None:
        return _KEEP
    return {**_KEEP, "prometheus.io/scrape": "true", "prometheus.io/port": str(asked.metrics_port)}


def _pod(asked: Submission) -> dict[str, Any]:
    return {
        "restartPolicy": "OnFailure",
        "serviceAccountName": asked.service_account,
        "automountServiceAccountToken": True,  # its account may do what k8s/base lists, in this namespace
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": STOP_S,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": UID,
            "fsGroup": UID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **({"imagePullSecrets": [{"name": name} for name in asked.pull_secrets]} if asked.pull_secrets else {}),
        "containers": [_container(asked)],
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "4Gi"}},
            # Ray's objects: the runtime's own /dev/shm is 64 MiB
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "512Mi"}},
        ],
    }


def _container(asked: Submission) -> dict[str, Any]:
    ray = ["--ray-address", asked.ray_address] if asked.ray_address else []
    port = asked.metrics_port
    metrics = [] if port is None else ["--metrics-port", str(port)]
    keep = ["--keep-failed", str(asked.keep_failed)] if asked.keep_failed else []
    ports = {} if port is None else {"ports": [{"name": "metrics", "containerPort": port}]}
    return {
        "name": "controller",
        "image": asked.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            PROGRAM,
            "resume",
            asked.campaign,
            "--in-cluster",
            "--no-report",
            "--json",
            *ray,
            *keep,
            *metrics,
        ],
        **ports,
        "envFrom": [{"configMapRef": {"name": CONFIG, "optional": True}}],
        "env": _env(asked),
        "resources": {
            "requests": {"cpu": f"{asked.cpu:g}", "memory": asked.memory},
            "limits": {"memory": asked.memory},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",  # what the operator must mend stands there
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108
    }


def _env(asked: Submission) -> list[dict[str, Any]]:
    style = {None: None, True: "1", False: "0"}[asked.path_style]
    plain = {
        "HOME": "/tmp",  # noqa: S108 - the only place to write
        "AWS_ENDPOINT_URL_S3": asked.endpoint,
        "TRIALFLEET_S3_PATH_STYLE": style,
        "AWS_REGION": asked.region,
        **asked.env,
    }
    from_secret = [{"name": key, "valueFrom": {"secretKeyRef": _credential(asked, key)}} for key in _CREDENTIALS]
    token = {"name": RAY_SECRET, "key": "RAY_AUTH_TOKEN", "optional": True}
    of_ray = [{"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": token}}] if asked.ray_address else []
    given = [{"name": name, "value": value} for name, value in plain.items() if value is not None]
    return [*given, *from_secret, *of_ray]


def _credential(asked: Submission, key: str) -> dict[str, Any]:
    """Long-lived keys have no session token; a Secret that was named is there, or the pod does not start."""
    optional = asked.store_secret is None or key == "AWS_SESSION_TOKEN"
    return {"name": asked.store_secret or STORE_SECRET, "key": key, "optional": optional}
