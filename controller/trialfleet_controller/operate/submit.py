"""Submits a frozen campaign as a Job and waits until its controller has started."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from trialfleet_controller.backends.kube.api_requests import JOBS, Json, pod_events
from trialfleet_controller.backends.kube.client import Client, pods
from trialfleet_controller.backends.kube.errors import ApiError, Conflict, NotFound
from trialfleet_controller.backends.kube.pods import Doing
from trialfleet_controller.kind_cluster.machine import KindSettings
from trialfleet_controller.operate.job import SPEC
from trialfleet_controller.operate.waiting import PodStart
from trialfleet_ledger.campaign_spec import KubernetesSpec
from trialfleet_ledger.errors import OperatorError

_LOOK_S = 1.0
KIND_IMAGE = "trialfleet-controller:dev"  # what k8s/kind/up builds
_SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD")


def environment(given: tuple[str, ...]) -> dict[str, str]:
    """Parses NAME=VALUE arguments. Raises `OperatorError`, also for a name that looks like a secret: everybody who
    may read Jobs could read it.

    >>> environment(("KUBERNETES_SERVICE_PORT=6443",))
    {'KUBERNETES_SERVICE_PORT': '6443'}
    """
    pairs = [word.partition("=") for word in given]
    for name, equals, _ in pairs:
        if not equals or not name.isidentifier():
            raise OperatorError(f"{name!r} is not NAME=VALUE", where="--env", hint="--env NAME=VALUE")
        if any(word in name.upper() for word in _SECRETS):
            raise OperatorError(
                f"{name} looks like a secret, and everybody who may read Jobs could read it",
                where="--env",
                hint="put the store's keys into a Secret and pass --store-secret NAME",
            )
    return {name: value for name, _, value in pairs}


def submit(client: Client, manifest: Json) -> Literal["submitted", "there already"]:
    """Creates the Job, or finds it. Raises `OperatorError` when the existing Job differs or has ended."""
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    where = f"job {name} in {namespace}"
    try:
        client.call(JOBS.create(namespace, manifest))
        return "submitted"
    except Conflict:
        there = client.call(JOBS.get(namespace, name))
    except NotFound as error:
        raise OperatorError(error.message, where=where, hint=f"kubectl create namespace {namespace}") from error
    except ApiError as error:
        raise OperatorError(
            error.message, where=where, hint="correct what the message names, then submit again"
        ) from error
    _refuse_other(manifest, there, where)
    return "there already"


def _refuse_other(manifest: Json, there: Json, where: str) -> None:
    """Raises `OperatorError` when the existing Job differs or has ended."""
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    again = f"kubectl -n {namespace} delete job {name}, then submit again: the campaign continues"
    annotations: Mapping[str, str] = there["metadata"].get("annotations") or {}
    if annotations.get(SPEC) != manifest["metadata"]["annotations"][SPEC]:
        raise OperatorError("the Job was submitted with other settings", where=where, hint=again)
    ended = _ended(there)
    if ended is not None:
        raise OperatorError(f"the Job has ended: {ended}", where=where, hint=again)


def _ended(job: Mapping[str, Any]) -> str | None:
    """How the Job ended. None: it has not."""
    status: Mapping[str, Any] = job.get("status") or {}
    conditions: Sequence[Mapping[str, str]] = status.get("conditions") or ()
    for condition in conditions:
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return f"{condition['type']} {condition.get('message', '')}".rstrip()
    return None


def image_hint(image: str, context: str | None) -> str:
    """How the cluster of `context` gets the controller's image that it lacks; the Job waits for it.

    >>> image_hint("trialfleet-controller:dev", "kind-other")
    'KIND_CLUSTER=other CONTROLLER=1 make kind-up: the Job waits for the image'
    """
    build = f"trialfleet image build --target controller --tag {image}"
    if context is None or not context.startswith("kind-"):
        return f"`{build}`, and push it where the nodes pull from; or submit with another --controller-image"
    settings = KindSettings(context.removeprefix("kind-"))
    if image == KIND_IMAGE:
        return f"{settings.variables}CONTROLLER=1 make kind-up: the Job waits for the image"
    return f"`{build} && kind load docker-image --name {settings.cluster} {image}`: the Job waits for the image"


def until_started(client: Client, manifest: Json, kube: KubernetesSpec, *, timeout_s: float) -> str:
    """What its pod does, when the controller runs or `timeout_s` is over. Raises `ApiError`, and `OperatorError`
    when it cannot start."""
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    image = manifest["spec"]["template"]["spec"]["containers"][0]["image"]
    start = PodStart(kube.model_copy(update={"image": image}), pull_hint=image_hint(image, kube.context))
    until = time.monotonic() + timeout_s
    while True:
        for pod in list(pods(client, namespace, f"batch.kubernetes.io/job-name={name}")):
            container = pod.container("controller")
            if container.doing is Doing.RUNNING or pod.terminal:
                return f"pod {pod.name} is {pod.phase.value.lower()} on {pod.node}"
            events = client.page(pod_events(namespace, pod.uid)).items
            start.check(pod, events, where=f"pod {pod.name} in {namespace}")
        if time.monotonic() >= until:
            why = "" if start.last is None else f": {start.last.message}"
            look = f"kubectl -n {namespace} describe job {name}"
            return f"its pod has not started within {timeout_s:.0f} s{why}; {look}"
        time.sleep(_LOOK_S)
