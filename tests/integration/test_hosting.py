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
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.request import urlopen

import psutil
import pytest
from campaign_audit import audit
from fake_campaign import CAMPAIGN, fake_plan
from fake_site import Processes

from trialfleet_controller import epochs, keys
from trialfleet_controller.events import Event, Kind
from trialfleet_controller.hosting import on_ray, threads
from trialfleet_controller.hosting.division import Shard
from trialfleet_controller.hosting.follow import follow
from trialfleet_controller.hosting.host import Host, Job, Pace
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.messages import Reply, Said, Supervisor, Unanswered
from trialfleet_controller.hosting.place import Place
from trialfleet_controller.hosting.supervisor import Campaign
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.plan import trials
from trialfleet_controller.private_ray import PrivateRay
from trialfleet_controller.progress import view
from trialfleet_controller.shards import Ending
from trialfleet_controller.steering import Interrupt, Rhythm
from trialfleet_controller.tally import Tally
from trialfleet_runner.campaign import Plan, RetrySpec
from trialfleet_runner.contract import AgentSpec
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.directory import DirectoryStore
from trialfleet_runner.store.protocol import Entry, Store

FAST = Rhythm(poll_s=0.05, steer_s=0.1, watch_s=0.1, wind_down_s=5, back_off_s=0.001)
SECRET = "hush-hush-hush"
RAY_TOKEN = Path.home() / ".ray/auth_token"  # where Ray keeps the one it makes
PATIENT = RetrySpec(mid_run=10)  # each kill of a dispatcher loses what its processes ran


@dataclass
class Site:
    """One store, and controllers with two shards that come and go."""

    folder: Path
    plan: Plan
    events: list[Event] = field(default_factory=list[Event])
    interrupt: Interrupt = field(default_factory=Interrupt)

    @property
    def root(self) -> Path:
        return self.folder / "store"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def jobs(self, processes: Processes, epoch: int, shards: int = 2) -> list[Job]:
        return [
            Job(
                CAMPAIGN,
                Shard(index, shards),
                epoch,
                self.plan.reps,
                processes,
                version("trialfleet"),
                rhythm=FAST,
                pace=Pace(talk_s=0.1, silence_s=60),
            )
            for index in range(shards)
        ]

    def drive(self, place: Place, behaviour: str, **options: Any) -> Ending:
        """One controller's life, as the command line lives it."""
        processes = Processes(self.root, f"{behaviour},log={self.log}", **options)
        ledger = Ledger(processes.store(), CAMPAIGN)
        ledger.freeze(self.plan)
        driver = epochs.claim(ledger.store, CAMPAIGN, epochs.Pulse())
        name = f"{self.folder.name}-{driver.number}"
        try:
            with (
                place(name, Pool.of(self.plan), self.jobs(processes, driver.number)) as supervisor,
                view(as_json=False, terminal=False) as shown,
            ):
                empty = Tally.of(trials(self.plan))
                note = self.events.append
                return follow(supervisor, driver, self.interrupt, shown, note, empty=empty, every_s=0.1)
        finally:
            driver.end()

    def executions(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


def in_threads(_: str, pool: Pool, jobs: Any) -> Any:
    return threads.hosted(pool, jobs)


def wait_for(done: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def plan() -> Plan:
    """The same trials in every test, as two campaigns may have equal cells."""
    return fake_plan(tasks=2, reps=4, parallel=4, retries=PATIENT)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "scratch"))
    return Site(tmp_path, plan())


# --- in threads -----------------------------------------------------------------------------------


def test_two_shards_bring_every_trial_to_its_end_once(site: Site) -> None:
    assert site.drive(in_threads, "sleep=0.05,midloss=terminated:1") is Ending.COMPLETE
    outcomes = audit(site.root, site.plan, log=site.log)
    assert all(outcome.scored is not None and outcome.attempts == 2 for outcome in outcomes)
    kinds = Counter(event.kind for event in site.events)
    assert (kinds[Kind.LAUNCHED], kinds[Kind.LOST]) == (32, 16)
    assert (kinds[Kind.RETRIED], kinds[Kind.FINISHED]) == (16, 16)
    assert {event.shard for event in site.events} == {0, 1}
    launched = [event for event in site.events if event.kind is Kind.LAUNCHED]
    assert len({(event.trial, event.attempt) for event in launched}) == 32


def test_one_shard_that_cannot_go_on_stops_all_and_says_why(site: Site) -> None:
    with pytest.raises(OperatorError, match="no such namespace"):
        site.drive(in_threads, "sleep=60", refused=1)
    assert site.drive(in_threads, "sleep=0") is Ending.COMPLETE
    audit(site.root, site.plan, log=site.log)


