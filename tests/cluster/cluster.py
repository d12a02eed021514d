"""kubectl against the cluster in $KUBECONFIG, as this user or as one of the manifests' accounts."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube.api_requests import PODS
from trialfleet_controller.backends.kube.client import Client

CHECKOUT = Path(__file__).parents[2]
Raw = dict[str, Any]


def on_cluster(*more: str, timeout_s: float = 600) -> list[pytest.MarkDecorator]:
    """Marks of slow tests with a cluster, a store, the image, and what else is named."""
    needed = pytest.mark.needs("cluster", "s3", "image", *more)
    return [pytest.mark.cluster, needed, pytest.mark.slow, pytest.mark.timeout(timeout_s)]


def kubectl(*argv: str, stdin: Any = None, user: str | None = None) -> subprocess.CompletedProcess[str]:
    """`stdin`: an object, sent as JSON. `user`: who asks, by impersonation: the API server authorises as it would
    that user. Never raises for an exit code."""
    as_user = ("--as", user) if user else ()
    return subprocess.run(
        ("kubectl", *as_user, *argv),
        input=json.dumps(stdin) if stdin is not None else None,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def done(ran: subprocess.CompletedProcess[str]) -> str:
    """What it printed. Fails the test when it did not end well."""
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def account(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def allow(namespace: str, account: str, *roles: str, at: str | None = None) -> None:
    """The service account of this namespace may work by these Roles of namespace `at`, its own by default."""
    for role in roles:
        binding = ("create", "rolebinding", f"{account}-by-{role}", "-n", at or namespace)
        done(kubectl(*binding, f"--role={role}", f"--serviceaccount={namespace}:{account}"))


def apply_roles(namespace: str) -> None:
    """Those of k8s/base, and the accounts."""
    for file in ("accounts.yaml", "roles.yaml"):
        done(kubectl("apply", "--server-side", "-n", namespace, "-f", str(CHECKOUT / "k8s/base" / file)))


def kubeconfig(namespace: str, account: str, path: Path) -> Path:
    """The administrator's, with a token of the account in place of the administrator: those skip what a restarted
    server has not read yet."""
    config = json.loads(done(kubectl("config", "view", "--raw", "--minify", "-o", "json")))
    token = done(kubectl("create", "token", account, "-n", namespace, "--duration=2h")).strip()
    config["users"][0]["user"] = {"token": token}
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


@contextmanager
def fresh_namespace(prefix: str) -> Iterator[str]:
    """A name that nobody uses; the namespace is removed at the end, whoever made it."""
    name = f"{prefix}-{secrets.token_hex(4)}"
    with removed_at_the_end(name):
        yield name


@contextmanager
def removed_at_the_end(namespace: str) -> Iterator[None]:
    try:
        yield
    finally:
        kubectl("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")


@contextmanager
def applied_base(folder: Path, prefix: str) -> Iterator[str]:
    """k8s/base in a namespace of its own, by an overlay (written to `folder`) that renames the namespace."""
    with fresh_namespace(prefix) as name:
        base = os.path.relpath(CHECKOUT / "k8s/base", folder.resolve())
        (folder / "kustomization.yaml").write_text(f"namespace: {name}\nresources: [{base}]\n")
        done(kubectl("apply", "--server-side", "-k", str(folder)))
        await_quota(name)
        yield name


def await_quota(namespace: str, timeout_s: float = 120) -> None:
    """Returns once the cluster counts what there is: until then a quota refuses nothing."""
    counted = ("-n", namespace, "get", "resourcequotas", "-o", "jsonpath={.items[*].status.hard}")
    wait_until(lambda: done(kubectl(*counted)), f"a quota counts in {namespace}", within_s=timeout_s, every_s=0.1)


def evict(namespace: str, name: str) -> None:
    """Through the eviction API, as `kubectl drain` does it."""
    head = {"name": name, "namespace": namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": head}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    done(kubectl("create", "--raw", path, "-f", "-", stdin=body))


def read_pods(namespace: str, selector: str | None = None) -> list[Raw]:
    """Those with the labels of `selector`, without a process: tests that wait ask again and again."""
    client = Client.connect(threads=1)
    with closing(client):
        return [pod for page in client.pages(PODS.list(namespace, labels=selector)) for pod in page.items]


def read_pod(namespace: str, name: str) -> Raw:
    """As `read_pods`. Raises `NotFound`, an `ApiError`."""
    client = Client.connect(threads=1)
    with closing(client):
        return client.call(PODS.get(namespace, name))


def ended(namespace: str, pod: str, timeout_s: float = 120) -> str:
    """The pod's last phase: Succeeded or Failed, or what it was when time was up."""
    until = time.monotonic() + timeout_s
    while True:
        phase: str = read_pod(namespace, pod)["status"]["phase"]
        if phase in ("Succeeded", "Failed") or time.monotonic() > until:
            return phase
        time.sleep(0.3)


def restricted_namespace(name: str) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    head = {"name": name, "labels": labels}
    done(kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "Namespace", "metadata": head}))


# Without a request the kubelet gives a container a hundredth of what a trial's gets: on a full node, nothing.
SERVES = {"requests": {"cpu": "100m"}}


def restricted_pod(name: str, image: str, *argv: str, **spec: Any) -> Raw:
    """A pod as trials have it: not root, nothing to write but /tmp, no token."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "runAsGroup": 65532,
                "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "main",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": list(argv),
                    "securityContext": {
                        "readOnlyRootFilesystem": True,
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                }
            ],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            **spec,
        },
    }
