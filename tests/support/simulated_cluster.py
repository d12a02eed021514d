"""A cluster of runners that cost nothing: each writes a runner's records into the store and is gone.

It outlives the backends that launch on it, as pods outlive their controller. Records are real, and so are the
threads: launches come from several at once.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any

from tests.support import records
from trialfleet_controller.backends.protocol import AttemptId, Finished, Liveness, Order, Wait
from trialfleet_controller.backends.runner_termination import RunnerTermination
from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.records.attempt import End, Intent, Patch, Start
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.verdicts import HaltScope, LossClass, Scored, Verdict
from trialfleet_ledger.records.verdicts import Loss as LossRecord
from trialfleet_ledger.store.protocol import Store

BUNDLE = b"bundle"
OTHER_IMAGE = LossRecord(
    loss=LossClass.SETUP, message="another image", agent_started=False, halt=HaltScope.CAMPAIGN
)


@dataclass(frozen=True)
class Fate:
    """What becomes of an attempt. `patched`: its patch is there when it is lost; `silent`: it dies without an end;
    `refused`: the store refuses its end, which becomes its last words; `mistaken`: those speak of another attempt;
    `unplanned`: what ran is not what the plan has, and the place says so; `exhausted`: evicted, and its agent was
    beyond its limits; `tests_died`: its patch is there, and its tests' container has died."""

    seconds: float = 0.0
    loss: LossClass | None = None
    patched: bool = False
    silent: bool = False
    refused: bool = False
    mistaken: bool = False
    unplanned: bool = False
    exhausted: bool = False
    tests_died: bool = False


@dataclass
class Cluster:
    """`fates`: by attempt number, from 1; what comes after is well. `losing`: trials that lose every attempt."""

    store: Store
    fates: dict[int, Fate] = field(default_factory=dict[int, Fate])
    usual: Fate = Fate()
    losing: set[str] = field(default_factory=set[str])
    full: bool = False  # what is launched waits for a node
    rates: dict[str, float] = field(
        default_factory=dict[str, float]
    )  # by condition; others pass every other trial
    sure: dict[str, bool] = field(default_factory=dict[str, bool])  # tasks that always, or never, pass
    launches: Counter[AttemptId] = field(default_factory=Counter[AttemptId])
    executions: Counter[str] = field(default_factory=Counter[str])
    order: list[AttemptId] = field(default_factory=list[AttemptId])
    most: int = 0
    gone: dict[AttemptId, RunnerTermination] = field(default_factory=dict[AttemptId, RunnerTermination])
    living: dict[AttemptId, Grants] = field(default_factory=dict[AttemptId, Grants])
    watchers: list[SimpleQueue[Finished]] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._due: list[tuple[float, int, AttemptId]] = []
        self._numbers = itertools.count()
        self._waiting: list[Grants] = []
        self._open = True
        threading.Thread(target=self._live, daemon=True).start()

    def launch(self, order: Order) -> None:
        grants = Grants.model_validate_json(order.grants)
        with self._lock:
            self.launches[order.id] += 1
            self.order.append(order.id)
            if order.id in self.living or order.id in self.gone:
                return None
            self.living[order.id] = grants
            self.most = max(self.most, len(self.living))
            if self.full:
                return self._waiting.append(grants)
        return self._begin(grants)

    def place(self) -> None:
        """There are nodes for all."""
        with self._lock:
            self.full, waiting = False, list(self._waiting)
        for grants in waiting:
            self._begin(grants)

    def _begin(self, grants: Grants) -> None:
        attempt = AttemptId(grants.trial.id, grants.attempt)
        if not self.store.create(self._key(grants, "start.json"), canonical_json(self._start(grants))):
            return self._leave(attempt, RunnerTermination(code=3))
        with self._lock:
            due = time.monotonic() + self._fate(grants).seconds
            heapq.heappush(self._due, (due, next(self._numbers), attempt))
        return None

    def kill(self, attempt: AttemptId) -> None:
        if attempt in self.living:
            self._leave(attempt, RunnerTermination(code=-15))

    def hasten(self) -> None:
        """What runs ends now, and what comes as usual takes no time."""
        with self._lock:
            self.usual = replace(self.usual, seconds=0.0)
            self._due = [(0.0, number, attempt) for _, number, attempt in self._due]
            heapq.heapify(self._due)

    def close(self) -> None:
        self._open = False

    def _live(self) -> None:
        while self._open:
            with self._lock:
                ready = self._due and self._due[0][0] <= time.monotonic()
                attempt = heapq.heappop(self._due)[2] if ready else None
            if attempt is None:
                time.sleep(0.002)
            elif attempt in self.living:
                self._leave(attempt, self._run(self.living[attempt]))

    def _leave(self, attempt: AttemptId, departure: RunnerTermination) -> None:
        with self._lock:
            if self.living.pop(attempt, None) is None:
                return
            self.gone[attempt] = departure
            for watcher in self.watchers:
                watcher.put(Finished(attempt, departure))

    def _fate(self, grants: Grants) -> Fate:
        if grants.trial.id in self.losing:
            return Fate(loss=LossClass.TERMINATED)
        return self.fates.get(grants.attempt, self.usual)

    def _run(self, grants: Grants) -> RunnerTermination:
        fate = self._fate(grants)
        if fate.silent:
            return RunnerTermination(code=-9, named=OTHER_IMAGE if fate.unplanned else None)
        if grants.prior_patch is None:
            self.executions[grants.trial.id] += 1
        if fate.exhausted:
            return RunnerTermination(named=records.loss(LossClass.OVERUSE), exhausted=True)
        if fate.tests_died:
            self.store.create(self._key(grants, "patch.json"), canonical_json(self._patch(grants)))
            self._end(grants, records.loss(LossClass.SCORING, patched=True, by_patch=True))
            return RunnerTermination(code=0)
        if fate.loss is not None:
            if fate.patched:
                self.store.create(self._key(grants, "patch.json"), canonical_json(self._patch(grants)))
            loss = LossRecord(loss=fate.loss, message="as asked", agent_started=True, patched=fate.patched)
            self._end(grants, loss)
            return RunnerTermination(code=0)
        self.store.create(self._key(grants, "patch.json"), canonical_json(self._patch(grants)))
        self.store.create(self._key(grants, "bundle.tar.zst"), BUNDLE)
        rate = self.rates.get(grants.trial.condition)
        passed = grants.trial.seed % 2 == 0 if rate is None else grants.trial.seed / 2**63 < rate
        passed = self.sure.get(grants.trial.task, passed)
        scored = records.scored(Verdict.PASSED if passed else Verdict.FAILED)
        end = self._end(grants, scored, bundle=sha256(BUNDLE), write=not fate.refused)
        if fate.mistaken:
            end = end.model_copy(update={"nonce": "another"})
        named = OTHER_IMAGE if fate.unplanned else None
        return (
            RunnerTermination(code=-9, last_words=end) if fate.refused else RunnerTermination(code=0, named=named)
        )

    def _end(self, grants: Grants, result: Scored | LossRecord, *, write: bool = True, **fields: Any) -> End:
        end = records.end(result, **self._identity(grants), **fields)
        if write:
            self.store.create(self._key(grants, "end.json"), canonical_json(end))
        return end

    def _identity(self, grants: Grants) -> dict[str, Any]:
        return {"trial": grants.trial.id, "attempt": grants.attempt, "nonce": grants.intent_nonce, "at": 1.0}

    def _start(self, grants: Grants) -> Start:
        return records.start(**self._identity(grants))

    def _patch(self, grants: Grants) -> Patch:
        return records.patch(**self._identity(grants))

    def _key(self, grants: Grants, name: keys.AttemptFile) -> str:
        return keys.attempt_file(grants.campaign, grants.trial.id, grants.attempt, name)


