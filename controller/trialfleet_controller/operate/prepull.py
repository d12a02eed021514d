"""The image on every node before the first trial: one pod a node that starts, says nothing and ends."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trialfleet_controller.kube import names
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.errors import ApiError, Conflict, Forbidden, NotFound
from trialfleet_controller.kube.manifest import FOLDER, probe_pod
from trialfleet_controller.kube.pods import Phase, Pod
from trialfleet_controller.operate.listing import items, pods
from trialfleet_controller.operate.room import misfit
from trialfleet_controller.operate.waiting import trouble
from trialfleet_runner.campaign import KubernetesSpec
from trialfleet_runner.errors import OperatorError

PULL = f"{names.DOMAIN}/prepull"  # label: the token of one prepull
EVERY_S = 1.0
SIDE_BY_SIDE = 20  # pulls at once: a registry has its limits
_COMMAND = (f"{FOLDER}/bin/python", "-I", "-S", "-c", "pass")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pulled:
    """One node's result. `trouble` None: the image is there and its runner's interpreter starts."""

    node: str
    trouble: str | None = None


def nodes_for(client: Client, pod: Json, given: Sequence[str]) -> list[str]:
    """The nodes named, or all that could run `pod` (an attempt's). Raises `OperatorError`."""
    if given:
        return list(dict.fromkeys(given))
    try:
        listed = items(client, "/api/v1/nodes")
    except Forbidden as error:
        raise OperatorError(
            "these credentials may not list nodes",
            where="prepull",
            hint="somebody who may: kubectl get nodes -o name; then name them: --node NAME --node NAME …",
        ) from error
    fitting = [str(node["metadata"]["name"]) for node in listed if misfit(node, pod) is None]
    if not fitting:
        raise OperatorError(
            f"an attempt fits on none of {len(listed)} nodes",
            where="prepull",
            hint="`trialfleet doctor` with the campaign file says why; or name nodes with --node",
        )
    return sorted(fitting)


def prepull(
    client: Client, kube: KubernetesSpec, nodes: Sequence[str], *, tell: Callable[[Pulled], None]
) -> list[Pulled]:
    """Pulls on all `nodes`, twenty at a time. Its pods are gone when it returns. Raises `ApiError`."""
    token = secrets.token_hex(4)
    namespace = kube.namespaces[0]
    waiting = {_name(token, n): node for n, node in enumerate(nodes)}
    running: dict[str, float] = {}
    done: list[Pulled] = []
    try:
        while waiting or running:
            for name in list(waiting)[: SIDE_BY_SIDE - len(running)]:
                client.create_pod(namespace, _pod(kube, name, token, waiting[name]))
                running[name] = time.monotonic()
                del waiting[name]
            for pod in list(pods(client, namespace, f"{PULL}={token}")):
                since = running.get(pod.name)
                pulled = None if since is None else _pulled(client, kube, pod, time.monotonic() - since)
                if pulled is not None:
                    del running[pod.name]
                    _delete(client, namespace, pod)
                    done.append(pulled)
                    tell(pulled)
            time.sleep(EVERY_S if running else 0)
    finally:
        for pod in list(pods(client, namespace, f"{PULL}={token}")):
            _delete(client, namespace, pod)
    return done


def _name(token: str, n: int) -> str:
    return f"trialfleet-prepull-{token}-{n}"


def _pod(kube: KubernetesSpec, name: str, token: str, node: str) -> Json:
    """Needs no key of the model, and no room: whatever runs on the node may go on."""
    bare = kube.model_copy(update={"model_secret": None})
    pod = probe_pod(
        bare, name=name, env={}, deadline_s=int(kube.graces.image_pull_s) + 60, command=_COMMAND, node=node
    )
    pod["metadata"]["labels"][PULL] = token
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    return pod


def _pulled(client: Client, kube: KubernetesSpec, pod: Pod, age_s: float) -> Pulled | None:
    """None: not yet known."""
    if pod.phase is Phase.SUCCEEDED:
        return Pulled(pod.node)
    found = trouble(pod, client.events(kube.namespaces[0], uid=pod.uid) if age_s > 5 else (), kube)
    if found is not None and age_s >= found.patience_s:
        return Pulled(pod.node, found.words)
    if pod.phase is Phase.FAILED:
        return Pulled(pod.node, pod.message or pod.reason or pod.container("probe").message or "the pod failed")
    return None


def _delete(client: Client, namespace: str, pod: Pod) -> None:
    with suppress(NotFound, Conflict, ApiError):
        client.delete_pod(namespace, pod.name, uid=pod.uid, grace_s=0)
