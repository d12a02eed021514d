"""Deletes the pods of ended attempts in the background: at once, or when `FinishedPods` says that they are due."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ParamSpec

from trialfleet_controller.backends.kube.api_requests import PODS
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import ApiError, Conflict, Forbidden, NotFound
from trialfleet_controller.backends.protocol import AttemptId

P = ParamSpec("P")


class BackgroundTasks:
    """`failure`: the exception that a task raised. It is a bug: `poll` raises it again."""

    def __init__(self, threads: int) -> None:
        self.failure: BaseException | None = None
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="pods")

    def do(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        def run() -> None:
            try:
                work(*args, **kwargs)
            except BaseException as error:
                self.failure = error

        self._pool.submit(run)

    def close(self) -> None:
        """Returns when all tasks are done; the time-outs of their requests end them."""
        self._pool.shutdown(wait=True)


SETTLE_S = 600.0  # at most: by then the ledger has the attempt's end, or no controller will write it


@dataclass(frozen=True, slots=True)
class FinishedPod:
    """The pod of an attempt that has ended."""

    attempt: AttemptId
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class _Waiting:
    pod: FinishedPod
    until: float
    failed: bool = False
    settled: bool = False


class FinishedPods:
    """A pod may hold the only record of how its attempt ended, so it stays until the ledger has that end. The
    newest `keep_failed` failed pods stay even then, for inspection."""

    def __init__(self, *, keep_failed: int) -> None:
        self._keep_failed = keep_failed
        self._waiting: dict[str, _Waiting] = {}  # by uid
        self._failed: deque[FinishedPod] = deque()

    def add(self, pod: FinishedPod, *, now: float, failed: bool) -> None:
        """A pod that is added again does not wait longer."""
        if pod.uid not in self._waiting and pod not in self._failed:
            self._waiting[pod.uid] = _Waiting(pod, now + SETTLE_S, failed)

    def again(self, pod: FinishedPod, at: float) -> None:
        """A pod that could not be deleted is due again at `at`."""
        self._waiting[pod.uid] = _Waiting(pod, at, settled=True)

    def settled(self, attempt: AttemptId) -> None:
        """The ledger has the attempt's end: its pod is due now."""
        for uid, waiting in self._waiting.items():
            if waiting.pod.attempt == attempt:
                self._waiting[uid] = replace(waiting, until=0.0, settled=True)

    def due(self, now: float) -> list[FinishedPod]:
        """The pods to delete now; each is returned once."""
        return self._take(uid for uid, waiting in self._waiting.items() if waiting.until <= now)

    def rest(self) -> list[FinishedPod]:
        """The pods to delete when the controller ends. A pod that is not settled stays until a controller adopts
        it."""
        return self._take(uid for uid, waiting in self._waiting.items() if waiting.settled)

    def _take(self, uids: Iterable[str]) -> list[FinishedPod]:
        taken = [self._waiting.pop(uid) for uid in list(uids)]
        self._failed.extend(waiting.pod for waiting in taken if waiting.failed)
        older = [self._failed.popleft() for _ in range(len(self._failed) - self._keep_failed)]
        return [*(waiting.pod for waiting in taken if not waiting.failed), *older]


AGAIN_S = 5.0  # before a delete that failed is tried again


class PodCleaner:
    """Safe from any thread."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        background: BackgroundTasks,
        *,
        keep_failed: int,
        tell: Callable[[str], None],
    ) -> None:
        self._client, self._namespace, self._background, self._tell = client, namespace, background, tell
        self._finished_pods = FinishedPods(keep_failed=keep_failed)
        self._lock = threading.Lock()

    def over(self, pod: FinishedPod, *, failed: bool) -> None:
        """See `FinishedPods.add`."""
        with self._lock:
            self._finished_pods.add(pod, now=time.monotonic(), failed=failed)

    def settled(self, attempt: AttemptId) -> None:
        with self._lock:
            self._finished_pods.settled(attempt)

    def sweep(self, *, last: bool = False) -> None:
        """Begin to delete the pods that are due. `last`: see `FinishedPods.rest`."""
        with self._lock:
            due = self._finished_pods.rest() if last else self._finished_pods.due(time.monotonic())
        for pod in due:
            self.later(pod)

    def later(self, pod: FinishedPod, *, grace_s: int | None = None) -> None:
        self._background.do(self.delete, pod, grace_s=grace_s)

    def delete(self, pod: FinishedPod, *, grace_s: int | None = None) -> None:
        """In this thread. A delete that fails is repeated later."""
        try:
            self._client.call(PODS.delete(self._namespace, pod.name, uid=pod.uid, grace_s=grace_s))
        except (NotFound, Conflict):
            return  # it is gone, or another pod has its name
        except ApiError as error:
            if isinstance(error, Forbidden):
                self._tell(f"pod {pod.name} cannot be deleted: {error}")
            with self._lock:
                self._finished_pods.again(pod, time.monotonic() + AGAIN_S)
