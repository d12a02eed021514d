"""Attempts as pods: one bare pod each, in one namespace, followed by one reflector."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable

from trialfleet_controller.backend import AttemptId, Finished, Order, TooLate
from trialfleet_controller.classify import Departure
from trialfleet_controller.kube import diagnosis, manifest, names, signals
from trialfleet_controller.kube.cache import Change, Kind
from trialfleet_controller.kube.chores import Chores
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.errors import ApiError, NotFound
from trialfleet_controller.kube.launcher import Launcher, refusal
from trialfleet_controller.kube.leftovers import Left
from trialfleet_controller.kube.owner import ensure_owner
from trialfleet_controller.kube.pods import Doing, Pod, parse
from trialfleet_controller.kube.rate import TokenBucket
from trialfleet_controller.kube.reflector import Pace, Reflector
from trialfleet_controller.kube.signals import Finding, Stuck
from trialfleet_controller.kube.sweeper import Sweeper
from trialfleet_controller.kube.tracker import Found, Look, Tracked, Tracker
from trialfleet_controller.machine import Liveness
from trialfleet_controller.orders import AFTER_S
from trialfleet_runner.campaign import Plan
from trialfleet_runner.contract import Start

LIVE_PODS = 2500  # in one namespace; above it, a campaign has another
LAUNCHERS = 16
LAUNCH_S = AFTER_S / 2  # of the time that signatures hold beyond an attempt's own and its pending
FIRST_LISTING_S = 10.0  # what is adopted later than at the start has been watched for a while
_CHORES = 4  # threads for deletes and diagnosis
_UNLAUNCHED = Departure(code=143, words="its pod was not created")


class KubernetesBackend:
    """Pods outlive their controller: `close` leaves them, and the next controller adopts them.

    `keep_failed`: how many failed pods stay, the newest. `tell` is called from several threads.
    """

    def __init__(
        self,
        plan: Plan,
        client: Client,
        *,
        namespace: str,
        owner: manifest.Owner,
        shard: int = 0,
        keep_failed: int = 0,
        commands: manifest.Commands = manifest.COMMANDS,
        tell: Callable[[str], None] = lambda _: None,
        pace: Pace | None = None,
    ) -> None:
        kube = manifest.planned(plan)
        self._plan, self._kube, self._client, self._namespace = plan, kube, client, namespace
        self._owner, self._shard, self._commands = owner, shard, commands
        self._tracker = Tracker(graces=kube.graces, image_id=kube.image_id)
        self._ready: list[Finished] = []
        self._stopped: set[AttemptId] = set()  # asked to stop before their pods were there
        self._over: dict[AttemptId, str] = {}  # uids of pods that were found over, or given up with their nodes
        self._changed = threading.Condition()  # guards all of the above
        self._closing = threading.Event()
        self._chores = Chores(_CHORES)
        self._sweeper = Sweeper(client, namespace, self._chores, keep_failed=keep_failed, tell=tell)
        bucket = TokenBucket(rate=kube.creates_per_s, burst=kube.creates_burst)
        self._launcher = Launcher(client, namespace, bucket, tell=tell)
        self._reflector = Reflector(
            client,
            namespace,
            names.selector(plan.uid),
            on_changes=self._on_changes,
            tell=tell,
            pace=pace,
        )

    @classmethod
    def open(
        cls,
        plan: Plan,
        *,
        store_url: str,
        client: Client | None = None,
        namespace: str | None = None,
        shard: int = 0,
        keep_failed: int = 0,
        commands: manifest.Commands = manifest.COMMANDS,
        begun: Callable[[], bool] = lambda: False,
        tell: Callable[[str], None] = lambda _: None,
        pace: Pace | None = None,
    ) -> KubernetesBackend:
        """Connected to the plan's cluster and following its pods; the ConfigMap that owns them is there. `begun`:
        see `ensure_owner`. The first listing is in, unless it takes long.

        Raises `OperatorError`: no cluster, not the one where pods run, no such namespace, not allowed.
        """
        kube = manifest.planned(plan)
        namespace = namespace or kube.namespaces[shard]
        reached = client or Client.connect(kube.context, threads=LAUNCHERS + _CHORES)
        owner = ensure_owner(reached, namespace, plan, store_url, begun=begun, tell=tell)
        backend = cls(
            plan,
            reached,
            namespace=namespace,
            owner=owner,
            shard=shard,
            keep_failed=keep_failed,
            commands=commands,
            tell=tell,
            pace=pace,
        )
        backend._reflector.start()
        backend._reflector.wait_synced(FIRST_LISTING_S)
        return backend

    # --- the seam -----------------------------------------------------------------------------------

    @property
    def slots(self) -> int:
        """Those that work now, and `max_pending` more."""
        with self._changed:
            return min(self._plan.parallel, LIVE_PODS, self._tracker.working + self._kube.max_pending)

    @property
    def working(self) -> int:
        with self._changed:
            return self._tracker.working

    @property
    def concurrency(self) -> int:
        return LAUNCHERS

    @property
    def detachable(self) -> bool:
        return True

    def launch(self, order: Order) -> None:
        """Waits while `max_pending` pods are pending, and while the cluster does not take the pod.

        Raises `OperatorError` when it never will, `TooLate` after `LAUNCH_S`.
        """
        if order.grants_url is None:
            raise ValueError(f"attempt {order.id} has no address for its grants")
        name = names.pod(self._plan.uid, *order.id)
        until = time.monotonic() + LAUNCH_S
        pod = self._created(order, name, until) if self._enter(order.id, name, until) else None
        if pod is not None:
            return
        with self._changed:
            if not self._unwanted(order.id):
                raise TooLate(f"no room for {name} within {LAUNCH_S:g} s")
        self._report(Finished(order.id, _UNLAUNCHED))

    def _created(self, order: Order, name: str, until: float) -> Pod | None:
        """None: it was stopped meanwhile, or it took too long."""
        assert order.grants_url is not None
        body = manifest.pod(
            self._plan,
            trial=order.id.trial,
            attempt=order.id.n,
            owner=self._owner,
            grants_url=order.grants_url,
            shard=self._shard,
            commands=self._commands,
        )
        pod = None
        try:
            pod = self._launcher.create(body, wait=lambda seconds: self._pause(order.id, seconds, until))
        finally:
            with self._changed:
                if pod is None:
                    self._tracker.forget(name)
                else:
                    self._tracker.created(name, pod, now=time.monotonic())
                self._changed.notify_all()
        return pod

    def adopt(self, attempt: AttemptId, start: Start | None) -> bool:
        """False before the first listing too: nobody can say yet whether the pod is there."""
        self._raise_failure()
        name = names.pod(self._plan.uid, *attempt)
        with self._changed:
            pod = self._tracker.known(name)
            if pod is None or self._over.get(attempt) == pod.uid or (start is not None and pod.uid != start.pod):
                return False
            self._tracker.expect(attempt, name)
            self._tracker.created(name, pod, now=time.monotonic())
            self._changed.notify_all()
            return True

    def poll(self, timeout_s: float) -> list[Finished]:
        until = time.monotonic() + timeout_s
        with self._changed:
            while True:
                self._raise_failure()
                now = time.monotonic()
                self._act_on(self._tracker.look(now))
                self._sweeper.sweep()
                if self._ready:
                    ready, self._ready = self._ready, []
                    return ready
                if now >= until:
                    return []
                self._changed.wait(min(until - now, 1.0))

    def alive(self, start: Start) -> Liveness:
        """Asked of the API server itself: the reflector may be behind. But what was given up stays so: on a node
        that is lost, a pod runs for ever."""
        if start.pod is None or not self._reflector.wait_synced(0):
            return Liveness.UNKNOWN  # unlisted, a pod that is over could not be adopted with its last words
        with self._changed:
            if self._over.get(AttemptId(start.trial, start.attempt)) == start.pod:
                return Liveness.GONE
        name = names.pod(self._plan.uid, start.trial, start.attempt)
        try:
            pod = parse(self._client.get_pod(self._namespace, name))
        except NotFound:
            return Liveness.GONE
        except ApiError:
            return Liveness.UNKNOWN
        return Liveness.ALIVE if pod.uid == start.pod and not _over(pod) else Liveness.GONE

    def stop(self, attempts: Iterable[AttemptId], *, grace_s: float) -> None:
        """At least one second of grace: with none, a pod's name is free while its containers still run."""
        grace = max(1, math.ceil(grace_s))
        with self._changed:
            for attempt in attempts:
                one = self._tracker.get(names.pod(self._plan.uid, *attempt))
                if one is None or one.uid is None:
                    self._stopped.add(attempt)
                else:
                    self._sweeper.later(Left(attempt, one.name, one.uid), grace_s=grace)
            self._changed.notify_all()

    def withdraw(self, attempts: Iterable[AttemptId]) -> None:
        with self._changed:
            for attempt in attempts:
                one = self._tracker.get(names.pod(self._plan.uid, *attempt))
                if one is None or one.uid is None:
                    self._stopped.add(attempt)
            self._changed.notify_all()

    def settled(self, attempt: AttemptId) -> None:
        """The ledger has its end: its pod may go."""
        with self._changed:
            self._over.pop(attempt, None)
        self._sweeper.settled(attempt)

    def close(self) -> None:
        """Stops following. Pods that run are left, and those whose ends are not in the ledger."""
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        self._reflector.stop()
        self._sweeper.sweep(last=True)
        self._chores.close()
        self._client.close()

    # --- launching ----------------------------------------------------------------------------------

    def _enter(self, attempt: AttemptId, name: str, until: float) -> bool:
        """Wait for room among the pending, and track the pod before it exists. False: it was stopped meanwhile, or
        there was none."""
        with self._changed:
            while self._tracker.pending >= self._kube.max_pending:
                if self._unwanted(attempt) or time.monotonic() >= until:
                    return False
                self._changed.wait(1.0)
            if self._unwanted(attempt):
                return False
            self._tracker.expect(attempt, name)
            return True

    def _pause(self, attempt: AttemptId, seconds: float, until: float) -> bool:
        """Whether to leave it: it was stopped meanwhile, or it is later than `until`."""
        awake = min(time.monotonic() + seconds, until)
        with self._changed:
            while not self._unwanted(attempt) and (left := awake - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._unwanted(attempt) or time.monotonic() >= until

    def _unwanted(self, attempt: AttemptId) -> bool:
        return self._closing.is_set() or attempt in self._stopped

    # --- following ----------------------------------------------------------------------------------

    def _on_changes(self, changes: list[Change]) -> None:
        with self._changed:
            self._tracker.apply(changes, now=time.monotonic())
            for change in changes:
                self._end_unwanted(change)
            self._changed.notify_all()

    def _end_unwanted(self, change: Change) -> None:
        """A POST may have been carried out although its answer was lost, and its attempt stopped meanwhile."""
        label = change.pod.label
        if change.kind is not Kind.ADDED or not self._stopped or not label(names.ATTEMPT).isdecimal():
            return
        attempt = AttemptId(label(names.TRIAL), int(label(names.ATTEMPT)))
        if attempt in self._stopped:
            self._sweeper.later(Left(attempt, change.pod.name, change.pod.uid))

    def _act_on(self, look: Look) -> None:
        for found in look.found:
            self._tracker.forget(found.tracked.name)
            if found.tracked.uid is not None:
                self._over[found.tracked.id] = found.tracked.uid
            self._chores.do(self._finish, found)
        for one in look.unseen:
            one.created_at = time.monotonic()  # not asked again before the same grace
            self._chores.do(self._look_for, one)
        for one in look.puzzling:
            one.events_at = time.monotonic()
            self._chores.do(self._explain, one)

    def _finish(self, found: Found) -> None:
        """Outside the lock: a failure is asked for its reasons before it is reported."""
        one, finding = found.tracked, found.finding
        left = None if one.uid is None or one.deleted else Left(one.id, one.name, one.uid)
        departure, failed = finding.departure, not _clean(finding)
        if failed:
            departure = self._explained(one, departure)
        if left is not None and isinstance(finding, Stuck):
            self._sweeper.delete(left)
        elif left is not None:
            self._sweeper.over(left, failed=failed)
        self._report(Finished(one.id, departure))

    def _explained(self, one: Tracked, departure: Departure) -> Departure:
        if one.uid is None:
            return departure
        events = diagnosis.events_of(self._client, self._namespace, one.uid) or one.events
        ran = one.pod is not None and one.pod.container(names.RUNNER).doing is not Doing.WAITING
        log = diagnosis.log_of(self._client, self._namespace, one.name) if ran and not one.deleted else ""
        return diagnosis.explained(departure, events, log)

    def _look_for(self, one: Tracked) -> None:
        """Created a while ago, and in no listing: the API server itself decides."""
        try:
            pod = parse(self._client.get_pod(self._namespace, one.name))
        except NotFound:
            with self._changed:
                self._tracker.forget(one.name)
            gone = signals.vanished(None, one.id, image_id=self._kube.image_id)
            return self._report(Finished(one.id, gone.departure))
        except ApiError:
            return None
        return self._on_changes([Change(Kind.MODIFIED, pod)])

    def _explain(self, one: Tracked) -> None:
        if one.uid is None:
            return
        events = diagnosis.events_of(self._client, self._namespace, one.uid)
        with self._changed:
            self._tracker.explain(one.name, events, now=time.monotonic())
            self._changed.notify_all()

    def _report(self, finished: Finished) -> None:
        with self._changed:
            self._ready.append(finished)
            self._changed.notify_all()

    def _raise_failure(self) -> None:
        """What went wrong in another thread, where somebody hears it."""
        failure = self._chores.failure or self._reflector.failure
        if isinstance(failure, ApiError):
            raise refusal(failure, self._namespace, "list and watch pods") from failure
        if failure is not None:
            raise failure


def _over(pod: Pod) -> bool:
    return pod.terminal or pod.container(names.RUNNER).doing is Doing.TERMINATED


def _clean(finding: Finding) -> bool:
    departure = finding.departure
    return departure.code == 0 and departure.named is None
