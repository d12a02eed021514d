"""A single pod that must start: what keeps it, in words that an operator can act on. Pure, over its record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trialfleet_controller.kube.pods import Container, Pod
from trialfleet_runner.campaign import KubernetesSpec


class Trouble(NamedTuple):
    """`patience_s`: how long it may last before it counts; 0: it does not pass by itself."""

    words: str
    mend: str
    patience_s: float = 0.0


_BUILD = "build it with `trialfleet image build`, or mend kubernetes.image"
_PULL = (
    "mend kubernetes.image; a private registry needs kubernetes.image_pull_secrets, one without a registry is "
    "loaded into every node"
)
_PULLING = {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"}
_STARTING = {"CreateContainerError", "RunContainerError"}
_SECRET = re.compile(r'secret "([^"]+)" not found')


def trouble(pod: Pod, events: Iterable[Mapping[str, Any]], kube: KubernetesSpec) -> Trouble | None:
    """What keeps `pod` from starting, as far as its status and events say; None: nothing known, or it runs."""
    for container in pod.containers:
        found = _container(container, kube)
        if found is not None:
            return found
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and not scheduled.true and scheduled.reason == "Unschedulable":
        return Trouble(
            f"no node takes the pod: {scheduled.message}",
            "`trialfleet doctor` with the campaign file says why; add a node, or mend kubernetes.node_selector",
            kube.graces.unschedulable_s,
        )
    return _mount(events, kube)


def _container(container: Container, kube: KubernetesSpec) -> Trouble | None:
    reason, message = container.reason, container.message
    if reason in _PULLING:
        passing = "QPS" in message or reason == "ErrImagePull"
        return Trouble(
            f"image {kube.image} cannot be had: {reason}: {message}".rstrip(": "),
            _PULL,
            kube.graces.image_pull_s if passing else 0.0,
        )
    if reason in _STARTING or (reason == "StartError" and "exec:" in message):
        return Trouble(f"image {kube.image} has no runner: {message}", _BUILD)
    if reason == "CreateContainerConfigError":
        return Trouble(f"the container cannot be made: {message}", "mend what the message names", 10.0)
    return None


def secret_made(name: str) -> str:
    """How an operator makes the Secret of the model's key, which never stands in a command line."""
    return f"kubectl create secret generic {name} --from-env-file=<(env | grep ^ANTHROPIC_API_KEY=)"


def _mount(events: Iterable[Mapping[str, Any]], kube: KubernetesSpec) -> Trouble | None:
    """A Secret that is not there is seen nowhere but in the pod's events."""
    told = [str(event.get("message", "")) for event in events if event.get("reason") == "FailedMount"]
    for message in told:
        secret = _SECRET.search(message)
        if secret:
            return Trouble(
                f"there is no Secret {secret[1]}",
                f"{secret_made(secret[1])} (or mend kubernetes.model_secret)",
            )
    if told:
        return Trouble(f"a volume cannot be mounted: {told[-1]}", "mend it", kube.graces.config_error_s)
    return None
