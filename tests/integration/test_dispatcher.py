"""The dispatcher with several errands under way, over a cluster whose runners outlive their controller."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.audit import audit, find_tampered
from tests.support.plans import CAMPAIGN, make_plan, priced
from tests.support.simulated_cluster import BUNDLE, Cluster, ClusterBackend, Fate
from tests.support.waiting import in_background, wait_until
from trialfleet_controller.backends.protocol import AttemptId, Finished, Liveness, Order, TooLate, Wait
from trialfleet_controller.backends.runner_termination import RunnerTermination
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.shards import Activity, Answers, Ending, Lease, of_shard, oldest_open_block
from trialfleet_controller.dispatch.stop_conditions import Interrupt, PollIntervals
from trialfleet_controller.dispatch.tally import ConditionCounts
from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.attempt import Patch, Start
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass, Stop
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.trial_order import trials

FAST = PollIntervals(poll_s=0.05, steer_s=0.05, watch_s=0.05, back_off_s=0.001, wind_down_s=5)


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
        epoch = options.pop("epoch", 1)
        driver = epochs.Driver(ledger.store, CAMPAIGN, epoch, epochs.HeartbeatConfig(enabled=False))
        mine = options.pop("trials", None) or trials(plan)
        options.setdefault("intervals", FAST)
        return Dispatcher(plan, mine, ledger, backend, driver, tell=self.told.append, **options)

    def leave_running(self, plan: Plan, count: int) -> None:
        """A controller is interrupted while `count` attempts run."""
        interrupt = Interrupt()
        _, run = self.start(plan, interrupt=interrupt)
        wait_until(lambda: len(self.cluster.living) == count)
        interrupt.ask()
        run.result(60)

    def start(self, plan: Plan, **options: Any) -> tuple[Dispatcher, Future[Ending]]:
        live = self.dispatcher(plan, **options)
        return live, in_background(live.run)

    def outcomes(self, plan: Plan) -> list[Outcome]:
        return list(self.ledger.attempts.outcomes([trial.id for trial in trials(plan)]))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.cluster.close()


def test_many_at_once_and_every_trial_once(site: Site) -> None:
    plan = make_plan(tasks=3, reps=20, parallel=30)
    live = site.dispatcher(plan)
    assert live.run() is Ending.COMPLETE
    assert len(audit(site.root, plan)) == 120
    assert set(site.cluster.launches.values()) == {1}
    assert 1 < site.cluster.most <= 30
    report = live.report()
    assert (report.activity, report.open, report.oldest_open_block) == (Activity.OVER, 0, None)
    assert sum(counts.measured for counts in report.conditions.values()) == 120


def test_a_trial_whose_records_were_deleted_is_not_drawn_again(site: Site) -> None:
    plan = make_plan(tasks=1, reps=2)
    assert site.dispatcher(plan).run() is Ending.COMPLETE
    gone, launches = site.outcomes(plan)[0].trial.id, dict(site.cluster.launches)
    shutil.rmtree(site.root / CAMPAIGN / "attempts" / gone)
    shutil.rmtree(site.root / CAMPAIGN / "grants" / gone)
    (site.root / CAMPAIGN / "outcomes" / f"{gone}.json").unlink()
    assert site.dispatcher(plan, epoch=2).run() is Ending.INCOMPLETE
    assert site.cluster.launches == launches
    assert site.ledger.attempts.outcome(gone) is None
    assert f"outcomes/{gone}.json was deleted after it was written" in site.told


def test_control_a_trial_that_never_began_is_drawn(site: Site) -> None:
    plan = make_plan(tasks=1, reps=2)
    some = trials(plan)[:1]
    site.dispatcher(plan, trials=some).run()
    assert site.dispatcher(plan, epoch=2).run() is Ending.COMPLETE
    assert len(audit(site.root, plan)) == len(trials(plan))
    assert not any("tampered" in line for line in site.told)


def test_nothing_starts_under_a_plan_that_was_edited(site: Site) -> None:
    plan = make_plan(tasks=1, reps=2)
    site.dispatcher(plan, trials=trials(plan)[:1]).run()
    launches = dict(site.cluster.launches)
    path = site.root / CAMPAIGN / "campaign.json"
    edited = path.read_bytes().replace(b'"created":', b'"created": ')
    assert edited != path.read_bytes()
    path.write_bytes(edited)
    with pytest.raises(OperatorError, match=r"campaign\.json was changed") as caught:
        site.dispatcher(plan, epoch=2).run()
    assert caught.value.where == f"{site.store.url}/{CAMPAIGN}/campaign.json"
    assert site.cluster.launches == launches


@pytest.mark.parametrize("change", ["delete", "edit", "truncate"])
def test_nothing_starts_where_the_journal_lacks_what_was_written(site: Site, change: str) -> None:
    """Which trials have run is not known then."""
    plan = make_plan(tasks=1, reps=2)
    site.ledger.freeze(plan)
    epochs.claim(site.store, CAMPAIGN, epochs.HeartbeatConfig()).end()
    site.dispatcher(plan, trials=trials(plan)[:1]).run()
    launches, entry = dict(site.cluster.launches), site.root / CAMPAIGN / "journal/1.json"
    if change == "delete":
        shutil.rmtree(entry.parent)
    else:
        entry.write_bytes(b"{}" if change == "edit" else entry.read_bytes()[:50])
    second = epochs.claim(site.store, CAMPAIGN, epochs.HeartbeatConfig())
    with pytest.raises(OperatorError, match=r"journal/1\.json was (deleted|changed) after") as caught:
        site.dispatcher(plan, epoch=second.number).run()
    assert caught.value.where == f"{site.store.url}/{CAMPAIGN}/journal/1.json"
    assert site.cluster.launches == launches


def test_a_campaign_without_a_journal_continues_and_says_so_once(site: Site) -> None:
    """A version that keeps none began it."""
    plan = make_plan(tasks=1, reps=2)
    site.ledger.freeze(plan)
    epochs.claim(site.store, CAMPAIGN, epochs.HeartbeatConfig()).end()
    site.dispatcher(plan, trials=trials(plan)[:1]).run()
    shutil.rmtree(site.root / CAMPAIGN / "journal")
    for path in (site.root / CAMPAIGN).rglob("*.json"):
        value = json.loads(path.read_bytes())
        if path.name != "campaign.json":
            new = ("plan", "journal", "start", "patch")
            path.write_bytes(canonical_json({name: one for name, one in value.items() if name not in new}))
    for number in (2, 3):
        driver = epochs.claim(site.store, CAMPAIGN, epochs.HeartbeatConfig())
        assert (driver.number, site.dispatcher(plan, epoch=number).run()) == (number, Ending.COMPLETE)
        driver.end()
        assert len([line for line in site.told if "keeps no journal" in line]) == 1
    assert find_tampered(site.store, CAMPAIGN) == {}


class SilentBackend(ClusterBackend):
    """Its kubelets are dead and its watch is broken: every pod says `Running` and no event arrives."""

    def poll(self, timeout_s: float) -> list[Finished]:
        time.sleep(timeout_s)
        return []

    def alive(self, start: Start) -> Liveness:
        return Liveness.ALIVE


def test_ends_that_the_cluster_does_not_report_are_read_from_the_ledger(site: Site) -> None:
    plan = make_plan(tasks=2, reps=5, parallel=4)
    intervals = replace(FAST, ends_s=0.1, ends_age_s=0.0)
    assert site.dispatcher(plan, backend=SilentBackend(site.cluster), intervals=intervals).run() is Ending.COMPLETE
    assert [outcome.attempts for outcome in audit(site.root, plan)] == [1] * len(trials(plan))
    assert set(site.cluster.launches.values()) == {1}


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
    plan = make_plan(tasks=1, reps=3)
    site.cluster.fates[1] = fate
    assert site.dispatcher(plan).run() is Ending.COMPLETE
    for outcome in audit(site.root, plan):
        assert outcome.scored is not None
        assert (outcome.attempts, outcome.losses) == (attempts, losses)
    assert any("last words" in message for message in site.told) == fate.mistaken


def test_an_agent_that_is_evicted_beyond_its_limits_is_not_drawn_again(site: Site) -> None:
    """The next attempt scores the patch that the controller left: no change, and why it stopped."""
    plan = make_plan(tasks=1, reps=3)
    site.cluster.fates[1] = Fate(exhausted=True)
    assert site.dispatcher(plan).run() is Ending.COMPLETE
    for outcome in audit(site.root, plan):
        assert (outcome.attempts, outcome.losses) == (2, (LossClass.OVERUSE,))
        assert site.cluster.executions[outcome.trial.id] == 1
        first, second = site.ledger.attempts.chain(outcome.trial.id)
        assert first.end is not None
        assert first.end.loss is not None
        assert (first.end.loss.patched, second.intent.score_only) == (True, True)
        raw = site.store.get(keys.attempt_file(CAMPAIGN, outcome.trial.id, 1, "patch.json"))
        assert raw is not None
        patch = Patch.model_validate_json(raw)
        assert (patch.stop, patch.diff, patch.metrics) == (Stop.DISK, "", Metrics())


def test_a_runner_learns_how_often_the_tests_of_its_patch_have_died(site: Site) -> None:
    plan = make_plan(tasks=1, reps=2)
    site.cluster.fates |= {1: Fate(tests_died=True), 2: Fate(silent=True), 3: Fate(tests_died=True)}
    assert site.dispatcher(plan).run() is Ending.COMPLETE
    for outcome in audit(site.root, plan):
        assert outcome.losses == (LossClass.SCORING, LossClass.TERMINATED, LossClass.SCORING)
        stored = (site.store.get(keys.grants(CAMPAIGN, outcome.trial.id, n)) for n in range(1, 5))
        assert [Grants.model_validate_json(raw or b"").tests_died for raw in stored] == [0, 1, 1, 2]


def test_what_ran_on_another_image_than_planned_halts_the_campaign_though_it_has_a_verdict(site: Site) -> None:
    plan = make_plan(tasks=2, reps=20, parallel=2)
    site.cluster.usual = Fate(unplanned=True)
    backend = ClusterBackend(site.cluster)
    assert site.dispatcher(plan, backend=backend).run() is Ending.HALTED
    (halt,) = site.ledger.directives.halts()
    assert (halt.task, halt.reason) == (None, "setup: another image")
    ended = [entry.key for entry in site.store.list(keys.attempts(CAMPAIGN)) if entry.key.endswith("/end.json")]
    assert 1 <= len(ended) < 80
    assert len(backend.put_away) == len(set(backend.put_away)) == len(ended)
    outcomes = site.outcomes(plan)
    assert [outcome.abandoned for outcome in outcomes] == [LossClass.QUARANTINED] * len(ended)
    for outcome in outcomes:
        (attempt,) = site.ledger.attempts.chain(outcome.trial.id)
        assert attempt.quarantined, "so that every later look at the records agrees"


def test_another_image_than_planned_halts_before_anything_follows_it(site: Site) -> None:
    """Its pod may be there for a while: that is no reason to start others meanwhile."""

    class Lingering(ClusterBackend):
        lingers = True

        def alive(self, start: Start) -> Liveness:
            return Liveness.ALIVE if self.lingers else super().alive(start)

    site.cluster.usual = Fate(unplanned=True, silent=True)
    backend = Lingering(site.cluster, adopts=False)
    _, run = site.start(make_plan(reps=10, parallel=1), backend=backend)
    wait_until(lambda: bool(site.ledger.directives.halts()))
    backend.lingers = False
    run.result(60)
    assert sum(site.cluster.launches.values()) == 1


def test_a_verdict_in_last_words_without_its_bundle_counts_for_nothing(site: Site) -> None:
    plan = make_plan(tasks=1, conditions=("none",), reps=1)
    site.cluster.fates[1] = Fate(refused=True)
    (trial,) = trials(plan)
    site.store.create(keys.attempt_file(CAMPAIGN, trial.id, 1, "bundle.tar.zst"), BUNDLE + b"torn")
    assert site.dispatcher(plan).run() is Ending.INCOMPLETE
    outcome = site.ledger.attempts.outcome(trial.id)
    assert outcome is not None
    assert outcome.abandoned is LossClass.QUARANTINED


@pytest.mark.parametrize("adopts", [True, False])
def test_what_runs_outlives_its_controller_and_is_taken_up(site: Site, adopts: bool) -> None:
    plan = make_plan(tasks=2, reps=4, parallel=8)
    site.cluster.usual = Fate(seconds=3600)
    site.leave_running(plan, 8)
    assert "8 running trials continue without this controller. `trialfleet resume` takes them up" in site.told[-1]
    backend = ClusterBackend(site.cluster, adopts=adopts)
    _, run = site.start(plan, backend=backend)
    wait_until(lambda: len(backend.asked) == 8)
    site.cluster.hasten()
    assert run.result(60) is Ending.COMPLETE
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

    plan = make_plan(tasks=2, reps=2, parallel=8)
    site.cluster.usual = Fate(seconds=3600, refused=True)
    site.leave_running(plan, 8)
    backend = Late(site.cluster)
    _, run = site.start(plan, backend=backend)
    wait_until(lambda: len(backend.asked) == 8)
    site.cluster.hasten()
    assert run.result(60) is Ending.COMPLETE
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
    plan = make_plan(tasks=1, conditions=("none",), reps=1)
    site.cluster.fates[1] = Fate(silent=True)
    backend, counting = Away(site.cluster), Counting(site.store)
    intervals = replace(FAST, watch_s=0.5)
    _, run = site.start(plan, backend=backend, store=counting, intervals=intervals)
    wait_until(lambda: bool(site.cluster.gone))
    began = time.monotonic()
    time.sleep(2)
    assert not run.done()
    assert counting.calls["get end.json"] <= 4 + 4 * (time.monotonic() - began)
    backend.away = False
    run.result(60)
    (outcome,) = audit(site.root, plan)
    assert outcome.losses == (LossClass.TERMINATED,)


def test_a_server_that_does_not_answer_keeps_no_other_trial_from_its_outcome(site: Site) -> None:
    plan = make_plan(tasks=2, reps=2, parallel=2)
    site.cluster.usual = Fate(seconds=3600)
    site.leave_running(plan, 2)
    left = list(site.cluster.living)
    site.cluster.usual = Fate()
    backend = Away(site.cluster, adopts=False)
    backend.patience_s = 3600
    live, run = site.start(plan.model_copy(update={"parallel": 4}), backend=backend)
    wait_until(lambda: live.report().open == 2)
    for attempt in left:
        site.cluster.kill(attempt)
    backend.away = False
    run.result(60)
    audit(site.root, plan)


def test_cancel_now_stops_what_an_earlier_controller_left_running(site: Site) -> None:
    plan = make_plan(tasks=2, reps=4, parallel=8)
    site.cluster.usual = Fate(seconds=3600)
    site.leave_running(plan, 8)
    site.ledger.directives.cancel(now=True, by="test")
    assert site.dispatcher(plan).run() is Ending.CANCELLED
    assert not site.cluster.living
    outcomes = site.outcomes(plan)
    assert [outcome.abandoned for outcome in outcomes] == [LossClass.CANCELLED] * 8


def test_a_resume_signs_again_and_is_not_stopped_by_losses_from_before(site: Site) -> None:
    """Four runs that are lost to the store in a row would stop the controller that began them."""
    plan = make_plan(tasks=1, conditions=("none",), reps=4, parallel=4)
    site.cluster.fates[1] = Fate(seconds=3600, loss=LossClass.STORE)
    site.leave_running(plan, 4)
    left = set(site.cluster.living)
    backend = ClusterBackend(site.cluster)
    _, run = site.start(plan, backend=backend, epoch=2)
    wait_until(lambda: set(backend.renewed) == left)
    site.cluster.hasten()
    assert run.result(60) is Ending.COMPLETE
    assert [outcome.losses for outcome in audit(site.root, plan)] == [(LossClass.STORE,)] * 4


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

    plan, first = make_plan(tasks=2, reps=4, parallel=8), threading.Lock()
    leave_pending(site, plan)
    site.ledger.directives.cancel(now=True, by="test")
    backend = ClusterBackend(site.cluster, adopts=adopts)
    assert site.dispatcher(plan, backend=backend, store=Dawdling(site.store)).run() is Ending.CANCELLED
    assert not site.cluster.living
    outcomes = site.outcomes(plan)
    assert [outcome.abandoned for outcome in outcomes] == [LossClass.CANCELLED] * 8


def test_a_cancelled_campaign_waits_for_what_was_launched_before(site: Site) -> None:
    plan = make_plan(tasks=2, reps=2, parallel=8)
    leave_pending(site, plan)
    site.ledger.directives.cancel(now=False, by="test")
    backend = ClusterBackend(site.cluster)
    _, run = site.start(plan, backend=backend)
    wait_until(lambda: len(backend.adopted) == 8)
    site.cluster.place()
    site.cluster.hasten()
    assert run.result(60) is Ending.COMPLETE, "what was launched before was all that was left, and is measured"
    assert all(outcome.attempts == 1 for outcome in audit(site.root, plan))
    assert set(site.cluster.launches.values()) == {1}


def test_a_runner_that_is_gone_before_its_launch_was_noted(site: Site) -> None:
    class Slow(ClusterBackend):
        def launch(self, order: Any) -> None:
            super().launch(order)
            wait_until(lambda: order.id in self.cluster.gone)
            time.sleep(0.2)

    plan = make_plan(tasks=1, reps=3)
    assert site.dispatcher(plan, backend=Slow(site.cluster)).run() is Ending.COMPLETE
    audit(site.root, plan)


def test_a_cluster_that_takes_no_pod_keeps_no_trial_from_its_outcome(site: Site) -> None:
    full = threading.Event()

    class Full(ClusterBackend):
        def launch(self, order: Any) -> None:
            while full.is_set():
                time.sleep(0.01)
            super().launch(order)

    plan = make_plan(tasks=3, reps=10, parallel=40)
    site.cluster.usual = Fate(seconds=3600)
    live, run = site.start(plan, backend=Full(site.cluster, slots=20))
    wait_until(lambda: len(site.cluster.living) == 20)
    full.set()
    site.cluster.hasten()
    wait_until(lambda: live.report().open == 40)  # those that ran are measured while every launch waits
    full.clear()
    run.result(60)
    audit(site.root, plan)


def test_an_order_that_found_no_room_is_signed_again(site: Site) -> None:
    class Late(ClusterBackend):
        def launch(self, order: Order) -> None:
            offered[order.id] += 1
            if offered[order.id] < 3:
                raise TooLate
            super().launch(order)

    offered = Counter[AttemptId]()
    plan, counting = make_plan(tasks=1, reps=2), Counting(site.store)
    assert site.dispatcher(plan, backend=Late(site.cluster), store=counting).run() is Ending.COMPLETE
    assert list(offered.values()) == [3] * 4
    assert counting.calls["create grants"] == 3 * 4
    assert all(outcome.attempts == 1 for outcome in audit(site.root, plan))


class Queued(ClusterBackend):
    """A queue that stands still: it holds every pod until its grants end, `rounds` times each."""

    rounds = 6

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.offered = Counter[AttemptId]()

    def waiting(self) -> dict[AttemptId, Wait]:
        return dict.fromkeys(self._mine, Wait.QUEUED)

    def launch(self, order: Order) -> None:
        self.offered[order.id] += 1
        if self.offered[order.id] > self.rounds:
            return super().launch(order)
        self._mine.add(order.id)
        return self._finished.put(Finished(order.id, RunnerTermination(requeued=True)))


def test_attempts_whose_grants_end_in_a_queue_are_launched_again_and_nothing_is_lost(site: Site) -> None:
    plan, counting = make_plan(tasks=1, reps=3), Counting(site.store)
    backend = Queued(site.cluster)
    assert site.dispatcher(plan, backend=backend, store=counting).run() is Ending.COMPLETE
    assert set(backend.offered.values()) == {Queued.rounds + 1}, "many more in a row than an outage has"
    assert counting.calls["create grants"] == 6 * (Queued.rounds + 1)
    assert all((outcome.attempts, outcome.losses) == (1, ()) for outcome in audit(site.root, plan))


def test_what_waits_for_its_place_is_pending_and_not_running(site: Site) -> None:
    class Held(ClusterBackend):
        def waiting(self) -> dict[AttemptId, Wait]:
            return {
                attempt: (Wait.QUEUED, Wait.STARTING)[attempt.trial < middle] for attempt in self.cluster.living
            }

    site.cluster.full = True
    plan = make_plan(tasks=1, reps=3, parallel=10)
    ids = sorted(trial.id for trial in trials(plan))
    middle = ids[2]
    live, run = site.start(plan, backend=Held(site.cluster))
    wait_until(lambda: sum(live.report().pending.values()) == 6)
    report = live.report()
    assert report.pending == {Wait.STARTING: 2, Wait.QUEUED: 4}
    total = sum(report.conditions.values(), ConditionCounts())
    assert (total.running, total.pending, report.running) == (0, 6, 6)
    site.cluster.place()
    run.result(60)


class Waiting(ClusterBackend):
    """Past `room` attempts, launches wait until they are withdrawn."""

    room = 2

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.held: set[AttemptId] = set()
        self.withdrawn: set[AttemptId] = set()
        self._door = threading.Lock()  # launches come from several threads at once

    def launch(self, order: Order) -> None:
        with self._door:
            if len(self.cluster.living) < self.room and not self.held:
                return super().launch(order)
            self.held.add(order.id)
        wait_until(lambda: order.id in self.withdrawn)
        self._mine.add(order.id)
        return self._finished.put(Finished(order.id, RunnerTermination(code=143)))

    def withdraw(self, attempts: Iterable[AttemptId]) -> None:
        self.withdrawn.update(attempts)


@pytest.mark.parametrize("how", ["cancel", "cancel --now", "halt"])
def test_a_launch_that_waits_does_not_keep_the_end_waiting(site: Site, how: str) -> None:
    plan = make_plan(tasks=1, reps=10, parallel=8)
    site.cluster.usual = Fate(seconds=3600)
    backend = Waiting(site.cluster)
    _, run = site.start(plan, backend=backend)
    wait_until(lambda: len(site.cluster.living) == 2 and len(backend.held) >= 2)
    if how == "halt":
        site.ledger.directives.halt(None, "test")
    else:
        site.ledger.directives.cancel(now=how == "cancel --now", by="test")
    if how != "cancel --now":
        wait_until(lambda: backend.withdrawn >= backend.held)
        site.cluster.hasten()
    assert run.result(60) is (Ending.HALTED if how == "halt" else Ending.CANCELLED)
    measured = sum(outcome.scored is not None for outcome in site.outcomes(plan))
    assert measured == (0 if how == "cancel --now" else 2), "what runs goes on, unless it is told to stop"
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
    plan = make_plan(tasks=2, reps=10, parallel=10)
    counting = Counting(site.store)
    once = replace(FAST, steer_s=3600, watch_s=3600)  # what is asked as time passes is no trial's
    assert site.dispatcher(plan, store=counting, intervals=once).run() is Ending.COMPLETE
    per_trial = {call: count for call, count in counting.calls.items() if count >= 40}
    expected = ("create intent.json", "create grants", "get end.json", "get bundle.tar.zst", "create outcomes")
    assert per_trial == dict.fromkeys(expected, 40)


def test_a_resume_starts_new_trials_before_it_has_read_the_old_ones(site: Site) -> None:
    """What has been read is noted as the first of them starts."""
    plan = make_plan(tasks=10, reps=6, parallel=60)
    site.cluster.usual = Fate(seconds=3600)
    site.leave_running(plan, 60)
    wider = plan.model_copy(update={"parallel": 200})
    slow, read = Counting(site.store, delay_s=0.05), list[int]()

    class Noting(ClusterBackend):
        def launch(self, order: Order) -> None:
            read.append(max(len(self.adopted), slow.calls["get intent.json"]))
            super().launch(order)

    _, run = site.start(wider, store=slow, backend=Noting(site.cluster))
    wait_until(lambda: bool(read))
    assert read[0] < 60
    site.ledger.directives.cancel(now=True, by="test")
    run.result(60)


def test_asked_twice_it_waits_for_no_store(site: Site) -> None:
    interrupt, store = Interrupt(), Counting(site.store)
    site.cluster.usual = Fate(seconds=0.1)
    patient = replace(FAST, wind_down_s=3600)
    _, run = site.start(make_plan(reps=10), store=store, interrupt=interrupt, intervals=patient)
    wait_until(lambda: bool(site.cluster.launches))
    store.silent.set()
    wait_until(lambda: store.unanswered > 0)
    interrupt.ask()
    time.sleep(0.5)
    assert not run.done(), "asked once, it ends what it has begun"
    interrupt.ask()
    run.result(60)
    store.silent.clear()


# --- leases -----------------------------------------------------------------------------------------


def test_a_lease_changes_while_it_runs(site: Site) -> None:
    plan = make_plan(tasks=2, reps=10, parallel=40)
    site.cluster.usual = Fate(seconds=0.05)
    live, run = site.start(plan, lease=Lease(width=1, oldest_open_block=0))
    wait_until(lambda: live.report().open < 40)
    assert site.cluster.most == 1
    wait_until(lambda: live.report().open == 40 - 5 * 4)  # four blocks past the oldest of the lease, and no more
    time.sleep(0.3)
    assert len(site.cluster.launches) == 20
    live.lease(Lease(width=8, oldest_open_block=9))
    run.result(60)
    assert 1 < site.cluster.most <= 8
    audit(site.root, plan)


def test_trouble_with_the_provider_in_another_shard_holds_this_one_back(site: Site) -> None:
    plan = make_plan(tasks=2, reps=10, parallel=40)
    site.cluster.usual = Fate(seconds=3600)
    interrupt, well = Interrupt(), Lease(width=4, oldest_open_block=9, elsewhere=Answers())
    live, run = site.start(plan, lease=well, interrupt=interrupt)
    wait_until(lambda: live.report().running == 4)
    troubled = replace(well, elsewhere=Answers(lost=10))
    live.lease(troubled)
    wait_until(lambda: live.report().lease == troubled)
    site.cluster.hasten()
    wait_until(lambda: live.report().answers == Answers(given=4))
    time.sleep(0.5)
    assert sum(site.cluster.launches.values()) == 4
    assert live.report().answers == Answers(given=4)
    interrupt.ask()
    run.result(60)


def test_the_pace_of_a_lease_is_kept(site: Site) -> None:
    plan = make_plan(tasks=1, reps=10, parallel=40)
    began = time.monotonic()
    lease = Lease(width=40, creates_per_s=20, creates_burst=2, oldest_open_block=9)
    assert site.dispatcher(plan, lease=lease).run() is Ending.COMPLETE
    assert time.monotonic() - began >= 18 / 20


def test_who_has_spent_its_share_waits_for_more(site: Site) -> None:
    plan = priced(make_plan(tasks=1, reps=5))
    live, run = site.start(plan, lease=Lease(width=4, money_usd=3, oldest_open_block=0))
    wait_until(lambda: live.report().starved)
    assert (live.report().spent_usd, live.report().open) == (3, 7)
    live.lease(Lease(width=4, money_usd=4, oldest_open_block=2))
    wait_until(lambda: live.report().starved and live.report().spent_usd == 4)
    live.lease(Lease(width=4, money_usd=4, oldest_open_block=2, ending=Ending.OUT_OF_MONEY))
    assert run.result(60) is Ending.OUT_OF_MONEY
    assert sum(site.cluster.executions.values()) == 4


def test_who_still_has_a_patch_to_score_has_not_run_out_of_money(site: Site) -> None:
    """Scoring costs nothing, and the supervisor ends a campaign whose shards can do nothing more."""
    plan = priced(make_plan(tasks=1, reps=1))
    site.cluster.fates[1] = Fate(loss=LossClass.STORE, patched=True)
    interrupt, lease = Interrupt(), Lease(width=4, money_usd=1, oldest_open_block=0)
    patient = replace(FAST, back_off_s=0.25)
    live, run = site.start(plan, lease=lease, interrupt=interrupt, intervals=patient)
    wait_until(lambda: live.report().starved)
    assert sorted(attempt.n for attempt in site.cluster.launches) == [1, 2]
    interrupt.ask()
    run.result(60)


def test_shards_share_a_campaign(site: Site) -> None:
    """Three dispatchers and somebody who passes on what they report: as the campaign's supervisor does."""
    plan = make_plan(tasks=3, reps=12, parallel=30)
    every = trials(plan)
    site.cluster.usual = Fate(seconds=0.01)
    shards = [
        site.dispatcher(plan, trials=of_shard(every, k, 3), lease=Lease(width=10, oldest_open_block=0))
        for k in range(3)
    ]
    runs = [in_background(shard.run) for shard in shards]
    while not all(run.done() for run in runs):
        oldest = oldest_open_block([shard.report() for shard in shards])
        for shard in shards:
            shard.lease(Lease(width=10, oldest_open_block=oldest if oldest is not None else 11))
        time.sleep(0.01)
    audit(site.root, plan)
    assert set(site.cluster.launches.values()) == {1}
