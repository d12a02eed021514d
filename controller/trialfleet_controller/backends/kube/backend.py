"""Attempts as pods: one bare pod each, in one namespace, observed by one reflector."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from trialfleet_controller.backends.attempt_times import AFTER_S, validity
from trialfleet_controller.backends.kube import manifest, names, signals
from trialfleet_controller.backends.kube.api_requests import PODS
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.diagnosis import PodDiagnosis
from trialfleet_controller.backends.kube.errors import ApiError, Conflict, NotFound
from trialfleet_controller.backends.kube.launcher import Launcher, LaunchGate, refusal
from trialfleet_controller.backends.kube.owner import CampaignOwner, Elsewhere
from trialfleet_controller.backends.kube.pod_cache import ChangeKind, PodChange
from trialfleet_controller.backends.kube.pod_cleaner import BackgroundTasks, FinishedPod, PodCleaner
from trialfleet_controller.backends.kube.pods import Doing, Pod, parse
from trialfleet_controller.backends.kube.reflector import Reflector, WatchIntervals
from trialfleet_controller.backends.kube.tracker import PollResult, Tracked, Tracker
from trialfleet_controller.backends.protocol import LIVE_PODS, AttemptId, Finished, Liveness, Order, TooLate, Wait
from trialfleet_controller.backends.runner_termination import RunnerTermination
from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.attempt import Intent, Start

LAUNCHERS = 16
LAUNCH_S = AFTER_S / 2  # signatures outlive an attempt and its pending time by `AFTER_S`
FIRST_LISTING_S = 10.0  # attempts that are not adopted at once are polled for a while
_BACKGROUND_THREADS = 4  # for deletes and diagnosis
THREADS = LAUNCHERS + _BACKGROUND_THREADS  # that use the client at once
_NOT_CREATED = RunnerTermination(code=RunnerExit.STOPPED, words="its pod was not created")


class KubernetesBackend:
    """Pods outlive their controller: `close` leaves them, and the next controller adopts them.

    It ensures the ConfigMap that owns the pods, starts the reflector, and waits for the first listing, at most
    `FIRST_LISTING_S`. `parallel`, `max_pending`: instead of the plan's. `keep_failed`: how many of the failed pods
    stay, the newest first. `tell` is called from several threads. `outlives_s`, `elsewhere`: see `CampaignOwner`.

    Raises `OperatorError`: not the cluster where the pods run, no such namespace, not allowed.
    """

    def __init__(
        self,
        plan: Plan,
        client: Client,
        *,
        store_url: str,
        namespace: str | None = None,
        shard: int = 0,
        parallel: int | None = None,
        max_pending: int | None = None,
        keep_failed: int = 0,
        commands: manifest.ContainerCommands = manifest.COMMANDS,
        outlives_s: float | None = None,
        elsewhere: Elsewhere = lambda _, __: False,
        tell: Callable[[str], None] = lambda _: None,
        intervals: WatchIntervals | None = None,
    ) -> None:
        kube = manifest.planned(plan)
        namespace = namespace or kube.namespaces[shard]
        self._plan, self._client, self._namespace, self._shard = plan, client, namespace, shard
        self._image_id, self._commands, self._tell = kube.image_id, commands, tell
        self._parallel, self._max_pending = parallel or plan.parallel, max_pending or kube.max_pending
        self._owner = CampaignOwner(client, namespace, plan, store_url, outlives_s)
        self._owner.ensure(elsewhere=elsewhere, tell=tell)
        self._diagnosis = PodDiagnosis(client, namespace, self._owner)
        self._tracker = Tracker(graces=kube.graces, image_id=kube.image_id, validity=validity(plan))
        self._ready: list[Finished] = []
        self._ended: dict[AttemptId, str] = {}  # uids of pods that have ended, or were given up with their nodes
        self._changed = threading.Condition()  # guards all of the above
        self._gate = LaunchGate(self._changed, self._tracker, max_pending=self._max_pending)
        self._background = BackgroundTasks(_BACKGROUND_THREADS)
        self._cleaner = PodCleaner(client, namespace, self._background, keep_failed=keep_failed, tell=tell)
        self._renew_at = time.monotonic() + self._owner.expiry.every_s
        self._launcher = Launcher(client, namespace, tell=tell)
        selector = names.selector(plan.uid)
        self._reflector = Reflector(
            client, namespace, selector, on_changes=self._on_changes, tell=tell, intervals=intervals
        )
        self._reflector.start()
        self._reflector.wait_synced(FIRST_LISTING_S)

    # --- the Protocol of backends -------------------------------------------------------------------

    @property
    def slots(self) -> int:
        """The attempts that run now and `max_pending` more."""
        with self._changed:
            return min(self._parallel, LIVE_PODS, self._tracker.working + self._max_pending)

    @property
    def working(self) -> int:
        with self._changed:
            return self._tracker.working

    def waiting(self) -> dict[AttemptId, Wait]:
        with self._changed:
            return self._tracker.waiting()

    @property
    def concurrency(self) -> int:
        return LAUNCHERS

    @property
    def detachable(self) -> bool:
        return True

    @property
    def cluster_id(self) -> str | None:
        return self._owner.cluster_id

    def launch(self, order: Order) -> None:
        """Waits while `max_pending` pods are pending, and while the cluster does not accept the pod.

        Raises `OperatorError` when the cluster will never accept it, `TooLate` after `LAUNCH_S`.
        """
        if order.grants_url is None:
            raise ValueError(f"attempt {order.id} has no address for its grants")
        name = names.pod(self._plan.uid, *order.id)
        until = time.monotonic() + LAUNCH_S
        if self._gate.enter(order.id, name, until) and self._create(order, order.grants_url, name, until):
            return
        with self._changed:
            if not self._gate.withdrawn(order.id):
                raise TooLate(f"no room for {name} within {LAUNCH_S:g} s")
        self._report(Finished(order.id, _NOT_CREATED))

    def _create(self, order: Order, grants_url: str, name: str, until: float) -> bool:
        """False: the launch was withdrawn, or it took too long."""
        body = manifest.pod(
            self._plan,
            trial=order.id.trial,
            attempt=order.id.n,
            owner=self._owner.now,
            grants_url=grants_url,
            place=order.block * len(self._plan.cells) + order.position,
            shard=self._shard,
            commands=self._commands,
        )
        pod = None
        try:
            pod = self._launcher.create(body, wait=lambda seconds: self._gate.pause(order.id, seconds, until))
        finally:
            with self._changed:
                if pod is None:
                    self._tracker.forget(name)
                else:
                    self._tracker.created(name, pod, now=time.monotonic(), age_s=_age_s(pod))
                self._changed.notify_all()
        return pod is not None

    def adopt(self, attempt: AttemptId, start: Start | None) -> bool:
        """Also False before the first listing has arrived: it is not known yet whether the pod exists."""
        self._raise_failure()
        name = names.pod(self._plan.uid, *attempt)
        with self._changed:
            pod = self._tracker.known(name)
            if pod is None or self._ended.get(attempt) == pod.uid or (start is not None and pod.uid != start.pod):
                return False
            self._tracker.expect(attempt, name)
            self._tracker.created(name, pod, now=time.monotonic(), age_s=_age_s(pod))
            self._changed.notify_all()
            return True

    def poll(self, timeout_s: float) -> list[Finished]:
        until = time.monotonic() + timeout_s
        with self._changed:
            while True:
                self._raise_failure()
                now = time.monotonic()
                self._act_on(self._tracker.look(now))
                self._cleaner.sweep()
                self._gate.forget_old()
                if now >= self._renew_at:
                    self._renew_at = now + self._owner.expiry.every_s
                    self._background.do(self._renew_expiry)
                if self._ready:
                    ready, self._ready = self._ready, []
                    return ready
                if now >= until:
                    return []
                self._changed.wait(min(until - now, 1.0))

    def alive(self, start: Start) -> Liveness:
        """Asks the API server, since the reflector may be behind. A pod that was given up counts as gone: on a
        lost node its status says `Running` forever."""
        if start.pod is None or not self._reflector.wait_synced(0):
            return Liveness.UNKNOWN  # unlisted, an ended pod could not be adopted with its termination message
        with self._changed:
            if self._ended.get(AttemptId(start.trial, start.attempt)) == start.pod:
                return Liveness.GONE
        try:
            pod = self._get(names.pod(self._plan.uid, start.trial, start.attempt))
        except NotFound:
            return Liveness.GONE
        except ApiError:
            return Liveness.UNKNOWN
        ended = pod.terminal or pod.container(names.RUNNER).doing is Doing.TERMINATED
        return Liveness.ALIVE if pod.uid == start.pod and not ended else Liveness.GONE

    def kept_patch(self, intent: Intent) -> bytes | None:
        """None: a pod's volumes end with it, so its runner waits for fresh grants instead."""
        return None

    def keep_stop(self, intent: Intent) -> None:
        return  # pods go on without their controller

    def stop_kept(self, intent: Intent) -> bool:
        return False

    def renew(self, attempt: AttemptId, grants_url: str) -> None:
        """Writes an annotation, which the kubelet shows to the runner alone."""
        with self._changed:
            tracked = self._tracker.get(names.pod(self._plan.uid, *attempt))
        if tracked is None or tracked.uid is None:
            return
        change = {"metadata": {"uid": tracked.uid, "annotations": {names.GRANTS: grants_url}}}
        try:
            self._client.call(PODS.patch(self._namespace, tracked.name, change))
        except (NotFound, Conflict):
            return  # it is gone
        except ApiError as error:
            self._tell(f"pod {tracked.name} keeps its old grants: the new ones could not be written: {error}")

    def stop(self, attempts: Iterable[AttemptId], *, grace_s: float) -> None:
        """At least one second of grace: with none, a pod's name is free while its containers still run."""
        grace = max(1, math.ceil(grace_s))
        with self._changed:
            for tracked, uid in self._launched(attempts):
                tracked.deletion_requested = True
                self._cleaner.later(FinishedPod(tracked.id, tracked.name, uid), grace_s=grace)

    def withdraw(self, attempts: Iterable[AttemptId]) -> None:
        with self._changed:
            self._launched(attempts)

    def _launched(self, attempts: Iterable[AttemptId]) -> list[tuple[Tracked, str]]:
        """The attempts that have pods, with the pods' uids. The launches of the others are withdrawn."""
        launched: list[tuple[Tracked, str]] = []
        for attempt in attempts:
            tracked = self._tracker.get(names.pod(self._plan.uid, *attempt))
            if tracked is None or tracked.uid is None:
                self._gate.withdraw(attempt)
            else:
                launched.append((tracked, tracked.uid))
        return launched

    def settled(self, attempt: AttemptId) -> None:
        """The ledger has the attempt's end: its pod may be deleted."""
        with self._changed:
            self._ended.pop(attempt, None)
        self._cleaner.settled(attempt)

    def close(self) -> None:
        """Leaves pods that run, and those whose ends are not in the ledger."""
        with self._changed:
            self._gate.close()
        self._reflector.stop()
        self._cleaner.sweep(last=True)
        self._background.close()
        self._client.close()

    # --- what the reflector reports -----------------------------------------------------------------

    def _on_changes(self, changes: list[PodChange]) -> None:
        with self._changed:
            self._tracker.apply(changes, now=time.monotonic())
            for change in changes:
                finished_pod = _finished_pod(change.pod)
                if finished_pod is not None and change.kind is not ChangeKind.DELETED:
                    self._clear(change, finished_pod)
            self._changed.notify_all()

    def _clear(self, change: PodChange, finished_pod: FinishedPod) -> None:
        """A create may have succeeded although its answer was lost, and its attempt been withdrawn since. A pod
        that ended while no controller ran is not tracked, and its attempt may have its end."""
        pod = change.pod
        if change.kind is ChangeKind.ADDED and self._gate.withdrawn(finished_pod.attempt):
            self._cleaner.later(finished_pod)
        if pod.terminal and pod.deleted_at is None and self._tracker.get(pod.name) is None:
            self._cleaner.over(finished_pod, failed=pod.container(names.RUNNER).exit_code != 0)

    # --- what is due --------------------------------------------------------------------------------

    def _act_on(self, due: PollResult) -> None:
        """Requests are sent in the background; the marks keep the same pod from being due again at once."""
        for tracked, finding in due.ended:
            self._tracker.forget(tracked.name)
            if tracked.uid is not None:
                self._ended[tracked.id] = tracked.uid
            self._background.do(self._finish, tracked, finding)
        for tracked in due.unlisted:
            tracked.created_at = time.monotonic()
            self._background.do(self._look_for, tracked)
        for tracked in due.unexplained:
            tracked.events_at = time.monotonic()
            self._background.do(self._ask_for_events, tracked)
        for tracked in due.stale:
            tracked.requeue_at = time.monotonic()
            self._background.do(self._requeue, tracked)

    def _finish(self, tracked: Tracked, finding: signals.PodFinding) -> None:
        termination = finding.termination
        failed = not (termination.requeued or (termination.code == 0 and termination.named is None))
        if failed:
            termination = self._diagnosis.explain(tracked, termination)
        if tracked.uid is not None and not tracked.deleted:
            finished_pod = FinishedPod(tracked.id, tracked.name, tracked.uid)
            if finding.stuck:
                self._cleaner.delete(finished_pod)
            else:
                self._cleaner.over(finished_pod, failed=failed)
        self._report(Finished(tracked.id, termination))

    def _look_for(self, tracked: Tracked) -> None:
        """The pod was created a while ago and is in no listing: the API server knows whether it exists."""
        try:
            pod = self._get(tracked.name)
        except NotFound:
            with self._changed:
                self._tracker.forget(tracked.name)
            vanished = signals.vanished(None, tracked.id, image_id=self._image_id)
            return self._report(Finished(tracked.id, vanished.termination))
        except ApiError:
            return None
        return self._on_changes([PodChange(ChangeKind.MODIFIED, pod)])

    def _ask_for_events(self, tracked: Tracked) -> None:
        if tracked.uid is None:
            return
        events = self._diagnosis.events(tracked.uid)
        with self._changed:
            self._tracker.explain(tracked.name, events, now=time.monotonic())
            self._changed.notify_all()

    def _requeue(self, tracked: Tracked) -> None:
        """Delete a pod that no runner has used, unless it changes meanwhile: a pod that its queue releases runs.
        Once it is gone, its attempt is launched again with new grants."""
        pod = tracked.pod
        if pod is None:
            return
        version = "" if pod.terminal else pod.resource_version
        try:
            self._client.call(
                PODS.delete(self._namespace, pod.name, uid=pod.uid, grace_s=0, resource_version=version)
            )
        except Conflict:
            with self._changed:
                tracked.requeue_at = None
        except ApiError:
            return  # asked again; a pod that goes meanwhile goes because we asked

    def _renew_expiry(self) -> None:
        """A renewal that fails is repeated at the next time. If the deadline passes all the same, the cluster
        deletes the pods, which the tracker notices."""
        with suppress(ApiError):
            self._owner.expiry.renew()

    # --- shared -------------------------------------------------------------------------------------

    def _get(self, name: str) -> Pod:
        return parse(self._client.call(PODS.get(self._namespace, name)))

    def _report(self, finished: Finished) -> None:
        with self._changed:
            self._ready.append(finished)
            self._changed.notify_all()

    def _raise_failure(self) -> None:
        """Raise in the caller's thread what failed in another one."""
        failure = self._background.failure or self._reflector.failure
        if isinstance(failure, ApiError):
            raise refusal(failure, self._namespace, "list and watch pods") from failure
        if failure is not None:
            raise failure


def _age_s(pod: Pod) -> float:
    """By this machine's clock and the server's."""
    return 0.0 if pod.created_at is None else max(0.0, time.time() - pod.created_at)


def _finished_pod(pod: Pod) -> FinishedPod | None:
    """None: its labels name no attempt."""
    n = pod.label(names.ATTEMPT)
    return FinishedPod(AttemptId(pod.label(names.TRIAL), int(n)), pod.name, pod.uid) if n.isdecimal() else None