def test_an_interruption_reaches_every_shard(site: Site) -> None:
    endings: list[Ending] = []
    thread = Thread(target=lambda: endings.append(site.drive(in_threads, "sleep=250")))
    thread.start()
    wait_for(lambda: site.executions() == 4)
    site.interrupt.ask()
    thread.join(120)
    assert endings == [Ending.INTERRUPTED]
    site.interrupt = Interrupt()
    assert site.drive(in_threads, "sleep=0") is Ending.COMPLETE
    audit(site.root, site.plan, log=site.log)


def test_two_shards_spend_no_more_than_the_campaign_has(site: Site) -> None:
    """Each trial costs 1 of at most 2 dollars; a cap of 9 pays for 8 of 16, whichever shard has them."""
    limits = site.plan.limits.model_copy(update={"cost_usd": 2.0})
    agent = AgentSpec(kind="nop", model="a-model")
    site.plan = site.plan.model_copy(update={"limits": limits, "cost_usd_campaign": 9.0, "agent": agent})
    assert site.drive(in_threads, "cost=1") is Ending.OUT_OF_MONEY
    assert site.executions() == 8  # after seven, two dollars are left: one more trial


class Listed(DirectoryStore):
    """Remembers what was listed."""

    prefixes: ClassVar[list[str]] = []

    def list(self, prefix: str) -> Iterator[Entry]:
        self.prefixes.append(prefix)
        return super().list(prefix)


class Watched(Processes):
    def store(self) -> Store:
        return Listed(self.root)


@pytest.mark.parametrize("cap", [None, 100.0])
def test_what_the_past_has_cost_is_read_where_there_is_a_cap(site: Site, cap: float | None) -> None:
    """Else a resume would begin with the chain of every trial that took a second attempt."""
    limits = site.plan.limits.model_copy(update={"cost_usd": 2.0})
    agent = AgentSpec(kind="nop", model="a-model")
    small = fake_plan(tasks=1, reps=2, retries=PATIENT)
    site.plan = small.model_copy(update={"limits": limits, "cost_usd_campaign": cap, "agent": agent})
    assert site.drive(in_threads, "midloss=terminated:1") is Ending.COMPLETE
    Listed.prefixes.clear()
    campaign = Campaign(Pool.of(site.plan), 1)
    (job,) = site.jobs(Watched(site.root, "sleep=0"), epoch=0, shards=1)
    host = Host(replace(job, pulse=epochs.Pulse(enabled=False)), campaign.exchange)
    host.start()
    try:
        wait_for(lambda: campaign.summary(0).ending is Ending.COMPLETE)
    finally:
        host.close()
    chains = {prefix for prefix in Listed.prefixes if prefix.startswith(keys.attempts(CAMPAIGN))}
    assert len([prefix for prefix in chains if prefix.endswith("/")]) == (0 if cap is None else 4)


def holds_back(host: Host) -> bool:
    """Its lease is taken, and what ran has ended: between two trials, nothing runs either."""
    report = host.report()
    return report.lease is not None and report.lease.width == 0 and report.running == 0


def test_a_dispatcher_that_hears_nothing_starts_nothing(site: Site) -> None:
    """What runs goes on to its end; once it is answered again, it goes on."""
    campaign, silent = Campaign(Pool.of(site.plan), 1), False

    def exchange(said: Said) -> Reply:
        if silent:
            raise Unanswered
        return campaign.exchange(said)

    processes = Processes(site.root, f"sleep=0.8,log={site.log}")
    Ledger(processes.store(), CAMPAIGN).freeze(site.plan)
    (job,) = site.jobs(processes, epoch=0, shards=1)
    host = Host(replace(job, pace=Pace(talk_s=0.05, silence_s=0.3), pulse=epochs.Pulse(enabled=False)), exchange)
    host.start()
    try:
        wait_for(lambda: site.executions() >= 4)
        silent = True
        wait_for(partial(holds_back, host))
        before = site.executions()
        assert before < 16
        time.sleep(1)
        assert site.executions() == before
        silent = False
        wait_for(lambda: campaign.summary(0).ending is Ending.COMPLETE)
    finally:
        host.close()
    audit(site.root, site.plan, log=site.log)


def test_while_attempts_run_and_nothing_changes_little_is_said(site: Site) -> None:
    campaign, said = Campaign(Pool.of(site.plan), 1), list[Said]()

    def exchange(message: Said) -> Reply:
        said.append(message)
        return campaign.exchange(message)

    processes = Processes(site.root, f"sleep=3600,log={site.log}")
    Ledger(processes.store(), CAMPAIGN).freeze(site.plan)
    (job,) = site.jobs(processes, epoch=0, shards=1)
    host = Host(replace(job, pace=Pace(talk_s=0.1), pulse=epochs.Pulse(enabled=False)), exchange)
    host.start()
    try:
        wait_for(lambda: len(said) > 8 and said[-1].report.running == said[-8].report.running > 0)
        before = len(said)
        time.sleep(4)
        assert len(said) - before < 20, "ten in a second, while there is news"
    finally:
        host.close()


