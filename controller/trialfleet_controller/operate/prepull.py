"""Pulls the image to every node before the first trial, with one pod per node that starts and ends."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from trialfleet_controller.backends.kube import names
from trialfleet_controller.backends.kube.api_requests import NODES, PODS, Json, pod_events
from trialfleet_controller.backends.kube.client import Client, pods
from trialfleet_controller.backends.kube.errors import ApiError, Conflict, Forbidden, NotFound, Unreachable
from trialfleet_controller.backends.kube.manifest import FOLDER, probe_pod
from trialfleet_controller.backends.kube.pods import Pod, PodPhase
from trialfleet_controller.backends.kube.signals import unschedulable
from trialfleet_controller.operate import refusals
from trialfleet_controller.operate.cluster_capacity import misfit_reason
from trialfleet_controller.operate.outside_queue import create_outside_queue, ended_by_sigterm, unqueued
from trialfleet_controller.operate.waiting import start_problem
from trialfleet_ledger.campaign_spec import KubernetesSpec
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plurals import plural

PULL = f"{names.DOMAIN}/prepull"  # label: the token of one prepull
EVERY_S = 1.0
_PLACED_S = 15.0  # a scheduler needs less to bind a pod to its only node
_BEYOND_S = 120.0  # the image pull's grace: a kubelet enforces the pod's own deadline before
PARALLEL = 20  # pulls at once: registries limit them
_COMMAND = (f"{FOLDER}/bin/python", "-I", "-S", "-c", "pass")


@dataclass(frozen=True, slots=True)
class Pulled:
    """The result of one node. `trouble` None: the image was pulled and its Python starts."""

    node: str
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """A node's pod and when it was created, on the monotonic clock."""

    node: str
    since: float


def nodes_for(client: Client, pod: Json, given: Sequence[str]) -> list[str]:
    """The given nodes, or all that could run `pod` (an attempt's). Raises `OperatorError`."""
    if given:
        return list(dict.fromkeys(given))
    try:
        listed = client.page(NODES.list()).items
    except Forbidden as error:
        raise OperatorError(
            "these credentials may not list nodes",
            where="prepull",
            hint="name the nodes: --node NAME --node NAME …; `kubectl get nodes -o name` of an account that may",
        ) from error
    except ApiError as error:
        raise refusals.error_of_check(refusals.unreachable(error, client.host)) from error
    fitting = [str(node["metadata"]["name"]) for node in listed if misfit_reason(node, pod) is None]
    if not fitting:
        raise OperatorError(
            f"an attempt fits on none of {plural(len(listed), 'node')}",
            where="prepull",
            hint="name nodes with --node; `trialfleet doctor` with the campaign file says why none fits",
        )
    return sorted(fitting)


def prepull(
    client: Client, kube: KubernetesSpec, nodes: Sequence[str], *, tell: Callable[[Pulled], None]
) -> list[Pulled]:
    """Pulls on all `nodes`, `PARALLEL` at a time. Its pods are deleted when it returns. Raises `OperatorError`."""
    token = secrets.token_hex(4)
    namespace = kube.namespaces[0]
    waiting = {_name(token, n): node for n, node in enumerate(nodes)}
    running: dict[str, Running] = {}
    done: list[Pulled] = []
    with ended_by_sigterm(), _removed(client, namespace, token):
        while waiting or running:
            for name in list(waiting)[: PARALLEL - len(running)]:
                _create(client, kube, _pod(kube, name, token, waiting[name]))
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
    return done


@contextmanager
def _removed(client: Client, namespace: str, token: str) -> Generator[None]:
    """Deletes the pods at the end of the block, also after an exception."""
    try:
        yield
    finally:
        with suppress(OperatorError):  # their own deadline ends them
            for pod in _listed(client, namespace, token):
                _delete(client, namespace, pod)


def _create(client: Client, kube: KubernetesSpec, pod: Json) -> None:
    namespace = kube.namespaces[0]
    try:
        create_outside_queue(client, namespace, pod, kube.queue)
    except Unreachable as error:
        raise refusals.error_of_check(refusals.unreachable(error, client.host)) from error
    except ApiError as error:
        raise refusals.error_of_check(refusals.refused_pod(error, namespace)) from error


def _listed(client: Client, namespace: str, token: str) -> list[Pod]:
    try:
        return list(pods(client, namespace, f"{PULL}={token}"))
    except ApiError as error:
        raise refusals.error_of_check(refusals.unreachable(error, client.host)) from error


def _name(token: str, n: int) -> str:
    return f"trialfleet-prepull-{token}-{n}"


def _pod(kube: KubernetesSpec, name: str, token: str, node: str) -> Json:
    """Has no model key and requests nothing, so it fits on a full node."""
    bare = unqueued(kube).model_copy(update={"model_secret": None})
    pod = probe_pod(
        bare, name=name, env={}, deadline_s=int(kube.graces.image_pull_s) + 60, command=_COMMAND, node=node
    )
    pod["metadata"]["labels"][PULL] = token
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    (container,) = pod["spec"]["containers"]
    container["resources"]["requests"] = {"cpu": "0", "memory": "0", "ephemeral-storage": "0"}
    return pod


def _pulled(client: Client, kube: KubernetesSpec, pod: Pod | None, one: Running) -> Pulled | None:
    """None: not known yet. `pod` None: it does not exist any more."""
    age_s = time.monotonic() - one.since
    if pod is None:
        return Pulled(one.node, "its pod was deleted")
    if pod.phase is PodPhase.SUCCEEDED:
        return Pulled(one.node)
    found = start_problem(pod, _events(client, kube.namespaces[0], pod) if age_s > 5 else (), kube)
    if unschedulable(pod) and age_s >= _PLACED_S:
        return Pulled(one.node, f"no pod can run there; check `kubectl get nodes` {found and found.message}")
    if found is not None and age_s >= found.patience_s:
        return Pulled(one.node, found.message)
    if pod.phase is PodPhase.FAILED:
        return Pulled(one.node, pod.message or pod.reason or pod.container("probe").message or "the pod failed")
    if age_s > kube.graces.image_pull_s + _BEYOND_S:
        return Pulled(one.node, "its kubelet does not report the pod: is the node there, and ready?")
    return None


def _events(client: Client, namespace: str, pod: Pod) -> Sequence[Json]:
    """Empty when the API server does not answer: events only explain."""
    try:
        return client.page(pod_events(namespace, pod.uid)).items
    except ApiError:
        return ()


def _delete(client: Client, namespace: str, pod: Pod) -> None:
    with suppress(NotFound, Conflict, ApiError):
        client.call(PODS.delete(namespace, pod.name, uid=pod.uid, grace_s=0))
