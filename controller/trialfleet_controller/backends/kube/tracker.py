"""Which attempts are tracked and what is due for them. Pure: times are arguments; the caller holds the lock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trialfleet_controller.backends.attempt_times import FOREVER, Validity
from trialfleet_controller.backends.kube import names, signals
from trialfleet_controller.backends.kube.pod_cache import ChangeKind, PodChange
from trialfleet_controller.backends.kube.pods import Doing, Pod
from trialfleet_controller.backends.kube.signals import PendingCondition, PodEvent, PodFinding
from trialfleet_controller.backends.protocol import AttemptId, Wait
from trialfleet_controller.backends.runner_termination import RunnerTermination
from trialfleet_ledger.campaign_spec import Graces

SWEEP_S = 1.0  # between two looks at the pods with a running clock
REQUEUE_S = 5.0  # before the deletion of a stale pod is requested again
# Events say nothing more about these.
_EXPLAINED = frozenset({PendingCondition.TERMINATING, PendingCondition.QUEUED})


@dataclass
class Tracked:
    """An attempt and its pod. Times are monotonic. `uid`: of this attempt's pod; another pod may have its name;
    `deletion_requested`: by this controller."""

    id: AttemptId
    name: str
    uid: str | None = None
    created_at: float | None = None
    pod: Pod | None = None
    deleted: bool = False
    deletion_requested: bool = False
    since: dict[PendingCondition, float] = field(default_factory=dict[PendingCondition, float])
    events: tuple[PodEvent, ...] = ()
    events_at: float | None = None
    requeue_at: float | None = None  # when its deletion was last requested, to create it again

    @property
    def vanished(self) -> bool:
        """Whether something other than this controller deletes its pod, and the pod's status does not name it."""
        pod = self.pod
        going = self.deleted or (pod is not None and pod.deleted_at is not None)
        return going and not self.deletion_requested and pod is not None and not signals.disrupted(pod)

    @property
    def pending(self) -> bool:
        """Whether its runner does not run yet."""
        pod = self.pod
        waits = pod is None or pod.container(names.RUNNER).doing is Doing.WAITING
        return waits and not self.deleted and (pod is None or not pod.terminal)

    @property
    def wait(self) -> Wait:
        """What a pending attempt waits for."""
        wait = next((wait for condition, wait in _WAITS.items() if condition in self.since), Wait.STARTING)
        return signals.shortage(self.pod) if wait is Wait.UNSCHEDULABLE and self.pod else wait


_WAITS = {
    PendingCondition.QUEUED: Wait.QUEUED,
    PendingCondition.UNSCHEDULABLE: Wait.UNSCHEDULABLE,
    PendingCondition.IMAGE_PULL: Wait.IMAGE_PULL,
}


@dataclass(frozen=True, slots=True)
class PollResult:
    """What is due at one moment. `ended`: as their pods say; `unlisted`: created, but in no listing so far;
    `unexplained`: their events may say why they do not start; `stale`: their grants end, or have ended, before a
    runner began."""

    ended: Sequence[tuple[Tracked, PodFinding]]
    unlisted: Sequence[Tracked]
    unexplained: Sequence[Tracked]
    stale: Sequence[Tracked]


