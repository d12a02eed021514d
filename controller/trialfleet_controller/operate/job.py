"""Builds the manifest of the controller's Job, which contains no campaign file and no credentials. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trialfleet_controller.backends.kube.manifest import STAY
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.quantities import cpu_quantity, size_text
from trialfleet_ledger.store.server_address import CREDENTIALS, SESSION_TOKEN, server_variables

PROGRAM = "/opt/trialfleet/bin/trialfleet"
UID = 65532
SPEC = "trialfleet.dev/spec"
ROLE = "trialfleet.dev/role"  # the network policies of k8s/base let a pod with it reach the API server
CONTROLS = "trialfleet.dev/controls"  # not the label of a campaign's attempts: this pod is not an attempt
STORE_SECRET = "trialfleet-store"  # noqa: S105 - a name
CONFIG = "trialfleet-controller"  # a ConfigMap with the variables that are not secret
BACKOFF_LIMIT = 1000  # restarts, up to five minutes apart: enough for an outage of days
FINISHED_S = 3 * 86400  # how long the Job and its log stay after the end: over a weekend
STOP_S = 120  # a controller that stops leaves its pods and does not wait for them
RAY_SECRET = "trialfleet-ray"  # noqa: S105 - a name; of a Ray cluster that asks for a token


@dataclass(frozen=True)
class Submission:
    """One campaign's controller. `campaign`: the argument of `resume`; `uid`: of the plan.

    `endpoint`: of the store as pods see it, None: AWS. `store_secret`: a Secret with AWS_ACCESS_KEY_ID and
    AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN); None: the Secret of k8s/base if it exists, else the service
    account provides credentials.
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
    memory_bytes: int = 3 * 2**30

    @property
    def name(self) -> str:
        """One Job per campaign: a second submission finds it."""
        return f"trialfleet-controller-{self.uid[:8]}"


def job(submission: Submission) -> dict[str, Any]:
    """The Job. Its annotation `trialfleet.dev/spec` is the digest of the rest: it shows whether an existing Job
    differs."""
    labels = {"app.kubernetes.io/name": "trialfleet-controller", ROLE: "controller", CONTROLS: submission.uid}
    whole: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": submission.name, "namespace": submission.namespace, "labels": labels},
        "spec": {
            "backoffLimit": BACKOFF_LIMIT,
            "ttlSecondsAfterFinished": FINISHED_S,
            "podReplacementPolicy": "Failed",  # never two controllers at once
            "template": {
                "metadata": {"labels": labels, "annotations": _annotations(submission)},
                "spec": _pod(submission),
            },
        },
    }
    whole["metadata"]["annotations"] = {"trialfleet.dev/campaign": submission.campaign, SPEC: digest(whole)}
    return whole


def _annotations(submission: Submission) -> dict[str, str]:
    if submission.metrics_port is None:
        return dict(STAY)
    return {**STAY, "prometheus.io/scrape": "true", "prometheus.io/port": str(submission.metrics_port)}


_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": UID,
    "runAsGroup": UID,
    "fsGroup": UID,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def _pod(submission: Submission) -> dict[str, Any]:
    return {
        "restartPolicy": "OnFailure",
        "serviceAccountName": submission.service_account,
        "automountServiceAccountToken": True,  # its account may do what k8s/base allows in this namespace
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": STOP_S,
        "securityContext": _SECURITY,
        **(
            {"imagePullSecrets": [{"name": name} for name in submission.pull_secrets]}
            if submission.pull_secrets
            else {}
        ),
        "containers": [_container(submission)],
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "4Gi"}},
            # for Ray's objects: the default /dev/shm has 64 MiB
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "512Mi"}},
        ],
    }


def _container(submission: Submission) -> dict[str, Any]:
    ray = ["--ray-address", submission.ray_address] if submission.ray_address else []
    port = submission.metrics_port
    metrics = [] if port is None else ["--metrics-port", str(port)]
    keep = ["--keep-failed", str(submission.keep_failed)] if submission.keep_failed else []
    ports = {} if port is None else {"ports": [{"name": "metrics", "containerPort": port}]}
    return {
        "name": "controller",
        "image": submission.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            PROGRAM,
            "resume",
            submission.campaign,
            "--in-cluster",
            "--no-report",
            "--json",
            *ray,
            *keep,
            *metrics,
        ],
        **ports,
        "envFrom": [{"configMapRef": {"name": CONFIG, "optional": True}}],
        "env": _env(submission),
        "resources": {
            "requests": {"cpu": cpu_quantity(submission.cpu), "memory": size_text(submission.memory_bytes)},
            "limits": {"memory": size_text(submission.memory_bytes)},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",  # the log says what the operator must correct
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108
    }


def _env(submission: Submission) -> list[dict[str, Any]]:
    plain = {
        "HOME": "/tmp",  # noqa: S108 - the only writable folder
        **server_variables(
            endpoint=submission.endpoint, path_style=submission.path_style, region=submission.region
        ),
        **submission.env,
    }
    from_secret = [
        {"name": key, "valueFrom": {"secretKeyRef": _credential(submission, key)}} for key in CREDENTIALS
    ]
    token = {"name": RAY_SECRET, "key": "RAY_AUTH_TOKEN", "optional": True}
    of_ray = [{"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": token}}] if submission.ray_address else []
    given = [{"name": name, "value": value} for name, value in plain.items()]
    return [*given, *from_secret, *of_ray]


def _credential(submission: Submission, key: str) -> dict[str, Any]:
    """Long-lived keys have no session token. A named Secret must exist, or the pod does not start."""
    optional = submission.store_secret is None or key == SESSION_TOKEN
    return {"name": submission.store_secret or STORE_SECRET, "key": key, "optional": optional}
