"""Creates one pod, however often it takes: a deterministic name makes every POST repeatable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from trialfleet_controller.kube import names
from trialfleet_controller.kube.backoff import Backoff
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, Throttled
from trialfleet_controller.kube.pods import Pod, parse
from trialfleet_controller.kube.rate import TokenBucket
from trialfleet_runner.errors import OperatorError

Json = dict[str, Any]

REFUSED_S = 60.0  # a restarting API server refuses for a while what it allows later


class Launcher:
    """Safe from any thread. `tell` hears once of each trouble that makes launches wait."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        bucket: TokenBucket,
        *,
        tell: Callable[[str], None],
        refused_s: float = REFUSED_S,
    ) -> None:
        self._client, self._namespace, self._bucket = client, namespace, bucket
        self._tell, self._refused_s = tell, refused_s
        self._lock = threading.Lock()
        self._troubles: set[type[ApiError]] = set()

    def create(self, manifest: Json, *, wait: Callable[[float], bool]) -> Pod | None:
        """The pod: created now, or by an earlier try or controller. None: `wait(seconds)` said to leave it.

        Raises `OperatorError` when the cluster will never take it.
        """
        backoff, refused_since = Backoff(), None
        while True:
            if wait(self._bucket.reserve(now=time.monotonic())):
                return None
            try:
                pod = parse(self._client.create_pod(self._namespace, manifest))
            except Conflict:
                existing = self._existing(manifest)
                if existing is not None:
                    return existing
                pause_s = backoff.again()
            except Throttled as error:
                self._bucket.close_for(error.retry_after_s, now=time.monotonic())
                pause_s = self._trouble(error, backoff, at_least_s=error.retry_after_s)
            except (Invalid, NotFound) as error:
                raise self._refusal(error) from error
            except ApiError as error:
                if isinstance(error, Forbidden) and not error.quota:
                    refused_since = refused_since or time.monotonic()
                    if error.final or time.monotonic() - refused_since >= self._refused_s:
                        raise self._refusal(error) from error
                pause_s = self._trouble(error, backoff)
            else:
                self._created()
                return pod
            if wait(pause_s):
                return None

    def _existing(self, manifest: Json) -> Pod | None:
        """The pod that has the name already; None when it has just gone, or the server does not say."""
        head = manifest["metadata"]
        try:
            pod = parse(self._client.get_pod(self._namespace, head["name"]))
        except ApiError:
            return None
        ours = pod.label(names.CAMPAIGN) == head["labels"][names.CAMPAIGN]
        if ours and pod.annotation(names.SPEC) == head["annotations"][names.SPEC]:
            return pod
        whose = "with another spec" if ours else "of another campaign"
        raise OperatorError(
            f"a pod {whose} has the name of an attempt",
            where=f"{self._namespace}/{pod.name}",
            hint=f"look at it, then delete it: kubectl -n {self._namespace} delete pod {pod.name}",
        )

    def _trouble(self, error: ApiError, backoff: Backoff, *, at_least_s: float = 0.0) -> float:
        with self._lock:
            new = type(error) not in self._troubles
            self._troubles.add(type(error))
        if new:
            self._tell(f"pods cannot be created in {self._namespace}, trying again: {error}")
        return backoff.again(at_least_s=at_least_s)

    def _created(self) -> None:
        with self._lock:
            over = bool(self._troubles)
            self._troubles.clear()
        if over:
            self._tell(f"pods can be created in {self._namespace} again")

    def _refusal(self, error: ApiError) -> OperatorError:
        return refusal(error, self._namespace, "create pods")


def refusal(error: ApiError, namespace: str, doing: str) -> OperatorError:
    """What to do about an answer that no patience mends."""
    if isinstance(error, NotFound):
        return OperatorError(
            f"the namespace is not there: {error.message}",
            where=f"kubernetes: namespaces: {namespace}",
            hint=f"kubectl create namespace {namespace}, or kubectl apply --server-side -k k8s/base",
        )
    if isinstance(error, Forbidden):
        return OperatorError(
            f"not allowed to {doing}: {error.message}",
            where=f"namespace {namespace}",
            hint=f"k8s/base has the Role that a controller needs; kubectl auth can-i --list -n {namespace}",
        )
    return OperatorError(
        f"the cluster refuses to {doing}: {error}",
        where=f"namespace {namespace}",
        hint="the message says which field or which admission policy; the campaign file's kubernetes: sets them",
    )
