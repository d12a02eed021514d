"""One thread that keeps a `Cache` true to a cluster: LIST in pages, WATCH with bookmarks, LIST now and then."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trialfleet_controller.kube.backoff import Backoff
from trialfleet_controller.kube.cache import Cache, Change
from trialfleet_controller.kube.client import Client, Watch
from trialfleet_controller.kube.errors import (
    ApiError,
    Expired,
    Forbidden,
    NotFound,
    Throttled,
    Unreachable,
    error_of_event,
)
from trialfleet_controller.kube.pods import Pod, json_object, parse


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. A watch ends by the server's clock after `watch_s`; a new one starts `pause_s` later."""

    watch_s: tuple[float, float] = (240.0, 300.0)
    pause_s: tuple[float, float] = (0.05, 1.0)
    reconcile_s: tuple[float, float] = (300.0, 600.0)
    refused_s: float = 60.0  # a restarting API server refuses for a while what it allows later
    too_short_s: float = 1.0  # a watch that ends sooner, and said nothing, counts as a failure


class Reflector:
    """Pods of one namespace that match `selector`. `on_changes` is called from the reflector's thread alone.

    `tell` hears of an outage once, and of its end. What no patience mends is kept in `failure` for who polls.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        selector: str,
        *,
        on_changes: Callable[[list[Change]], None],
        tell: Callable[[str], None] = lambda _: None,
        pace: Pace | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client, self._namespace, self._selector = client, namespace, selector
        self._on_changes, self._tell = on_changes, tell
        self._pace = pace or Pace()
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._backoff = Backoff(self._rng)
        self._cache = Cache()
        self._stopping = threading.Event()
        self._synced = threading.Event()
        self._lock = threading.Lock()  # of `_watch`, which `stop` shuts from another thread
        self._watch: Watch | None = None
        self._version: str | None = None  # None: list before the next watch
        self._list_again_at = 0.0
        self._failing = False
        self._refused_since: float | None = None
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"reflector-{namespace}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait_synced(self, timeout_s: float) -> bool:
        """Whether the first listing is in."""
        return self._synced.wait(timeout_s)

    def stop(self) -> None:
        """Ends the thread; returns when it has ended, or cannot be woken within seconds."""
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
        except BaseException as error:  # not lost with the thread: whoever polls raises it
            self.failure = error
            self._synced.set()

    def _turn(self) -> None:
        try:
            if self._version is None or time.monotonic() >= self._list_again_at:
                self._list()
            self._follow()
        except Expired:
            self._version = None
            self._pause(self._backoff.again())
        except ApiError as error:
            self._pause(self._failed(error))

    # --- list ---------------------------------------------------------------------------------------

    def _list(self) -> None:
        pods: list[Pod] = []
        more: str | None = None
        while not self._stopping.is_set():
            page = self._client.list_pods(self._namespace, self._selector, more=more)
            pods += [_pod(item) for item in page.items]
            more = page.more
            if more is None:
                self._publish(self._cache.snapshot(pods))
                self._version = page.resource_version
                self._list_again_at = time.monotonic() + self._rng.uniform(*self._pace.reconcile_s)
                self._answered()
                self._synced.set()
                return

    # --- watch --------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """One watch, until the server ends it, and the pause before the next."""
        if self._version is None or self._stopping.is_set():
            return
        since, heard = time.monotonic(), False
        timeout_s = int(self._rng.uniform(*self._pace.watch_s))
        opened = self._client.watch_pods(
            self._namespace, self._selector, resource_version=self._version, timeout_s=max(1, timeout_s)
        )
        with opened as watch:
            self._open(watch)
            try:
                for event in _events(watch):
                    self._apply(event)
                    heard = True
            finally:
                self._open(None)
        if heard or time.monotonic() - since >= self._pace.too_short_s:
            self._backoff.worked()
            self._pause(self._rng.uniform(*self._pace.pause_s))
        else:
            self._pause(self._backoff.again())

    def _open(self, watch: Watch | None) -> None:
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
            self._version = pod.resource_version or self._version  # only now: what was seen is handed on
        self._answered()
        self._backoff.worked()

    def _publish(self, changes: list[Change]) -> None:
        if changes:
            self._on_changes(changes)

    # --- trouble ------------------------------------------------------------------------------------

    def _answered(self) -> None:
        if self._failing:
            self._tell("the API server answers again")
        self._failing, self._refused_since = False, None

    def _failed(self, error: ApiError) -> float:
        """Seconds to wait. Raises what waiting has not mended."""
        if not self._failing and not self._stopping.is_set():
            self._failing = True
            self._tell(f"pods cannot be followed, trying again: {error}")
        self._check_refusal(error)
        return self._backoff.again(at_least_s=error.retry_after_s if isinstance(error, Throttled) else 0.0)

    def _check_refusal(self, error: ApiError) -> None:
        if not isinstance(error, Forbidden | NotFound):
            self._refused_since = None
            return
        now = time.monotonic()
        self._refused_since = self._refused_since or now
        if now - self._refused_since >= self._pace.refused_s:
            raise error

    def _pause(self, seconds: float) -> None:
        self._stopping.wait(seconds)


def _events(watch: Watch) -> Iterator[dict[str, Any]]:
    """Events of a watch. A line that was cut when the connection broke is `Unreachable`, as the break itself."""
    for line in watch:
        try:
            event = json.loads(line)
        except ValueError as error:
            raise Unreachable("an event that is no JSON") from error
        yield json_object(event)


def _pod(raw: dict[str, Any]) -> Pod:
    try:
        return parse(raw)
    except KeyError as error:
        raise Unreachable(f"a pod without {error}") from error


def _version(raw: dict[str, Any]) -> str:
    return str(json_object(raw.get("metadata")).get("resourceVersion") or "")
