"""A campaign in shards whose runners are fake processes over a directory store. Ray's workers import it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.support.fake_campaign import fake_argv
from tests.support.plans import CAMPAIGN, make_plan
from trialfleet_controller.backends.local.process_backend import ProcessBackend
from trialfleet_controller.backends.protocol import Backend
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.drive_options import DriveOptions
from trialfleet_controller.dispatch.events import CampaignEvent
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_controller.dispatch.stop_conditions import Interrupt, PollIntervals
from trialfleet_controller.dispatch.tally import CampaignTally
from trialfleet_controller.hosting.division import Shard
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.monitor import monitor
from trialfleet_controller.hosting.place import Place
from trialfleet_controller.hosting.shard_host import DispatcherJob, MessageIntervals
from trialfleet_controller.status.progress import view
from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.trial_order import trials

FAST = PollIntervals(poll_s=0.05, steer_s=0.1, watch_s=0.1, wind_down_s=5, back_off_s=0.001)
PATIENT = RetrySpec(mid_run=10)  # each kill of a dispatcher loses what its processes ran


def plan() -> Plan:
    """The same trials in every test, as two campaigns may have equal cells."""
    return make_plan(tasks=2, reps=4, parallel=4, retries=PATIENT)


@dataclass(frozen=True)
class Processes:
    """`behaviour`: of the fake runner; `refused`: a shard that cannot have a backend."""

    root: Path
    behaviour: str
    slots: int = 4
    refused: int | None = None

    def store(self) -> Store:
        return DirectoryStore(self.root)

    def backend(self, plan: Plan, shard: Shard, tell: Callable[[str], None]) -> Backend:
        if shard.index == self.refused:
            raise OperatorError("no such namespace", where="kubernetes: namespaces", hint="make it")
        return ProcessBackend(slots=self.slots, runner=fake_argv(self.behaviour), work=self.root.parent / "work")


@dataclass
class Site:
    """One store, and controllers with two shards that come and go."""

    folder: Path
    plan: Plan
    events: list[CampaignEvent] = field(default_factory=list[CampaignEvent])
    interrupt: Interrupt = field(default_factory=Interrupt)
    ends_at: float | None = None

    @property
    def root(self) -> Path:
        return self.folder / "store"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def pool(self) -> Pool:
        return Pool.of(self.plan, DriveOptions.of(self.plan), self.plan.cost_usd_campaign)

    def jobs(self, processes: Processes, epoch: int, shards: int = 2) -> list[DispatcherJob]:
        return [
            DispatcherJob(
                CAMPAIGN,
                Shard(index, shards),
                epoch,
                self.plan.reps,
                processes,
                version("trialfleet"),
                ends_at=self.ends_at,
                intervals=FAST,
                message_intervals=MessageIntervals(talk_s=0.1, silence_s=60),
            )
            for index in range(shards)
        ]

    def drive(self, place: Place, behaviour: str, **options: Any) -> Ending:
        """One controller's life, as the command line lives it."""
        processes = Processes(self.root, f"{behaviour},log={self.log}", **options)
        ledger = Ledger(processes.store(), CAMPAIGN)
        ledger.freeze(self.plan)
        driver = epochs.claim(ledger.store, CAMPAIGN, epochs.HeartbeatConfig())
        name = f"{self.folder.name}-{driver.number}"
        try:
            with (
                place(name, self.pool, self.jobs(processes, driver.number)) as supervisor,
                view(as_json=False, terminal=False) as shown,
            ):
                empty = CampaignTally.of(trials(self.plan))
                note = self.events.append
                limits = self.plan.limits
                return monitor(
                    supervisor, driver, self.interrupt, shown, note, empty=empty, limits=limits, every_s=0.1
                )
        finally:
            driver.end()

    def executions(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0
