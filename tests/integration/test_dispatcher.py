"""The dispatcher with several errands under way, over a cluster whose runners outlive their controller."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from campaign_audit import audit
from fake_campaign import CAMPAIGN, fake_plan
from simulated_cluster import BUNDLE, Cluster, ClusterBackend, Fate

from trialfleet_controller import epochs, keys
from trialfleet_controller.backend import AttemptId, Finished, Order, TooLate
from trialfleet_controller.classify import Departure
from trialfleet_controller.dispatcher import Dispatcher
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.machine import Liveness
from trialfleet_controller.plan import trials
from trialfleet_controller.shards import Activity, Answers, Ending, Lease, of_shard, oldest_open_block
from trialfleet_controller.steering import Interrupt, Rhythm
from trialfleet_runner.campaign import Plan
from trialfleet_runner.contract import LossClass, Start
from trialfleet_runner.store.directory import DirectoryStore
from trialfleet_runner.store.protocol import Store

FAST = Rhythm(poll_s=0.05, steer_s=0.05, watch_s=0.05, back_off_s=0.001, wind_down_s=5)


class Site:
    """One store, one cluster, and controllers that come and go."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "store"
        self.store: Store = DirectoryStore(self.root)
        self.ledger = Ledger(self.store, CAMPAIGN)
        self.cluster = Cluster(self.store)
        self.told: list[str] = []

    def dispatcher(self, plan: Plan, **options: Any) -> Dispatcher:
        ledger = Ledger(options.pop("store", self.store), CAMPAIGN)
        ledger.freeze(plan)
        backend = options.pop("backend", None) or ClusterBackend(self.cluster)
        driver = epochs.Driver(ledger.store, CAMPAIGN, 1, epochs.Pulse(enabled=False))
        mine = options.pop("trials", None) or trials(plan)
        options.setdefault("rhythm", FAST)
        return Dispatcher(plan, mine, ledger, backend, driver, tell=self.told.append, **options)

    def leave_running(self, plan: Plan, count: int) -> None:
        """A controller is interrupted while `count` attempts run."""
        interrupt = Interrupt()
        thread = in_background(self.dispatcher(plan, interrupt=interrupt).run)
        wait_for(lambda: len(self.cluster.living) == count)
        interrupt.ask()
        thread.join(60)
        assert not thread.is_alive()


