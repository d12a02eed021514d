"""Handing a frozen campaign to a Job: created once, found again, and watched until its controller has started."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.errors import ApiError, Conflict, NotFound
from trialfleet_controller.kube.pods import Doing
from trialfleet_controller.operate.job import SPEC
from trialfleet_controller.operate.listing import pods
from trialfleet_controller.operate.waiting import trouble
from trialfleet_runner.campaign import KubernetesSpec
from trialfleet_runner.errors import OperatorError

Json = dict[str, Any]

_LOOK_S = 1.0
_SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD")


def environment(given: tuple[str, ...]) -> dict[str, str]:
    """Of NAME=VALUE words. Raises `OperatorError`; also for what looks like a secret: everybody who may read Jobs
    would read it.

    >>> environment(("KUBERNETES_SERVICE_PORT=6443",))
    {'KUBERNETES_SERVICE_PORT': '6443'}
    """
    pairs = [word.partition("=") for word in given]
    for name, equals, _ in pairs:
        if not equals or not name.isidentifier():
            raise OperatorError(f"{name!r} is not NAME=VALUE", where="--env", hint="--env NAME=VALUE")
        if any(word in name.upper() for word in _SECRETS):
            raise OperatorError(
                f"{name} looks like a secret, and a Job's environment is none",
                where="--env",
                hint="put it into a Secret: --store-secret NAME for the store's keys",
            )
    return {name: value for name, _, value in pairs}


def submit(client: Client, manifest: Json) -> Literal["submitted", "there already"]:
    """Creates the Job; submitting again finds it. Raises `OperatorError` when it is another one, or has ended."""
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    where = f"job {name} in {namespace}"
    again = f"kubectl -n {namespace} delete job {name}, then submit again: the campaign goes on where it is"
    try:
        client.create_job(namespace, manifest)
        return "submitted"
    except Conflict:
        there = client.get_job(namespace, name)
    except NotFound as error:
        raise OperatorError(error.message, where=where, hint=f"kubectl create namespace {namespace}") from error
    except ApiError as error:
        raise OperatorError(error.message, where=where, hint="mend what the message names") from error
    annotations: Mapping[str, str] = there["metadata"].get("annotations") or {}
    if annotations.get(SPEC) != manifest["metadata"]["annotations"][SPEC]:
        raise OperatorError("was submitted with other settings", where=where, hint=again)
    ended = _ended(there)
    if ended is not None:
        raise OperatorError(f"has ended: {ended}", where=where, hint=again)
    return "there already"


def _ended(job: Mapping[str, Any]) -> str | None:
    """How the Job ended, if it did."""
    status: Mapping[str, Any] = job.get("status") or {}
    conditions: Sequence[Mapping[str, str]] = status.get("conditions") or ()
    for condition in conditions:
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return f"{condition['type']} {condition.get('message', '')}".rstrip()
    return None


def until_started(client: Client, manifest: Json, kube: KubernetesSpec, *, timeout_s: float) -> str:
    """What its pod does, once the controller runs or cannot, or time is over. Raises `ApiError`."""
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    image = manifest["spec"]["template"]["spec"]["containers"][0]["image"]
    judged = kube.model_copy(update={"image": image})
    since: dict[str, float] = {}
    until = time.monotonic() + timeout_s
    while True:
        for pod in list(pods(client, namespace, f"batch.kubernetes.io/job-name={name}")):
            container = pod.container("controller")
            if container.doing is Doing.RUNNING or pod.terminal:
                return f"pod {pod.name} is {pod.phase.value.lower()} on {pod.node}"
            kept = trouble(pod, client.events(namespace, uid=pod.uid), judged)
            lasted_s = 0.0 if kept is None else time.monotonic() - since.setdefault(kept.words, time.monotonic())
            if kept is not None and lasted_s >= kept.patience_s:
                raise OperatorError(kept.words, where=f"pod {pod.name} in {namespace}", hint=kept.mend)
        if time.monotonic() >= until:
            return f"its pod has not started within {timeout_s:.0f} s: kubectl -n {namespace} describe job {name}"
        time.sleep(_LOOK_S)
