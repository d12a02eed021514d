"""Which attempts are watched, and what their pods say. No network and no clock; its owner holds the lock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trialfleet_controller.backend import AttemptId
from trialfleet_controller.kube import names, signals
from trialfleet_controller.kube.cache import Change, Kind
from trialfleet_controller.kube.pods import Doing, Pod
from trialfleet_controller.kube.signals import Concern, Event, Finding
from trialfleet_runner.campaign import Graces

SWEEP_S = 1.0


@dataclass
class Tracked:
    """An attempt and its pod. Times are monotonic. `uid`: of the pod that counts, whoever else has its name."""

    id: AttemptId
    name: str
    uid: str | None = None
    created_at: float | None = None
    pod: Pod | None = None
    deleted: bool = False
    since: dict[Concern, float] = field(default_factory=dict[Concern, float])
    events: tuple[Event, ...] = ()
    events_at: float | None = None

    @property
    def pending(self) -> bool:
        """Its runner does not run yet."""
        pod = self.pod
        waits = pod is None or pod.container(names.RUNNER).doing is Doing.WAITING
        return waits and not self.deleted and (pod is None or not pod.terminal)


@dataclass(frozen=True, slots=True)
class Found:
    """An attempt that is over, as its pod says."""

    tracked: Tracked
    finding: Finding


@dataclass(frozen=True, slots=True)
class Look:
    """What is due at one moment. `unseen`: created, and still in no listing; `puzzling`: their events may say why
    they don't start."""

    found: Sequence[Found]
    unseen: Sequence[Tracked]
    puzzling: Sequence[Tracked]


class Tracker:
    """Attempts by the names of their pods, and every pod of the campaign that the reflector has reported."""

    def __init__(self, *, graces: Graces, image_id: str) -> None:
        self._graces, self._image_id = graces, image_id
        self._tracked: dict[str, Tracked] = {}
        self._pods: dict[str, Pod] = {}
        self._fresh: set[str] = set()  # names whose state changed since the last look
        self._clocked: set[str] = set()  # names on which a clock runs
        self._sweep_at = 0.0

    @property
    def working(self) -> int:
        """Those whose runners run."""
        return len(self._tracked) - self.pending

    @property
    def pending(self) -> int:
        """Those whose runners don't run yet, pods still to be created included."""
        return sum(self._tracked[name].pending for name in self._clocked)

    def get(self, name: str) -> Tracked | None:
        return self._tracked.get(name)

    def known(self, name: str) -> Pod | None:
        """A pod of the campaign, tracked or not."""
        return self._pods.get(name)

    def expect(self, attempt: AttemptId, name: str) -> Tracked:
        """Track a pod that is about to be created, so that no event of it is missed."""
        one = self._tracked.setdefault(name, Tracked(attempt, name))
        self._clocked.add(name)
        return one

    def created(self, name: str, pod: Pod, *, now: float) -> None:
        """The server says that it exists, as `pod`."""
        one = self._tracked.get(name)
        if one is None:
            return
        if one.uid != pod.uid:
            seen = self._pods.get(name)
            one.uid, one.deleted = pod.uid, False
            self._update(one, seen if seen is not None and seen.uid == pod.uid else None, now)
        one.created_at = now

    def forget(self, name: str) -> None:
        self._tracked.pop(name, None)
        self._fresh.discard(name)
        self._clocked.discard(name)

    def apply(self, changes: Iterable[Change], *, now: float) -> None:
        for change in changes:
            pod = change.pod
            gone = change.kind is Kind.DELETED
            if not gone:
                self._pods[pod.name] = pod
            elif (known := self._pods.get(pod.name)) is not None and known.uid == pod.uid:
                del self._pods[pod.name]
            one = self._tracked.get(pod.name)
            if one is not None and one.uid in (None, pod.uid):
                one.uid, one.deleted = pod.uid, gone
                self._update(one, pod, now)

    def explain(self, name: str, events: tuple[Event, ...], *, now: float) -> None:
        one = self._tracked.get(name)
        if one is not None:
            one.events, one.events_at = events, now
            self._fresh.add(name)

    def look(self, now: float) -> Look:
        """Those whose state has changed, and once a second those on which a clock runs: no others can be due."""
        due, self._fresh = self._fresh, set()
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_S
            due = due | self._clocked
        looked = [(one, self._judge(one, now)) for one in (self._tracked[name] for name in sorted(due))]
        waiting = [one for one, finding in looked if finding is None]
        return Look(
            found=[Found(one, finding) for one, finding in looked if finding is not None],
            unseen=[one for one in waiting if self._unseen(one, now)],
            puzzling=[one for one in waiting if self._puzzles(one, now)],
        )

    def _judge(self, one: Tracked, now: float) -> Finding | None:
        if one.deleted:
            return signals.vanished(one.pod, one.id, image_id=self._image_id)
        if one.pod is None:
            return None
        return signals.judge(
            one.pod,
            ages={concern: now - since for concern, since in one.since.items()},
            graces=self._graces,
            image_id=self._image_id,
            attempt=one.id,
            events=one.events,
        )

    def _unseen(self, one: Tracked, now: float) -> bool:
        waited = one.pod is None and one.created_at is not None
        return waited and now - (one.created_at or now) > self._graces.unseen_s

    def _puzzles(self, one: Tracked, now: float) -> bool:
        begun = min(
            (one.since[concern] for concern in one.since if concern is not Concern.TERMINATING), default=now
        )
        last = begun if one.events_at is None else one.events_at
        return now - last > self._graces.config_error_s

    def _update(self, one: Tracked, pod: Pod | None, now: float) -> None:
        one.pod = pod
        present = frozenset[Concern]() if pod is None else signals.concerns(pod)
        one.since = {concern: one.since.get(concern, now) for concern in present}
        self._fresh.add(one.name)
        (self._clocked.add if one.since or pod is None else self._clocked.discard)(one.name)
