"""One thread that keeps a `PodCache` equal to the cluster: LIST in pages, WATCH with bookmarks, LIST
periodically."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trialfleet_controller.backends.kube.api_requests import PODS
from trialfleet_controller.backends.kube.client import Client, OpenWatch
from trialfleet_controller.backends.kube.errors import (
    ApiError,
    Backoff,
    Expired,
    Forbidden,
    NotFound,
    Unreachable,
    error_of_event,
)
from trialfleet_controller.backends.kube.pod_cache import PodCache, PodChange
from trialfleet_controller.backends.kube.pods import Pod, json_object, parse


@dataclass(frozen=True, slots=True)
class WatchIntervals:
    """Seconds. A watch ends by the server's clock after `watch_s`; a new one starts `pause_s` later."""

    watch_s: tuple[float, float] = (240.0, 300.0)
    pause_s: tuple[float, float] = (0.05, 1.0)
    reconcile_s: tuple[float, float] = (300.0, 600.0)
    refused_s: float = 60.0  # a restarting API server may refuse for so long what it allows later
    too_short_s: float = 1.0  # a watch that ends sooner and without an event counts as a failure


class Reflector:
    """Follows the pods of one namespace that match `selector`. `on_changes` is called only from the reflector's
    thread.

    `tell` is called when an outage begins and when it ends. An error that retrying does not change is kept in
    `failure`, for the thread that polls.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        selector: str,
        *,
        on_changes: Callable[[list[PodChange]], None],
        tell: Callable[[str], None] = lambda _: None,
        intervals: WatchIntervals | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client, self._namespace, self._selector = client, namespace, selector
        self._on_changes, self._tell = on_changes, tell
        self._intervals = intervals or WatchIntervals()
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._backoff = Backoff(self._rng)
        self._cache = PodCache()
        self._stopping = threading.Event()
        self._synced = threading.Event()
        self._lock = threading.Lock()  # of `_watch`, which `stop` shuts from another thread
        self._watch: OpenWatch | None = None
        self._version: str | None = None  # None: list before the next watch
        self._list_again_at = 0.0
        self._failing = False
        self._refused_since: float | None = None
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"reflector-{namespace}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait_synced(self, timeout_s: float) -> bool:
        """Whether the first listing has arrived."""
        return self._synced.wait(timeout_s)

    def stop(self) -> None:
        """Ends the thread. Returns when it has ended, or after five seconds."""
        self._stopping.set()
        with self._lock:
            if self._watch is not None:
                self._watch.shut()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._turn()
        except BaseException as error:  # `poll` raises it in its own thread
            self.failure = error
            self._synced.set()

    def _turn(self) -> None:
        try:
            if self._version is None or time.monotonic() >= self._list_again_at:
                self._list()
            self._watch_once()
        except Expired:
            self._version = None
            self._pause(self._backoff.again())
        except ApiError as error:
            self._pause(self._failed(error))

    # --- list ---------------------------------------------------------------------------------------

    def _list(self) -> None:
        pods: list[Pod] = []
        version: str | None = None
        for page in self._client.pages(PODS.list(self._namespace, labels=self._selector)):
            pods += [_pod(item) for item in page.items]
            version = page.resource_version
            if self._stopping.is_set():
                return
        self._publish(self._cache.snapshot(pods))
        self._version = version
        self._list_again_at = time.monotonic() + self._rng.uniform(*self._intervals.reconcile_s)
        self._answered()
        self._synced.set()

    # --- watch --------------------------------------------------------------------------------------

    def _watch_once(self) -> None:
        """One watch until the server ends it, then the pause before the next."""
        if self._version is None or self._stopping.is_set():
            return
        since, heard = time.monotonic(), False
        timeout_s = int(self._rng.uniform(*self._intervals.watch_s))
        request = PODS.watch(
            self._namespace, self._selector, resource_version=self._version, timeout_s=max(1, timeout_s)
        )
        with self._client.watch(request) as watch:
            self._open(watch)
            try:
                for event in _events(watch):
                    self._apply(event)
                    heard = True
            finally:
                self._open(None)
        if heard or time.monotonic() - since >= self._intervals.too_short_s:
            self._backoff.worked()
            self._pause(self._rng.uniform(*self._intervals.pause_s))
        else:
            self._pause(self._backoff.again())

    def _open(self, watch: OpenWatch | None) -> None:
        with self._lock:
            self._watch = watch
            if watch is not None and self._stopping.is_set():
                watch.shut()

    def _apply(self, event: dict[str, Any]) -> None:
        kind, raw = event.get("type"), json_object(event.get("object"))
        if kind == "ERROR":
            raise error_of_event(raw)
        if kind == "BOOKMARK":
            self._version = _version(raw) or self._version
        else:
            pod = _pod(raw)
            self._publish(self._cache.deleted(pod) if kind == "DELETED" else self._cache.seen(pod))
            # after the change was published: a crash in between must not skip it
            self._version = pod.resource_version or self._version
        self._answered()
        self._backoff.worked()

    def _publish(self, changes: list[PodChange]) -> None:
        if changes:
            self._on_changes(changes)

    # --- errors ------------------------------------------------------------------------------------

    def _answered(self) -> None:
        if self._failing:
            self._tell("the API server answers again")
        self._failing, self._refused_since = False, None

    def _failed(self, error: ApiError) -> float:
        """Seconds to wait. Raises a refusal that has lasted too long."""
        if not self._failing and not self._stopping.is_set():
            self._failing = True
            self._tell(f"pods cannot be listed or watched, retrying: {error}")
        self._check_refusal(error)
        return self._backoff.again(at_least_s=error.retry_after_s)

    def _check_refusal(self, error: ApiError) -> None:
        if not isinstance(error, Forbidden | NotFound):
            self._refused_since = None
            return
        now = time.monotonic()
        self._refused_since = self._refused_since or now
        if now - self._refused_since >= self._intervals.refused_s:
            raise error

    def _pause(self, seconds: float) -> None:
        self._stopping.wait(seconds)


def _events(watch: OpenWatch) -> Iterator[dict[str, Any]]:
    """Events of a watch. Raises `Unreachable` for a line that was cut when the connection broke."""
    for line in watch:
        try:
            event = json.loads(line)
        except ValueError as error:
            raise Unreachable("an event is not JSON") from error
        yield json_object(event)


def _pod(raw: dict[str, Any]) -> Pod:
    try:
        return parse(raw)
    except KeyError as error:
        raise Unreachable(f"a pod without {error}") from error


def _version(raw: dict[str, Any]) -> str:
    return str(json_object(raw.get("metadata")).get("resourceVersion") or "")