def in_background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def wait_for(done: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.cluster.close()


def test_many_at_once_and_every_trial_once(site: Site) -> None:
    plan = fake_plan(tasks=3, reps=20, parallel=30)
    live = site.dispatcher(plan)
    assert live.run() is Ending.COMPLETE
    assert len(audit(site.root, plan)) == 120
    assert set(site.cluster.launches.values()) == {1}
    assert 1 < site.cluster.most <= 30
    report = live.report()
    assert (report.activity, report.open, report.oldest_open_block) == (Activity.OVER, 0, None)
    assert sum(counts.measured for counts in report.conditions.values()) == 120


@pytest.mark.parametrize(
    ("fate", "attempts", "losses"),
    [
        (Fate(silent=True), 2, (LossClass.TERMINATED,)),
        (Fate(loss=LossClass.EVICTED), 2, (LossClass.EVICTED,)),
        (Fate(refused=True), 1, ()),
        (Fate(refused=True, mistaken=True), 2, (LossClass.TERMINATED,)),
    ],
)
def test_what_a_runner_leaves_behind(site: Site, fate: Fate, attempts: int, losses: tuple[LossClass, ...]) -> None:
    """An end in its last words is as good as one that it wrote, if it is this attempt's."""
    plan = fake_plan(tasks=1, reps=3)
    site.cluster.fates[1] = fate
    assert site.dispatcher(plan).run() is Ending.COMPLETE
    for outcome in audit(site.root, plan):
        assert outcome.scored is not None
        assert (outcome.attempts, outcome.losses) == (attempts, losses)
    assert any("last words" in message for message in site.told) == fate.mistaken


def test_what_ran_on_another_image_than_planned_halts_the_campaign_though_it_has_a_verdict(site: Site) -> None:
    plan = fake_plan(tasks=2, reps=20, parallel=2)
    site.cluster.usual = Fate(unplanned=True)
    backend = ClusterBackend(site.cluster)
    assert site.dispatcher(plan, backend=backend).run() is Ending.HALTED
    (halt,) = site.ledger.halts()
    assert (halt.task, halt.reason) == (None, "setup: another image")
    ended = [entry.key for entry in site.store.list(keys.attempts(CAMPAIGN)) if entry.key.endswith("/end.json")]
    assert 1 <= len(ended) < 80
    assert len(backend.put_away) == len(set(backend.put_away)) == len(ended)
    outcomes = list(site.ledger.outcomes([trial.id for trial in trials(plan)]))
    assert [outcome.abandoned for outcome in outcomes] == [LossClass.QUARANTINED] * len(ended)
    for outcome in outcomes:
        (attempt,) = site.ledger.chain(outcome.trial.id)
        assert attempt.quarantined, "so that every later look at the records agrees"


def test_another_image_than_planned_halts_before_anything_follows_it(site: Site) -> None:
    """Its pod may be there for a while: that is no reason to start others meanwhile."""

    class Lingering(ClusterBackend):
        lingers = True

        def alive(self, start: Start) -> Liveness:
            return Liveness.ALIVE if self.lingers else super().alive(start)

    site.cluster.usual = Fate(unplanned=True, silent=True)
    backend = Lingering(site.cluster, adopts=False)
    thread = in_background(site.dispatcher(fake_plan(reps=10, parallel=1), backend=backend).run)
    wait_for(lambda: bool(site.ledger.halts()))
    backend.lingers = False
    thread.join(60)
    assert not thread.is_alive()
    assert sum(site.cluster.launches.values()) == 1


def test_a_verdict_in_last_words_without_its_bundle_counts_for_nothing(site: Site) -> None:
    plan = fake_plan(tasks=1, conditions=("none",), reps=1)
    site.cluster.fates[1] = Fate(refused=True)
    (trial,) = trials(plan)
    site.store.create(keys.attempt_file(CAMPAIGN, trial.id, 1, "bundle.tar.zst"), BUNDLE + b"torn")
    assert site.dispatcher(plan).run() is Ending.COMPLETE
    outcome = site.ledger.outcome(trial.id)
    assert outcome is not None
    assert outcome.abandoned is LossClass.QUARANTINED


@pytest.mark.parametrize("adopts", [True, False])
def test_what_runs_outlives_its_controller_and_is_taken_up(site: Site, adopts: bool) -> None:
    plan = fake_plan(tasks=2, reps=4, parallel=8)
    site.cluster.usual = Fate(seconds=3600)
    site.leave_running(plan, 8)
    assert "8 attempts go on; `trialfleet resume` takes them up" in site.told[-1]
    backend = ClusterBackend(site.cluster, adopts=adopts)
    ending: list[Ending] = []
    live = site.dispatcher(plan, backend=backend)
    thread = in_background(lambda: ending.append(live.run()))
    wait_for(lambda: len(backend.asked) == 8)
    site.cluster.hasten()
    thread.join(60)
    assert ending == [Ending.COMPLETE]
    assert len(backend.adopted) == (8 if adopts else 0)
    assert all(outcome.attempts == 1 for outcome in audit(site.root, plan))
    assert set(site.cluster.executions.values()) == {1}


def test_an_end_that_nobody_could_write_is_not_lost_with_the_first_look(site: Site) -> None:
    """The next controller's backend does not know these runners at first; when it does, their last words count."""

    class Late(ClusterBackend):
        def adopt(self, attempt: AttemptId, start: Start | None) -> bool:
            known = attempt in self.asked
            self.asked.add(attempt)
            return known and super().adopt(attempt, start)

    plan = fake_plan(tasks=2, reps=2, parallel=8)
    site.cluster.usual = Fate(seconds=3600, refused=True)
    site.leave_running(plan, 8)
    backend = Late(site.cluster)
    ending: list[Ending] = []
    live = site.dispatcher(plan, backend=backend)
    thread = in_background(lambda: ending.append(live.run()))
    wait_for(lambda: len(backend.asked) == 8)
    site.cluster.hasten()
    thread.join(60)
    assert ending == [Ending.COMPLETE]
    assert all((outcome.attempts, outcome.losses) == (1, ()) for outcome in audit(site.root, plan))


class Away(ClusterBackend):
    """Its server does not answer for a while, but what it has heard of runners before still holds."""

    away = True
    patience_s = 0.0

    def alive(self, start: Start) -> Liveness:
        until = time.monotonic() + self.patience_s
        while self.away and time.monotonic() < until:
            time.sleep(0.01)
        return Liveness.UNKNOWN if self.away else super().alive(start)


def test_while_the_server_is_away_the_store_is_asked_now_and_then(site: Site) -> None:
    plan = fake_plan(tasks=1, conditions=("none",), reps=1)
    site.cluster.fates[1] = Fate(silent=True)
    backend, counting = Away(site.cluster), Counting(site.store)
    rhythm = replace(FAST, watch_s=0.5)
    thread = in_background(site.dispatcher(plan, backend=backend, store=counting, rhythm=rhythm).run)
    wait_for(lambda: bool(site.cluster.gone))
    began = time.monotonic()
    time.sleep(2)
    assert thread.is_alive()
    assert counting.calls["get end.json"] <= 4 + 4 * (time.monotonic() - began)
    backend.away = False
    thread.join(60)
    (outcome,) = audit(site.root, plan)
    assert outcome.losses == (LossClass.TERMINATED,)


def test_a_server_that_does_not_answer_keeps_no_other_trial_from_its_outcome(site: Site) -> None:
    plan = fake_plan(tasks=2, reps=2, parallel=2)
    site.cluster.usual = Fate(seconds=3600)
    site.leave_running(plan, 2)
    left = list(site.cluster.living)
    site.cluster.usual = Fate()
    backend = Away(site.cluster, adopts=False)
    backend.patience_s = 3600
    live = site.dispatcher(plan.model_copy(update={"parallel": 4}), backend=backend)
    thread = in_background(live.run)
    wait_for(lambda: live.report().open == 2)
    for attempt in left:
        site.cluster.kill(attempt)
    backend.away = False
    thread.join(60)
    assert not thread.is_alive()
    audit(site.root, plan)


def test_cancel_now_stops_what_an_earlier_controller_left_running(site: Site) -> None:
    plan = fake_plan(tasks=2, reps=4, parallel=8)
    site.cluster.usual = Fate(seconds=3600)
    site.leave_running(plan, 8)
    site.ledger.cancel(now=True, by="test")
    assert site.dispatcher(plan).run() is Ending.CANCELLED
    assert not site.cluster.living
    outcomes = list(site.ledger.outcomes([trial.id for trial in trials(plan)]))
    assert [outcome.abandoned for outcome in outcomes] == [LossClass.CANCELLED] * 8


def leave_pending(site: Site, plan: Plan) -> None:
    """A controller is interrupted while pods of its attempts wait for a node."""
    site.cluster.usual, site.cluster.full = Fate(seconds=3600), True
    site.leave_running(plan, plan.parallel)


@pytest.mark.parametrize("delay_s", [0, 0.5])
@pytest.mark.parametrize("adopts", [True, False])
def test_cancel_now_stops_what_has_not_begun(site: Site, adopts: bool, delay_s: float) -> None:
    """Nobody else would: its pod would run, and cost, once there is a node for it."""

    class Dawdling(Counting):
        """Meanwhile the first of those that are to be cancelled is looked at."""

        def create(self, key: str, data: bytes) -> bool:
            if b"was cancelled" in data and first.acquire(blocking=False):
                time.sleep(delay_s)
            return self.inner.create(key, data)

    plan, first = fake_plan(tasks=2, reps=4, parallel=8), threading.Lock()
    leave_pending(site, plan)
    site.ledger.cancel(now=True, by="test")
    backend = ClusterBackend(site.cluster, adopts=adopts)
    assert site.dispatcher(plan, backend=backend, store=Dawdling(site.store)).run() is Ending.CANCELLED
    assert not site.cluster.living
    outcomes = list(site.ledger.outcomes([trial.id for trial in trials(plan)]))
    assert [outcome.abandoned for outcome in outcomes] == [LossClass.CANCELLED] * 8


def test_a_cancelled_campaign_waits_for_what_was_launched_before(site: Site) -> None:
    plan = fake_plan(tasks=2, reps=2, parallel=8)
    leave_pending(site, plan)
    site.ledger.cancel(now=False, by="test")
    backend = ClusterBackend(site.cluster)
    ending: list[Ending] = []
    live = site.dispatcher(plan, backend=backend)
    thread = in_background(lambda: ending.append(live.run()))
    wait_for(lambda: len(backend.adopted) == 8)
    site.cluster.place()
    site.cluster.hasten()
    thread.join(60)
    assert ending == [Ending.CANCELLED]
    assert all(outcome.attempts == 1 for outcome in audit(site.root, plan))
    assert set(site.cluster.launches.values()) == {1}


def test_a_runner_that_is_gone_before_its_launch_was_noted(site: Site) -> None:
    class Slow(ClusterBackend):
        def launch(self, order: Any) -> None:
            super().launch(order)
            wait_for(lambda: order.id in self.cluster.gone)
            time.sleep(0.2)

    plan = fake_plan(tasks=1, reps=3)
    assert site.dispatcher(plan, backend=Slow(site.cluster)).run() is Ending.COMPLETE
    audit(site.root, plan)


def test_a_cluster_that_takes_no_pod_keeps_no_trial_from_its_outcome(site: Site) -> None:
    full = threading.Event()

    class Full(ClusterBackend):
        def launch(self, order: Any) -> None:
            while full.is_set():
                time.sleep(0.01)
            super().launch(order)

    plan = fake_plan(tasks=3, reps=10, parallel=40)
    site.cluster.usual = Fate(seconds=3600)
    live = site.dispatcher(plan, backend=Full(site.cluster, slots=20))
    thread = in_background(live.run)
    wait_for(lambda: len(site.cluster.living) == 20)
    full.set()
    site.cluster.hasten()
    wait_for(lambda: live.report().open == 40)  # those that ran are measured while every launch waits
    full.clear()
    thread.join(60)
    assert not thread.is_alive()
    audit(site.root, plan)


def test_an_order_that_found_no_room_is_signed_again(site: Site) -> None:
    class Late(ClusterBackend):
        def launch(self, order: Order) -> None:
            offered[order.id] += 1
            if offered[order.id] < 3:
                raise TooLate
            super().launch(order)

    offered = Counter[AttemptId]()
    plan, counting = fake_plan(tasks=1, reps=2), Counting(site.store)
    assert site.dispatcher(plan, backend=Late(site.cluster), store=counting).run() is Ending.COMPLETE
    assert list(offered.values()) == [3] * 4
    assert counting.calls["create grants"] == 3 * 4
    assert all(outcome.attempts == 1 for outcome in audit(site.root, plan))


class Waiting(ClusterBackend):
    """Past `room` attempts, launches wait until they are withdrawn."""

    room = 2

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.waiting: set[AttemptId] = set()
        self.withdrawn: set[AttemptId] = set()
        self._door = threading.Lock()  # launches come from several threads at once

    def launch(self, order: Order) -> None:
        with self._door:
            if len(self.cluster.living) < self.room and not self.waiting:
                return super().launch(order)
            self.waiting.add(order.id)
        wait_for(lambda: order.id in self.withdrawn)
        self._mine.add(order.id)
        return self._finished.put(Finished(order.id, Departure(code=143)))

    def withdraw(self, attempts: Iterable[AttemptId]) -> None:
        self.withdrawn.update(attempts)


@pytest.mark.parametrize("how", ["cancel", "cancel --now", "halt"])
def test_a_launch_that_waits_does_not_keep_the_end_waiting(site: Site, how: str) -> None:
    plan = fake_plan(tasks=1, reps=10, parallel=8)
    site.cluster.usual = Fate(seconds=3600)
    backend = Waiting(site.cluster)
    ending: list[Ending] = []
    live = site.dispatcher(plan, backend=backend)
    thread = in_background(lambda: ending.append(live.run()))
    wait_for(lambda: len(site.cluster.living) == 2 and len(backend.waiting) >= 2)
    if how == "halt":
        site.ledger.halt(None, "test")
    else:
        site.ledger.cancel(now=how == "cancel --now", by="test")
    if how != "cancel --now":
        wait_for(lambda: backend.withdrawn >= backend.waiting)
        site.cluster.hasten()
    thread.join(60)
    assert ending == [Ending.HALTED if how == "halt" else Ending.CANCELLED]
    measured = [outcome.scored is not None for outcome in site.ledger.outcomes([t.id for t in trials(plan)])]
    assert sum(measured) == (0 if how == "cancel --now" else 2), "what runs goes on, unless it is told to stop"
    assert sum(site.cluster.launches.values()) == 2


# --- what it asks of the store ----------------------------------------------------------------------


@dataclass
class Counting:
    """A store that counts what is asked of it, takes its time, and may fall silent."""

    inner: Store
    delay_s: float = 0.0
    calls: Counter[str] = field(default_factory=Counter[str])
    silent: threading.Event = field(default_factory=threading.Event)
    unanswered: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in ("create", "get", "list", "put"):
            return found

        def call(key: str, *args: Any) -> Any:
            with self.lock:
                self.calls[f"{name} {_kind(key)}"] += 1
                self.unanswered += self.silent.is_set()
            time.sleep(self.delay_s)
            while self.silent.is_set():
                time.sleep(0.05)
            return found(key, *args)

        return call


def _kind(key: str) -> str:
    """attempts/…/end.json → end.json; outcomes/… → outcomes."""
    parts = key.removeprefix(f"{CAMPAIGN}/").split("/")
    return parts[-1] if parts[0] == "attempts" else parts[0]


def test_five_calls_a_trial(site: Site) -> None:
    """Intent, grants, end, bundle, outcome: what a run without losses must write and read, and nothing else."""
    plan = fake_plan(tasks=2, reps=10, parallel=10)
    counting = Counting(site.store)
    once = replace(FAST, steer_s=3600, watch_s=3600)  # what is asked as time passes is no trial's
    assert site.dispatcher(plan, store=counting, rhythm=once).run() is Ending.COMPLETE
    per_trial = {call: count for call, count in counting.calls.items() if count >= 40}
    expected = ("create intent.json", "create grants", "get end.json", "get bundle.tar.zst", "create outcomes")
    assert per_trial == dict.fromkeys(expected, 40)


def test_a_resume_starts_new_trials_before_it_has_read_the_old_ones(site: Site) -> None:
    """What has been read is noted as the first of them starts."""
    plan = fake_plan(tasks=10, reps=6, parallel=60)
    site.cluster.usual = Fate(seconds=3600)
    site.leave_running(plan, 60)
    wider = plan.model_copy(update={"parallel": 200})
    slow, read = Counting(site.store, delay_s=0.05), list[int]()

    class Noting(ClusterBackend):
        def launch(self, order: Order) -> None:
            read.append(max(len(self.adopted), slow.calls["get intent.json"]))
            super().launch(order)

    thread = in_background(site.dispatcher(wider, store=slow, backend=Noting(site.cluster)).run)
    wait_for(lambda: bool(read))
    assert read[0] < 60
    site.ledger.cancel(now=True, by="test")
    thread.join(60)
    assert not thread.is_alive()


def test_asked_twice_it_waits_for_no_store(site: Site) -> None:
    interrupt, store = Interrupt(), Counting(site.store)
    site.cluster.usual = Fate(seconds=0.1)
    patient = replace(FAST, wind_down_s=3600)
    live = site.dispatcher(fake_plan(reps=10), store=store, interrupt=interrupt, rhythm=patient)
    thread = in_background(live.run)
    wait_for(lambda: bool(site.cluster.launches))
    store.silent.set()
    wait_for(lambda: store.unanswered > 0)
    interrupt.ask()
    time.sleep(0.5)
    assert thread.is_alive(), "asked once, it ends what it has begun"
    interrupt.ask()
    thread.join(60)
    assert not thread.is_alive()
    store.silent.clear()


# --- leases -----------------------------------------------------------------------------------------


def test_a_lease_changes_while_it_runs(site: Site) -> None:
    plan = fake_plan(tasks=2, reps=10, parallel=40)
    site.cluster.usual = Fate(seconds=0.05)
    live = site.dispatcher(plan, lease=Lease(width=1, oldest_open_block=0))
    thread = in_background(live.run)
    wait_for(lambda: live.report().open < 40)
    assert site.cluster.most == 1
    wait_for(lambda: live.report().open == 40 - 5 * 4)  # four blocks past the oldest of the lease, and no more
    time.sleep(0.3)
    assert len(site.cluster.launches) == 20
    live.lease(Lease(width=8, oldest_open_block=9))
    thread.join(60)
    assert not thread.is_alive()
    assert 1 < site.cluster.most <= 8
    audit(site.root, plan)


def test_trouble_with_the_provider_in_another_shard_holds_this_one_back(site: Site) -> None:
    plan = fake_plan(tasks=2, reps=10, parallel=40)
    site.cluster.usual = Fate(seconds=3600)
    interrupt, well = Interrupt(), Lease(width=4, oldest_open_block=9, elsewhere=Answers())
    live = site.dispatcher(plan, lease=well, interrupt=interrupt)
    thread = in_background(live.run)
    wait_for(lambda: live.report().running == 4)
    troubled = replace(well, elsewhere=Answers(lost=10))
    live.lease(troubled)
    wait_for(lambda: live.report().lease == troubled)
    site.cluster.hasten()
    wait_for(lambda: live.report().answers == Answers(given=4))
    time.sleep(0.5)
    assert sum(site.cluster.launches.values()) == 4
    assert live.report().answers == Answers(given=4)
    interrupt.ask()
    thread.join(60)
    assert not thread.is_alive()


def test_the_pace_of_a_lease_is_kept(site: Site) -> None:
    plan = fake_plan(tasks=1, reps=10, parallel=40)
    began = time.monotonic()
    lease = Lease(width=40, creates_per_s=20, creates_burst=2, oldest_open_block=9)
    assert site.dispatcher(plan, lease=lease).run() is Ending.COMPLETE
    assert time.monotonic() - began >= 18 / 20


def test_who_has_spent_its_share_waits_for_more(site: Site) -> None:
    plan = fake_plan(tasks=1, reps=5)
    limits = plan.limits.model_copy(update={"cost_usd": 1.0})
    agent = plan.agent.model_copy(update={"model": "some-model"})
    plan = plan.model_copy(update={"limits": limits, "agent": agent})
    live = site.dispatcher(plan, lease=Lease(width=4, money_usd=3, oldest_open_block=0))
    ending: list[Ending] = []
    thread = in_background(lambda: ending.append(live.run()))
    wait_for(lambda: live.report().starved)
    assert (live.report().spent_usd, live.report().open) == (3, 7)
    live.lease(Lease(width=4, money_usd=4, oldest_open_block=2))
    wait_for(lambda: live.report().starved and live.report().spent_usd == 4)
    live.lease(Lease(width=4, money_usd=4, oldest_open_block=2, ending=Ending.OUT_OF_MONEY))
    thread.join(60)
    assert ending == [Ending.OUT_OF_MONEY]
    assert sum(site.cluster.executions.values()) == 4


def test_who_still_has_a_patch_to_score_has_not_run_out_of_money(site: Site) -> None:
    """Scoring costs nothing, and the supervisor ends a campaign whose shards can do nothing more."""
    plan = fake_plan(tasks=1, reps=1)
    limits = plan.limits.model_copy(update={"cost_usd": 1.0})
    agent = plan.agent.model_copy(update={"model": "some-model"})
    plan = plan.model_copy(update={"limits": limits, "agent": agent})
    site.cluster.fates[1] = Fate(loss=LossClass.STORE, patched=True)
    interrupt, lease = Interrupt(), Lease(width=4, money_usd=1, oldest_open_block=0)
    patient = replace(FAST, back_off_s=0.25)
    live = site.dispatcher(plan, lease=lease, interrupt=interrupt, rhythm=patient)
    thread = in_background(live.run)
    wait_for(lambda: live.report().starved)
    assert sorted(attempt.n for attempt in site.cluster.launches) == [1, 2]
    interrupt.ask()
    thread.join(60)
    assert not thread.is_alive()


def test_shards_share_a_campaign(site: Site) -> None:
    """Three dispatchers and somebody who passes on what they report: as the campaign's supervisor does."""
    plan = fake_plan(tasks=3, reps=12, parallel=30)
    every = trials(plan)
    site.cluster.usual = Fate(seconds=0.01)
    shards = [
        site.dispatcher(plan, trials=of_shard(every, k, 3), lease=Lease(width=10, oldest_open_block=0))
        for k in range(3)
    ]
    threads = [in_background(shard.run) for shard in shards]
    while any(thread.is_alive() for thread in threads):
        oldest = oldest_open_block([shard.report() for shard in shards])
        for shard in shards:
            shard.lease(Lease(width=10, oldest_open_block=oldest if oldest is not None else 11))
        time.sleep(0.01)
    audit(site.root, plan)
    assert set(site.cluster.launches.values()) == {1}