def test_a_bug_in_the_talk_is_said(site: Site) -> None:
    """The next message carries the traceback, and what is idle starts nothing more."""
    said: list[Said] = []
    pool = Campaign(Pool.of(site.plan), 1)

    def exchange(message: Said) -> Reply:
        said.append(message)
        if len(said) == 1:
            raise ZeroDivisionError("a planted bug")
        return pool.exchange(message)

    processes = Processes(site.root, f"sleep=0,log={site.log}")
    Ledger(processes.store(), CAMPAIGN).freeze(site.plan)
    (job,) = site.jobs(processes, epoch=0, shards=1)
    host = Host(replace(job, pace=Pace(talk_s=0.05), pulse=epochs.Pulse(enabled=False)), exchange)
    host.start()
    try:
        wait_for(lambda: len(said) > 1 and said[-1].failure is not None)
    finally:
        host.close()
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
    """Its workers find the modules beside this one. What runs there has the environment of its start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
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
    (tmp_path / "newer.py").write_text("from fake_site import Processes\nclass Newer(Processes): ...\n")
    sys.path.insert(0, str(tmp_path))
    try:
        from newer import Newer  # type: ignore[import-not-found]

        jobs = site.jobs(Newer(site.root, ""), epoch=1)
        with (
            on_ray.hosted(ray, tmp_path.name, Pool.of(site.plan), jobs) as supervisor,
            pytest.raises(OperatorError, match="No module named 'newer'"),
        ):
            wait_for(lambda: ending_of(supervisor) is not None)
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
    limits = site.plan.limits.model_copy(update={"cost_usd": 2.0})
    agent = AgentSpec(kind="nop", model="a-model")
    site.plan = site.plan.model_copy(update={"limits": limits, "cost_usd_campaign": 99.0, "agent": agent})
    processes = Processes(site.root, "cost=1,midloss=terminated:1")
    ledger = Ledger(processes.store(), CAMPAIGN)
    ledger.freeze(site.plan)
    driver = epochs.claim(ledger.store, CAMPAIGN, epochs.Pulse())
    jobs = site.jobs(processes, driver.number)
    told = {
        "trials": {"measured": 16.0, "abandoned": 0.0, "running": 0.0, "waiting": 0.0},
        "running": {"": 0.0},
        "lost": {"terminated": 16.0},
        "spent": {"": 16 * 1.0 + 16 * 2.0},
        "launches": {"": 32.0},
        "events": {"launched": 32.0, "lost": 16.0, "retried": 16.0, "finished": 16.0},
    }
    with on_ray.hosted(ray, site.folder.name, Pool.of(site.plan), jobs) as supervisor:
        wait_for(lambda: ending_of(supervisor) is Ending.COMPLETE)
        # Each of Ray's processes hands on what it has every ten seconds, and its exporter begins when it can.
        with suppress(AssertionError):
            wait_for(lambda: told_by(scraped(metrics_port)[1]) == told)
        text, samples = scraped(metrics_port)
    driver.end()
    assert told_by(samples) == told
    assert summed(samples, "trialfleet_events_total", "event")["leased"] > 0

    table = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text()
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
    endings: list[Ending] = []
    thread = Thread(target=lambda: endings.append(site.drive(partial(on_ray.hosted, ray), "sleep=1.5")))
    thread.start()
    wait_for(lambda: site.executions() >= 4)
    for name in killed:
        os.kill(actors(ray, site)[name]["Pid"], signal.SIGKILL)
    thread.join(200)
    assert endings == [Ending.COMPLETE]
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
    program = Path(__file__).with_name("drives_on_ray.py")
    address = ray.get_runtime_context().gcs_address
    token = {"RAY_AUTH_TOKEN": RAY_TOKEN.read_text().strip()}
    driver = subprocess.Popen([sys.executable, str(program), address, str(site.folder)], env=os.environ | token)
    try:
        wait_for(lambda: site.executions() >= 4)
    finally:
        driver.kill()
        driver.wait()
    wait_for(lambda: {actor["State"] for actor in actors(ray, site).values()} == {"DEAD"})
    wait_for(lambda: not any(psutil.pid_exists(actor["Pid"]) for actor in actors(ray, site).values()))
    assert site.drive(partial(on_ray.hosted, ray), "sleep=0") is Ending.COMPLETE
    assert {actor["NumRestarts"] for actor in actors(ray, site, epoch=2).values()} == {0}
    audit(site.root, site.plan, log=site.log)
