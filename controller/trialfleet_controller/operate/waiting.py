"""Why a pod does not start, in messages that an operator can act on."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from trialfleet_controller.backends.kube.pods import Container, Pod
from trialfleet_controller.backends.kube.signals import gated
from trialfleet_ledger.campaign_spec import KubernetesSpec
from trialfleet_ledger.errors import OperatorError


class PodStartProblem(NamedTuple):
    """`patience_s`: how long it may last before it is an error; 0: it does not pass by itself."""

    message: str
    hint: str
    patience_s: float = 0.0


_BUILD = "build it with `trialfleet image build`, or correct kubernetes.image"
_PULL = (
    "correct kubernetes.image; a private registry needs kubernetes.image_pull_secrets; an image without a "
    "registry must be loaded into every node"
)
_PULLING = {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"}
_STARTING = {"CreateContainerError", "RunContainerError"}
_SECRET = re.compile(r'secret "([^"]+)" not found')


def start_problem(
    pod: Pod, events: Iterable[Mapping[str, Any]], kube: KubernetesSpec, *, pull_hint: str = _PULL
) -> PodStartProblem | None:
    """What keeps `pod` from starting, as its status and events say. None: nothing known, or it runs. `pull_hint`:
    what to do if an image cannot be pulled."""
    for container in pod.containers:
        found = _container(container, kube, pull_hint)
        if found is not None:
            return found
    if gated(pod):
        return _queued(kube)
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and not scheduled.true and scheduled.reason == "Unschedulable":
        return PodStartProblem(
            f"no node fits the pod: {scheduled.message}",
            "add a node or correct kubernetes.node_selector; `trialfleet doctor` with the campaign file says why",
            kube.graces.unschedulable_s,
        )
    return _mount(events, kube)


def _queued(kube: KubernetesSpec) -> PodStartProblem:
    queue = "a queue" if kube.queue is None else f"queue {kube.queue}"
    return PodStartProblem(
        f"a scheduling gate holds the pod: it waits in {queue}",
        "check with `kubectl get localqueues,workloads` that the queue exists and has quota left for cpu, memory "
        "and ephemeral-storage; correct kubernetes.labels, or wait and try again",
        kube.graces.unschedulable_s,
    )


def _container(container: Container, kube: KubernetesSpec, pull_hint: str) -> PodStartProblem | None:
    reason, message = container.reason, container.message
    if reason in _PULLING:
        passing = "QPS" in message or reason == "ErrImagePull"
        return PodStartProblem(
            f"image {kube.image} cannot be pulled: {reason}: {message}".rstrip(": "),
            pull_hint,
            kube.graces.image_pull_s if passing else 0.0,
        )
    if reason in _STARTING or (reason == "StartError" and "exec:" in message):
        return PodStartProblem(f"image {kube.image} has no runner: {message}", _BUILD)
    if reason == "CreateContainerConfigError":
        return PodStartProblem(
            f"the container cannot be created: {message}", "correct what the message names", 10.0
        )
    return None


class PodStart:
    """Follows a pod that is to start. `tell` gets each of its problems once. `last`: its problem when it was last
    checked; None: it had none."""

    def __init__(
        self, kube: KubernetesSpec, *, pull_hint: str = _PULL, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._kube, self._pull_hint, self._tell = kube, pull_hint, tell
        self._since: dict[str, float] = {}
        self.last: PodStartProblem | None = None

    def check(self, pod: Pod, events: Iterable[Mapping[str, Any]], *, where: str) -> None:
        """Raises `OperatorError` when a problem has lasted for too long."""
        problem = self.last = start_problem(pod, events, self._kube, pull_hint=self._pull_hint)
        now = time.monotonic()
        if problem is None:
            return
        if problem.message not in self._since:
            self._tell(problem.message)
        if now - self._since.setdefault(problem.message, now) >= problem.patience_s:
            raise OperatorError(problem.message, where=where, hint=problem.hint)


def secret_made(name: str) -> str:
    """The command that creates the Secret of the model's key, without the key in the command line."""
    return f"kubectl create secret generic {name} --from-env-file=<(env | grep ^ANTHROPIC_API_KEY=)"


def _mount(events: Iterable[Mapping[str, Any]], kube: KubernetesSpec) -> PodStartProblem | None:
    """Only the pod's events say that a Secret does not exist."""
    messages = [str(event.get("message", "")) for event in events if event.get("reason") == "FailedMount"]
    for message in messages:
        secret = _SECRET.search(message)
        if secret:
            return PodStartProblem(
                f"there is no Secret {secret[1]}",
                f"{secret_made(secret[1])} (or correct kubernetes.model_secret)",
            )
    if messages:
        return PodStartProblem(
            f"a volume cannot be mounted: {messages[-1]}",
            "correct what the message names",
            kube.graces.config_error_s,
        )
    return None
