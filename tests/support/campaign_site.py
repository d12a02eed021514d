"""One store and one simulated cluster, and controllers that come and go."""

from __future__ import annotations

from pathlib import Path

from tests.support.plans import CAMPAIGN
from tests.support.simulated_cluster import Cluster, ClusterBackend
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.looks import Looks
from trialfleet_controller.dispatch.shards import Ending, Lease, of_shard
from trialfleet_controller.dispatch.stop_conditions import PollIntervals
from trialfleet_controller.status.campaign_status import State, read_status
from trialfleet_ledger.amendments import most_reps, planned_reps
from trialfleet_ledger.designs.looks import Decision
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import trials

FAST = PollIntervals(poll_s=0.05, steer_s=0.05, watch_s=0.05, back_off_s=0.001, wind_down_s=5)


def site_reps(ledger: Ledger, plan: Plan) -> int:
    """As the command line: re-estimated ones where a look has made them; amendments are given by the test."""
    return planned_reps(plan, (), ledger.directives.decisions(), ()).most


class Site:
    """One store and one cluster, and controllers that come and go."""

    def __init__(self, folder: Path) -> None:
        self.store = DirectoryStore(folder / "store")
        self.ledger = Ledger(self.store, CAMPAIGN)
        self.cluster = Cluster(self.store)
        self.told: list[str] = []

    def dispatcher(
        self, plan: Plan, *, obey: bool = True, shard: int = 0, shards: int = 1, reps: int = 0
    ) -> Dispatcher:
        self.ledger.freeze(plan)
        every = trials(plan, most_reps(plan, reps or site_reps(self.ledger, plan)))
        driver = epochs.Driver(self.store, CAMPAIGN, 1, epochs.HeartbeatConfig(enabled=False))
        return Dispatcher(
            plan,
            of_shard(every, shard, shards),
            self.ledger,
            ClusterBackend(self.cluster),
            driver,
            looks=Looks(
                plan,
                lambda: every,
                self.ledger,
                epoch=1,
                reps=reps or site_reps(self.ledger, plan),
                obey_futility=obey,
            ),
            lease=Lease(20) if shards == 1 else Lease(20, oldest_open_block=0),
            tell=self.told.append,
            intervals=FAST,
        )

    def run(self, plan: Plan, *, obey: bool = True, reps: int = 0) -> Ending:
        return self.dispatcher(plan, obey=obey, reps=reps).run()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return self.ledger.directives.decisions()

    @property
    def state(self) -> State:
        return read_status(self.store, CAMPAIGN).state

    def blocks(self, plan: Plan) -> set[int]:
        """Of every trial that was launched."""
        block = {trial.id: trial.block for trial in trials(plan, 20)}
        return {block[attempt.trial] for attempt in self.cluster.order}
