"""Creates pods and retries until the cluster accepts them. A pod's name is deterministic, so a POST is
repeatable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from trialfleet_controller.backends.attempt_times import AFTER_S
from trialfleet_controller.backends.kube import names
from trialfleet_controller.backends.kube.admission import DenialDuration
from trialfleet_controller.backends.kube.api_requests import PODS, Json
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import ApiError, Backoff, Conflict, Forbidden, Invalid, NotFound
from trialfleet_controller.backends.kube.pods import Pod, parse
from trialfleet_controller.backends.kube.tracker import Tracker
from trialfleet_controller.backends.protocol import AttemptId
from trialfleet_ledger.errors import OperatorError

REFUSED_S = 60.0  # a restarting API server may refuse for so long what it allows later


class Launcher:
    """Safe from any thread. `tell` is called once for each kind of error that makes launches wait."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        tell: Callable[[str], None],
        refused_s: float = REFUSED_S,
    ) -> None:
        self._client, self._namespace = client, namespace
        self._tell, self._refused_s = tell, refused_s
        self._lock = threading.Lock()
        self._errors: set[type[ApiError]] = set()

    def create(self, manifest: Json, *, wait: Callable[[float], bool]) -> Pod | None:
        """The pod, whether this call, an earlier try or an earlier controller created it. None: `wait(seconds)`
        returned True, so the launch is given up.

        Raises `OperatorError` when the cluster will never accept the pod.
        """
        backoff, refused_since = Backoff(), None
        while True:
            if wait(self._client.throttled_s):
                return None
            try:
                pod = parse(self._client.call(PODS.create(self._namespace, manifest)))
            except Conflict:
                existing = self._existing(manifest)
                if existing is not None:
                    return existing
                pause_s = backoff.again()
            except (Invalid, NotFound) as error:
                raise self._refusal(error) from error
            except ApiError as error:
                if isinstance(error, Forbidden) and error.denial.lasts is not DenialDuration.UNTIL_ROOM:
                    refused_since = refused_since or time.monotonic()
                    if (
                        error.denial.lasts is DenialDuration.FOREVER
                        or time.monotonic() - refused_since >= self._refused_s
                    ):
                        raise self._refusal(error) from error
                pause_s = self._failed(error, backoff)
            else:
                self._created()
                return pod
            if wait(pause_s):
                return None

    def _existing(self, manifest: Json) -> Pod | None:
        """The pod that has the name already. None: it was deleted a moment ago, or the server does not answer."""
        head = manifest["metadata"]
        try:
            pod = parse(self._client.call(PODS.get(self._namespace, head["name"])))
        except ApiError:
            return None
        ours = pod.label(names.CAMPAIGN) == head["labels"][names.CAMPAIGN]
        if ours and pod.annotation(names.SPEC) == head["annotations"][names.SPEC]:
            return pod
        other = "a pod with another spec" if ours else "a pod of another campaign"
        raise OperatorError(
            f"{other} has the name of an attempt",
            where=f"{self._namespace}/{pod.name}",
            hint=f"check that nobody needs it, then: kubectl -n {self._namespace} delete pod {pod.name}",
        )

    def _failed(self, error: ApiError, backoff: Backoff) -> float:
        with self._lock:
            new = type(error) not in self._errors
            self._errors.add(type(error))
        if new:
            self._tell(f"pods cannot be created in {self._namespace}, retrying: {error}")
        return backoff.again(at_least_s=error.retry_after_s)

    def _created(self) -> None:
        with self._lock:
            failed = bool(self._errors)
            self._errors.clear()
        if failed:
            self._tell(f"pods can be created in {self._namespace} again")

    def _refusal(self, error: ApiError) -> OperatorError:
        return refusal(error, self._namespace, "create pods")


def refusal(error: ApiError, namespace: str, doing: str) -> OperatorError:
    """The error that tells an operator what to do about an answer that retrying does not change."""
    if isinstance(error, NotFound):
        return OperatorError(
            f"the namespace does not exist: {error.message}",
            where=f"kubernetes: namespaces: {namespace}",
            hint=f"kubectl create namespace {namespace}, or kubectl apply --server-side -k k8s/base",
        )
    if isinstance(error, Forbidden):
        return OperatorError(
            f"{error.denial.by} does not allow to {doing}: {error.message}",
            where=f"namespace {namespace}",
            hint=error.denial.hint.replace("NAMESPACE", namespace),
        )
    return OperatorError(
        f"the cluster refuses to {doing}: {error}",
        where=f"namespace {namespace}",
        hint="change the field that the message names, in the section kubernetes: of the campaign file",
    )


# A launch ends within half of this time. In the other half a listing shows a pod whose create was carried out
# although its answer was lost.
WITHDRAWN_S = AFTER_S


class LaunchGate:
    """Shares `tracker` with the backend; `changed` guards both."""

    def __init__(self, changed: threading.Condition, tracker: Tracker, *, max_pending: int) -> None:
        self._changed, self._tracker, self._max_pending = changed, tracker, max_pending
        self._withdrawn: dict[AttemptId, float] = {}  # when each is forgotten, on the monotonic clock
        self._closed = False

    def enter(self, attempt: AttemptId, name: str, until: float) -> bool:
        """Wait for room, then track the pod before it exists. False: withdrawn, or no room before `until`."""
        with self._changed:
            while self._tracker.pending >= self._max_pending:
                if self.withdrawn(attempt) or time.monotonic() >= until:
                    return False
                self._changed.wait(1.0)
            if self.withdrawn(attempt):
                return False
            self._tracker.expect(attempt, name)
            return True

    def pause(self, attempt: AttemptId, seconds: float, until: float) -> bool:
        """Wait between two tries. True: give the launch up; it was withdrawn, or it is later than `until`."""
        awake = min(time.monotonic() + seconds, until)
        with self._changed:
            while not self.withdrawn(attempt) and (left := awake - time.monotonic()) > 0:
                self._changed.wait(left)
            return self.withdrawn(attempt) or time.monotonic() >= until

    def withdrawn(self, attempt: AttemptId) -> bool:
        return self._closed or attempt in self._withdrawn

    def withdraw(self, attempt: AttemptId) -> None:
        self._withdrawn[attempt] = time.monotonic() + WITHDRAWN_S
        self._changed.notify_all()

    def forget_old(self) -> None:
        """Attempts whose launch ended long ago: a campaign may withdraw any number."""
        now = time.monotonic()
        for attempt in [attempt for attempt, until in self._withdrawn.items() if until <= now]:
            del self._withdrawn[attempt]

    def close(self) -> None:
        """Withdraws every launch."""
        self._closed = True
        self._changed.notify_all()
