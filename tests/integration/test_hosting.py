"""A campaign in shards, hosted in threads and on a real Ray; dispatchers and supervisor killed in the middle."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from urllib.request import urlopen

import psutil
import pytest

from tests.support.audit import audit
from tests.support.hosted_campaign import PATIENT, Processes, Site, plan
from tests.support.plans import CAMPAIGN, make_plan, priced
from tests.support.waiting import in_background, wait_until
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.events import EventKind
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_controller.dispatch.stop_conditions import Interrupt
from trialfleet_controller.hosting import on_ray
from trialfleet_controller.hosting.division import Shard
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.messages import ShardReport, Supervisor, SupervisorReply, Unanswered
from trialfleet_controller.hosting.place import in_threads
from trialfleet_controller.hosting.private_ray import PrivateRay
from trialfleet_controller.hosting.shard_host import MessageIntervals, ShardHost
from trialfleet_controller.hosting.supervisor import CampaignSupervisor
from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import ListedKey, Store, StoreError
from trialfleet_ledger.trial_order import trials

CHECKOUT = Path(__file__).parents[2]
SECRET = "hush-hush-hush"
RAY_TOKEN = Path.home() / ".ray/auth_token"  # where Ray keeps the one it makes


def threads(_: str, pool: Pool, jobs: Any) -> Any:
    return in_threads(pool, jobs)


@contextmanager
def hosted(
    site: Site, processes: Processes, exchange: Callable[[ShardReport], SupervisorReply], **times: float
) -> Iterator[ShardHost]:
    """The only shard, in this process. `times`: of its messages."""
    Ledger(processes.store(), CAMPAIGN).freeze(site.plan)
    (job,) = site.jobs(processes, epoch=0, shards=1)
    quiet = epochs.HeartbeatConfig(enabled=False)
    host = ShardHost(replace(job, message_intervals=MessageIntervals(**times), heartbeat=quiet), exchange)
    host.start()
    try:
        yield host
    finally:
        host.close()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "scratch"))
    return Site(tmp_path, plan())


# --- in threads -----------------------------------------------------------------------------------


def test_two_shards_bring_every_trial_to_its_end_once(site: Site) -> None:
    assert site.drive(threads, "sleep=0.05,midloss=terminated:1") is Ending.COMPLETE
    outcomes = audit(site.root, site.plan, log=site.log)
    assert all(outcome.scored is not None and outcome.attempts == 2 for outcome in outcomes)
    kinds = Counter(event.kind for event in site.events)
    assert (kinds[EventKind.LAUNCHED], kinds[EventKind.LOST]) == (32, 16)
    assert (kinds[EventKind.RETRIED], kinds[EventKind.FINISHED]) == (16, 16)
    assert {event.shard for event in site.events} == {0, 1}
    launched = [event for event in site.events if event.kind is EventKind.LAUNCHED]
    assert len({(event.trial, event.attempt) for event in launched}) == 32


def test_one_shard_that_cannot_go_on_stops_all_and_says_why(site: Site) -> None:
    with pytest.raises(OperatorError, match="no such namespace"):
        site.drive(threads, "sleep=60", refused=1)
    assert site.drive(threads, "sleep=0") is Ending.COMPLETE
    audit(site.root, site.plan, log=site.log)


def test_an_interruption_reaches_every_shard(site: Site) -> None:
    run = in_background(site.drive, threads, "sleep=250")
    wait_until(lambda: site.executions() == 4)
    site.interrupt.ask()
    site.interrupt.ask()
    assert run.result(120) is Ending.INTERRUPTED
    site.interrupt = Interrupt()
    assert site.drive(threads, "sleep=0") is Ending.COMPLETE
    audit(site.root, site.plan, log=site.log)


def test_two_shards_spend_no_more_than_the_campaign_has(site: Site) -> None:
    """Each trial costs 1 of at most 2 dollars; a cap of 9 pays for 8 of 16, whichever shard has them."""
    site.plan = priced(site.plan, trial=2, campaign=9)
    assert site.drive(threads, "cost=1") is Ending.OUT_OF_MONEY
    assert site.executions() == 8  # after seven, two dollars are left: one more trial


def test_the_wall_clock_limit_ends_all_shards_and_what_ran_is_finished(site: Site) -> None:
    site.ends_at = time.time() + 2
    assert site.drive(threads, "sleep=1") is Ending.OUT_OF_TIME
    ledger = Ledger(DirectoryStore(site.root), CAMPAIGN)
    done = set(ledger.attempts.outcome_ids())
    assert len(done) < len(trials(site.plan))
    assert not ledger.survey().open, "nothing is left running"
    site.ends_at = time.time() + 3600
    assert site.drive(threads, "sleep=0") is Ending.COMPLETE
    site.ends_at = time.time() - 1
    assert site.drive(threads, "sleep=0") is Ending.COMPLETE, "nothing was left to start"


class Listed(DirectoryStore):
    """Remembers what was listed."""

    prefixes: ClassVar[list[str]] = []

    def list(self, prefix: str) -> Iterator[ListedKey]:
        self.prefixes.append(prefix)
        return super().list(prefix)


class Watched(Processes):
    def store(self) -> Store:
        return Listed(self.root)


@pytest.mark.parametrize("cap", [None, 100.0])
def test_what_the_past_has_cost_is_read_where_there_is_a_cap(site: Site, cap: float | None) -> None:
    """Else a resume would begin with the chain of every trial that took a second attempt."""
    site.plan = priced(make_plan(tasks=1, reps=2, retries=PATIENT), trial=2, campaign=cap)
    assert site.drive(threads, "midloss=terminated:1") is Ending.COMPLETE
    Listed.prefixes.clear()
    campaign = CampaignSupervisor(site.pool, 1)
    with hosted(site, Watched(site.root, "sleep=0"), campaign.exchange, talk_s=0.1):
        wait_until(lambda: campaign.summary(0).ending is Ending.COMPLETE)
    chains = {prefix for prefix in Listed.prefixes if prefix.startswith(keys.attempts(CAMPAIGN))}
    assert len([prefix for prefix in chains if prefix.endswith("/")]) == (0 if cap is None else 4)


def holds_back(host: ShardHost) -> bool:
    """Its lease is taken, and what ran has ended: between two trials, nothing runs either."""
    report = host.report()
    return report.lease is not None and report.lease.width == 0 and report.running == 0


def test_a_dispatcher_that_hears_nothing_starts_nothing(site: Site) -> None:
    """What runs goes on to its end; once it is answered again, it goes on."""
    campaign, silent = CampaignSupervisor(site.pool, 1), False

    def exchange(said: ShardReport) -> SupervisorReply:
        if silent:
            raise Unanswered
        return campaign.exchange(said)

    processes = Processes(site.root, f"sleep=0.8,log={site.log}")
    with hosted(site, processes, exchange, talk_s=0.05, silence_s=0.3) as host:
        wait_until(lambda: site.executions() >= 4)
        silent = True
        wait_until(partial(holds_back, host))
        before = site.executions()
        assert before < 16
        time.sleep(1)
        assert site.executions() == before
        silent = False
        wait_until(lambda: campaign.summary(0).ending is Ending.COMPLETE)
    audit(site.root, site.plan, log=site.log)


def test_why_a_store_failed_arrives_with_its_way_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(host: ShardHost) -> Dispatcher:
        raise StoreError("the store is full", hint="raise its quota")

    monkeypatch.setattr(ShardHost, "_dispatcher", full)
    campaign = CampaignSupervisor(site.pool, 1)
    with hosted(site, Processes(site.root, ""), campaign.exchange, talk_s=0.05):
        wait_until(lambda: campaign.summary(0).failure is not None)
    failure = campaign.summary(0).failure
    assert failure is not None
    error = failure.raised()
    assert isinstance(error, StoreError)
    assert (str(error), error.hint) == ("the store is full", "raise its quota")


def test_while_attempts_run_and_nothing_changes_little_is_said(site: Site) -> None:
    campaign, said = CampaignSupervisor(site.pool, 1), list[ShardReport]()

    def exchange(message: ShardReport) -> SupervisorReply:
        said.append(message)
        return campaign.exchange(message)

    processes = Processes(site.root, f"sleep=3600,log={site.log}")
    with hosted(site, processes, exchange, talk_s=0.1):
        wait_until(lambda: len(said) > 8 and said[-1].report.running == said[-8].report.running > 0)
        before = len(said)
        time.sleep(4)
        assert len(said) - before < 20, "ten in a second, while there is news"


def test_a_bug_in_the_talk_is_said(site: Site) -> None:
    """The next message carries the traceback, and what is idle starts nothing more."""
    said: list[ShardReport] = []
    pool = CampaignSupervisor(site.pool, 1)

    def exchange(message: ShardReport) -> SupervisorReply:
        said.append(message)
        if len(said) == 1:
            raise ZeroDivisionError("a planted bug")
        return pool.exchange(message)

    processes = Processes(site.root, f"sleep=0,log={site.log}")
    with hosted(site, processes, exchange, talk_s=0.05):
        wait_until(lambda: len(said) > 1 and said[-1].failure is not None)
    failure = said[-1].failure
    assert failure is not None
    assert (failure.kind, "a planted bug" in failure.message) == ("bug", True)
    assert site.executions() == 0


# --- on Ray ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def metrics_port() -> int:
    """None of those that systems hand out by themselves: seconds pass until Ray's exporter takes it."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as free, suppress(OSError):
            free.bind(("", port))
            return port


