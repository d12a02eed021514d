"""The image on every node before the first trial: one pod a node that starts, says nothing and ends."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trialfleet_controller.checks import Check
from trialfleet_controller.kube import names
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.errors import ApiError, Conflict, Forbidden, NotFound, Unreachable
from trialfleet_controller.kube.manifest import FOLDER, probe_pod
from trialfleet_controller.kube.pods import Phase, Pod
from trialfleet_controller.operate import refusals
from trialfleet_controller.operate.listing import items, pods
from trialfleet_controller.operate.room import misfit
from trialfleet_controller.operate.waiting import trouble
from trialfleet_runner.campaign import KubernetesSpec
from trialfleet_runner.errors import OperatorError

PULL = f"{names.DOMAIN}/prepull"  # label: the token of one prepull
EVERY_S = 1.0
_BEYOND_S = 120.0  # the pull's grace: for kubelets that set the pod's own deadline
SIDE_BY_SIDE = 20  # pulls at once: a registry has its limits
_COMMAND = (f"{FOLDER}/bin/python", "-I", "-S", "-c", "pass")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pulled:
    """One node's result. `trouble` None: the image is there and its runner's interpreter starts."""

    node: str
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """A pod of ours on a node, and when it was created, on the monotonic clock."""

    node: str
    since: float


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
    except ApiError as error:
        raise _refused(refusals.unreachable(error, client.host)) from error
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
    """Pulls on all `nodes`, twenty at a time. Its pods are gone when it returns. Raises `OperatorError`."""
    token = secrets.token_hex(4)
    namespace = kube.namespaces[0]
    waiting = {_name(token, n): node for n, node in enumerate(nodes)}
    running: dict[str, Running] = {}
    done: list[Pulled] = []
    try:
        while waiting or running:
            for name in list(waiting)[: SIDE_BY_SIDE - len(running)]:
                _create(client, namespace, _pod(kube, name, token, waiting[name]))
                running[name] = Running(waiting.pop(name), time.monotonic())
            there = {pod.name: pod for pod in _listed(client, namespace, token)}
            for name, one in list(running.items()):
                pulled = _pulled(client, kube, there.get(name), one)
                if pulled is not None:
                    del running[name]
                    if name in there:
                        _delete(client, namespace, there[name])
                    done.append(pulled)
                    tell(pulled)
            time.sleep(EVERY_S if running else 0)
    finally:
        with suppress(OperatorError):  # their deadline ends them
            for pod in _listed(client, namespace, token):
                _delete(client, namespace, pod)
    return done


def _create(client: Client, namespace: str, pod: Json) -> None:
    try:
        client.create_pod(namespace, pod)
    except Unreachable as error:
        raise _refused(refusals.unreachable(error, client.host)) from error
    except ApiError as error:
        raise _refused(refusals.refused_pod(error, namespace)) from error


def _listed(client: Client, namespace: str, token: str) -> list[Pod]:
    try:
        return list(pods(client, namespace, f"{PULL}={token}"))
    except ApiError as error:
        raise _refused(refusals.unreachable(error, client.host)) from error


def _refused(check: Check) -> OperatorError:
    return OperatorError(check.found, where=check.name, hint=check.mend)


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


def _pulled(client: Client, kube: KubernetesSpec, pod: Pod | None, one: Running) -> Pulled | None:
    """None: not yet known. `pod` None: it is not there any more."""
    age_s = time.monotonic() - one.since
    if pod is None:
        return Pulled(one.node, "its pod was deleted: is there such a node? (kubectl get nodes)")
    if pod.phase is Phase.SUCCEEDED:
        return Pulled(one.node)
    found = trouble(pod, _events(client, kube.namespaces[0], pod) if age_s > 5 else (), kube)
    if found is not None and age_s >= found.patience_s:
        return Pulled(one.node, found.words)
    if pod.phase is Phase.FAILED:
        return Pulled(one.node, pod.message or pod.reason or pod.container("probe").message or "the pod failed")
    if age_s > kube.graces.image_pull_s + _BEYOND_S:
        return Pulled(one.node, "its kubelet says nothing of the pod: is the node there, and ready?")
    return None


def _events(client: Client, namespace: str, pod: Pod) -> Sequence[Json]:
    """They only explain."""
    try:
        return client.events(namespace, uid=pod.uid)
    except ApiError:
        return ()


def _delete(client: Client, namespace: str, pod: Pod) -> None:
    with suppress(NotFound, Conflict, ApiError):
        client.delete_pod(namespace, pod.name, uid=pod.uid, grace_s=0)