class ClusterBackend:
    """One controller's view of the cluster."""

    detachable = True
    cluster_id: str | None = None

    def __init__(self, cluster: Cluster, *, slots: int = 1000, concurrency: int = 8, adopts: bool = True) -> None:
        self.cluster, self.slots, self.concurrency = cluster, slots, concurrency
        self.adopted: list[AttemptId] = []
        self.asked: set[AttemptId] = set()  # whom it might adopt
        self.put_away: list[AttemptId] = []
        self.renewed: list[AttemptId] = []
        self._adopts = adopts
        self._mine: set[AttemptId] = set()
        self._finished: SimpleQueue[Finished] = SimpleQueue()
        cluster.watchers.append(self._finished)

    @property
    def working(self) -> int:
        return len(self._mine)

    def waiting(self) -> dict[AttemptId, Wait]:
        return {}

    def launch(self, order: Order) -> None:
        self._mine.add(order.id)
        self.cluster.launch(order)

    def adopt(self, attempt: AttemptId, start: Start | None) -> bool:
        self.asked.add(attempt)
        known = start is not None or attempt in self.cluster.living or attempt in self.cluster.gone
        if not self._adopts or not known:
            return False
        self.adopted.append(attempt)
        self._mine.add(attempt)
        departure = self.cluster.gone.get(attempt)
        if departure is not None:
            self._finished.put(Finished(attempt, departure))
        return True

    def poll(self, timeout_s: float) -> list[Finished]:
        found: list[Finished] = []
        end = time.monotonic() + timeout_s
        while True:
            try:
                left = 0.0 if found else max(0.0, end - time.monotonic())
                finished = self._finished.get(timeout=left) if left else self._finished.get_nowait()
            except Empty:
                return found
            if finished.id in self._mine:
                self._mine.discard(finished.id)
                found.append(finished)

    def kept_patch(self, intent: Intent) -> bytes | None:
        return None

    def keep_stop(self, intent: Intent) -> None:
        return  # pods go on without their controller

    def stop_kept(self, intent: Intent) -> bool:
        return False

    def renew(self, attempt: AttemptId, grants_url: str) -> None:
        self.renewed.append(attempt)

    def settled(self, attempt: AttemptId) -> None:
        self.put_away.append(attempt)

    def alive(self, start: Start) -> Liveness:
        attempt = AttemptId(start.trial, start.attempt)
        return Liveness.ALIVE if attempt in self.cluster.living else Liveness.GONE

    def stop(self, attempts: Iterable[AttemptId], *, grace_s: float) -> None:
        for attempt in attempts:
            self.cluster.kill(attempt)

    def withdraw(self, attempts: Iterable[AttemptId]) -> None:
        """No launch waits here."""

    def close(self) -> None:
        self.cluster.watchers.remove(self._finished)