class Tracker:
    """Tracked attempts by pod name, and every pod of the campaign that the reflector has reported."""

    def __init__(self, *, graces: Graces, image_id: str, validity: Validity = FOREVER) -> None:
        self._graces, self._image_id, self._validity = graces, image_id, validity
        self._tracked: dict[str, Tracked] = {}
        self._pods: dict[str, Pod] = {}
        self._fresh: set[str] = set()  # names whose state changed since the last look
        self._clocked: set[str] = set()  # names of pods with a running clock
        self._sweep_at = 0.0

    @property
    def working(self) -> int:
        """How many attempts have a running runner."""
        return len(self._tracked) - self.pending

    @property
    def pending(self) -> int:
        """How many attempts have no running runner yet, those without a pod included."""
        return sum(self._tracked[name].pending for name in self._clocked)

    def waiting(self) -> dict[AttemptId, Wait]:
        """What each pending attempt waits for."""
        pending = (tracked for name in self._clocked if (tracked := self._tracked[name]).pending)
        return {tracked.id: tracked.wait for tracked in pending}

    def get(self, name: str) -> Tracked | None:
        return self._tracked.get(name)

    def known(self, name: str) -> Pod | None:
        """A pod of the campaign, tracked or not."""
        return self._pods.get(name)

    def expect(self, attempt: AttemptId, name: str) -> Tracked:
        """Track a pod that is about to be created: no event of it is missed."""
        tracked = self._tracked.setdefault(name, Tracked(attempt, name))
        self._clocked.add(name)
        return tracked

    def created(self, name: str, pod: Pod, *, now: float, age_s: float = 0.0) -> None:
        """The server has created `pod`, `age_s` ago."""
        tracked = self._tracked.get(name)
        if tracked is None:
            return
        if tracked.uid != pod.uid:
            seen = self._pods.get(name)
            tracked.uid, tracked.deleted = pod.uid, False
            self._update(tracked, seen if seen is not None and seen.uid == pod.uid else None, now)
        if PendingCondition.QUEUED in tracked.since:
            tracked.since[PendingCondition.QUEUED] = min(tracked.since[PendingCondition.QUEUED], now - age_s)
        tracked.created_at = now

    def forget(self, name: str) -> None:
        self._tracked.pop(name, None)
        self._fresh.discard(name)
        self._clocked.discard(name)

    def apply(self, changes: Iterable[PodChange], *, now: float) -> None:
        for change in changes:
            pod = change.pod
            gone = change.kind is ChangeKind.DELETED
            if not gone:
                self._pods[pod.name] = pod
            elif (known := self._pods.get(pod.name)) is not None and known.uid == pod.uid:
                del self._pods[pod.name]
            tracked = self._tracked.get(pod.name)
            if tracked is not None and tracked.uid in (None, pod.uid):
                tracked.uid, tracked.deleted = pod.uid, gone
                self._update(tracked, pod, now)

    def explain(self, name: str, events: tuple[PodEvent, ...], *, now: float) -> None:
        tracked = self._tracked.get(name)
        if tracked is not None:
            tracked.events, tracked.events_at = events, now
            self._fresh.add(name)

    def look(self, now: float) -> PollResult:
        """Looks at the attempts whose state changed and, once per `SWEEP_S`, at those with a running clock: no
        others can be due."""
        due, self._fresh = self._fresh, set()
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_S
            due = due | self._clocked
        looked = [
            (tracked, self._judge(tracked, now)) for tracked in (self._tracked[name] for name in sorted(due))
        ]
        waiting = [tracked for tracked, finding in looked if finding is None]
        return PollResult(
            ended=[(tracked, finding) for tracked, finding in looked if finding is not None],
            unlisted=[tracked for tracked in waiting if self._is_unlisted(tracked, now)],
            unexplained=[tracked for tracked in waiting if self._is_unexplained(tracked, now)],
            stale=[tracked for tracked in waiting if self._is_stale(tracked, now)],
        )

    def _judge(self, tracked: Tracked, now: float) -> PodFinding | None:
        if tracked.deleted and tracked.requeue_at is not None:
            return PodFinding(RunnerTermination(requeued=True))
        if tracked.deleted:
            return signals.vanished(tracked.pod, tracked.id, image_id=self._image_id)
        if tracked.pod is None or signals.started_after_grants(tracked.pod, self._validity):
            return None
        return signals.judge(
            tracked.pod,
            ages={condition: now - since for condition, since in tracked.since.items()},
            graces=self._graces,
            image_id=self._image_id,
            attempt=tracked.id,
            events=tracked.events,
        )

    def _is_unlisted(self, tracked: Tracked, now: float) -> bool:
        waited = tracked.pod is None and tracked.created_at is not None
        return waited and now - (tracked.created_at or now) > self._graces.unseen_s

    def _is_stale(self, tracked: Tracked, now: float) -> bool:
        if tracked.pod is None or (tracked.requeue_at is not None and now - tracked.requeue_at < REQUEUE_S):
            return False
        queued_s = now - tracked.since.get(PendingCondition.QUEUED, now)
        return queued_s > self._validity.queued_s or signals.started_after_grants(tracked.pod, self._validity)

    def _is_unexplained(self, tracked: Tracked, now: float) -> bool:
        begun = min(
            (tracked.since[condition] for condition in tracked.since if condition not in _EXPLAINED), default=now
        )
        last = begun if tracked.events_at is None else tracked.events_at
        return now - last > self._graces.config_error_s

    def _update(self, tracked: Tracked, pod: Pod | None, now: float) -> None:
        tracked.pod = pod
        present = frozenset[PendingCondition]() if pod is None else signals.pending_conditions(pod)
        tracked.since = {condition: tracked.since.get(condition, now) for condition in present}
        self._fresh.add(tracked.name)
        clocked = tracked.since or pod is None or signals.started_after_grants(pod, self._validity)
        (self._clocked.add if clocked else self._clocked.discard)(tracked.name)