@pytest.fixture(scope="module")
def ray(metrics_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Its workers find the modules of tests/support. What runs there has the environment of its start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(CHECKOUT))
        patch.setenv("TRIALFLEET_SCRATCH", str(tmp_path_factory.mktemp("scratch")))
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        private = PrivateRay(cpus=4, metrics_port=metrics_port)
    yield private.ray
    private.close()


def actors(ray: Any, site: Site, epoch: int = 1) -> dict[str, dict[str, Any]]:
    """What Ray knows of a controller's actors, those that are over too, by the last part of their names."""
    start = f"{site.folder.name}-{epoch}-"
    every = ray._private.state.actors().values()
    return {found["Name"].removeprefix(start): found for found in every if found["Name"].startswith(start)}


def ending_of(supervisor: Supervisor) -> Ending | None:
    """None also while its actor does not answer: on a busy machine it takes long to begin."""
    try:
        return supervisor.summary(0).ending
    except Unanswered:
        return None


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_node_with_another_version_is_said(site: Site, ray: Any, tmp_path: Path) -> None:
    """What the command line knows and the node does not cannot even be read there."""
    (tmp_path / "newer.py").write_text(
        "from tests.support.hosted_campaign import Processes\nclass Newer(Processes): ...\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        from newer import Newer  # type: ignore[import-not-found]

        jobs = site.jobs(Newer(site.root, ""), epoch=1)
        with (
            on_ray.hosted(ray, tmp_path.name, site.pool, jobs) as supervisor,
            pytest.raises(OperatorError, match="No module named 'newer'"),
        ):
            wait_until(lambda: ending_of(supervisor) is not None)
    finally:
        sys.path.remove(str(tmp_path))


Sample = tuple[str, dict[str, str], float]


def scraped(port: int) -> tuple[str, list[Sample]]:
    """All that the port says, and what of it is ours: names, labels and values. Nothing while nobody listens."""
    text = ""
    with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        text = response.read().decode()
    ours = re.findall(r"^ray_(trialfleet_\w+){(.*)} (\S+)$", text, re.MULTILINE)
    return text, [(name, dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(v)) for name, labels, v in ours]


def summed(samples: list[Sample], name: str, by: str | None = None) -> dict[str, float]:
    """Over shards; by the values of a label."""
    sums: Counter[str] = Counter()
    for found, labels, value in samples:
        if found == name:
            sums[labels[by] if by else ""] += value  # type: ignore[assignment]
    return {key: float(value) for key, value in sums.items()}


def told_by(samples: list[Sample]) -> dict[str, dict[str, float]]:
    """All that is exact once a campaign is over; how often widths were leased is not."""
    events = summed(samples, "trialfleet_events_total", "event")
    return {
        "trials": summed(samples, "trialfleet_trials", "state"),
        "running": summed(samples, "trialfleet_attempts_running"),
        "lost": summed(samples, "trialfleet_attempts_lost", "loss"),
        "spent": summed(samples, "trialfleet_spent_usd"),
        "launches": summed(samples, "trialfleet_launch_seconds_count"),
        "events": {event: count for event, count in events.items() if event != "leased"},
    }


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_prometheus_sees_what_is_documented(site: Site, ray: Any, metrics_port: int) -> None:
    """Every trial is lost once and costs a dollar of at most two each time; what was lost may have cost all."""
    site.plan = priced(site.plan, trial=2, campaign=99)
    processes = Processes(site.root, "cost=1,midloss=terminated:1")
    ledger = Ledger(processes.store(), CAMPAIGN)
    ledger.freeze(site.plan)
    driver = epochs.claim(ledger.store, CAMPAIGN, epochs.HeartbeatConfig())
    jobs = site.jobs(processes, driver.number)
    told = {
        "trials": {"measured": 16.0, "abandoned": 0.0, "running": 0.0, "pending": 0.0, "waiting": 0.0},
        "running": {"": 0.0},
        "lost": {"terminated": 16.0},
        "spent": {"": 16 * 1.0 + 16 * 2.0},
        "launches": {"": 32.0},
        "events": {"launched": 32.0, "lost": 16.0, "retried": 16.0, "finished": 16.0},
    }
    with on_ray.hosted(ray, site.folder.name, site.pool, jobs) as supervisor:
        wait_until(lambda: ending_of(supervisor) is Ending.COMPLETE)
        # Each of Ray's processes hands on what it has every ten seconds, and its exporter begins when it can.
        with suppress(AssertionError):
            wait_until(lambda: told_by(scraped(metrics_port)[1]) == told)
        text, samples = scraped(metrics_port)
    driver.end()
    assert told_by(samples) == told
    assert summed(samples, "trialfleet_events_total", "event")["leased"] > 0

    table = (CHECKOUT / "docs/reference/metrics.md").read_text()
    documented = set(re.findall(r"^\| `(trialfleet_\w+)`", table, re.MULTILINE))
    assert {re.sub("_(bucket|count|sum)$", "", name) for name, _, _ in samples} == documented
    assert {(labels["campaign"], labels["shard"], labels["namespace"]) for _, labels, _ in samples} == {
        (CAMPAIGN, "0", ""),
        (CAMPAIGN, "1", ""),
    }
    assert not {word for _, labels, _ in samples for word in labels.values() if re.search("pass|fail", word)}
    assert SECRET not in text
    assert RAY_TOKEN.read_text().strip() not in text


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "killed", [("dispatcher-0",), ("campaign",), ("dispatcher-0", "campaign")], ids=" and ".join
)
def test_killed_actors_come_back_alone_and_every_trial_counts_once(
    site: Site, ray: Any, killed: tuple[str, ...]
) -> None:
    run = in_background(site.drive, partial(on_ray.hosted, ray), "sleep=1.5")
    wait_until(lambda: site.executions() >= 4)
    for name in killed:
        os.kill(actors(ray, site)[name]["Pid"], signal.SIGKILL)
    assert run.result(200) is Ending.COMPLETE
    restarts = {name: actor["NumRestarts"] for name, actor in actors(ray, site).items()}
    assert restarts == {name: int(name in killed) for name in ("campaign", "dispatcher-0", "dispatcher-1")}
    bereft = Shard(0, 2).mine(trials(site.plan)) if "dispatcher-0" in killed else []
    losses = {o.trial.id: o.losses for o in audit(site.root, site.plan, log=site.log) if o.losses}
    assert losses.keys() <= {trial.id for trial in bereft}
    assert sum(map(len, losses.values())) <= 4


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_actors_end_with_a_killed_command_line_though_their_ray_lives_on(site: Site, ray: Any) -> None:
    address = ray.get_runtime_context().gcs_address
    token = {"RAY_AUTH_TOKEN": RAY_TOKEN.read_text().strip()}
    program = [sys.executable, "-m", "tests.support.drive_on_ray", address, str(site.folder)]
    driver = subprocess.Popen(program, env=os.environ | token, cwd=CHECKOUT)
    try:
        wait_until(lambda: site.executions() >= 4)
    finally:
        driver.kill()
        driver.wait()
    wait_until(lambda: {actor["State"] for actor in actors(ray, site).values()} == {"DEAD"})
    wait_until(lambda: not any(psutil.pid_exists(actor["Pid"]) for actor in actors(ray, site).values()))
    assert site.drive(partial(on_ray.hosted, ray), "sleep=0") is Ending.COMPLETE
    assert {actor["NumRestarts"] for actor in actors(ray, site, epoch=2).values()} == {0}
    audit(site.root, site.plan, log=site.log)
