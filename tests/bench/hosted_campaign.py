"""A campaign of simulated pods driven by actors of Ray, beside two actors that do nothing: `python -m
tests.bench.hosted_campaign STORE NODE NAMESPACE [options]`. Prints the memory of both pairs as JSON, in MB. With
`--unwatched` nobody looks at their memory: that takes more than they do.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil

from tests.cluster.simulated_campaign import arguments, asked_plan
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.drive_options import AmendedLimits, DriveOptions
from trialfleet_controller.dispatch.stop_conditions import Interrupt
from trialfleet_controller.hosting import on_ray
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.messages import Supervisor
from trialfleet_controller.hosting.pods import drive_shards, pods
from trialfleet_controller.hosting.private_ray import PrivateRay
from trialfleet_controller.hosting.shard_host import DispatcherJob
from trialfleet_controller.status.progress import view
from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.campaign_spec import StoreSpec
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.store.open import open_store

EVERY_S = 1.0


class Idle:
    """An actor without work."""

    def begun(self) -> bool:
        return True


class Memory:
    """The most that two kinds of actors have taken together: their processes' proportional set sizes."""

    def __init__(self) -> None:
        self.peaks = dict.fromkeys(("idle", "working"), 0.0)
        self._over = threading.Event()

    def follow(self) -> None:
        while not self._over.wait(EVERY_S):
            self.peaks["idle"] = max(self.peaks["idle"], _pss_mb("ray::Idle"))
            working = _pss_mb("ray::Campaign", "ray::ShardDispatcher")
            self.peaks["working"] = max(self.peaks["working"], working)

    def stop(self) -> None:
        self._over.set()


def _pss_mb(*titles: str) -> float:
    """Of the processes whose titles begin so; 0 unless there are two."""
    found = [process for process in psutil.Process().children(recursive=True) if title(process).startswith(titles)]
    return sum(process.memory_full_info().pss for process in found) / 2**20 if len(found) == 2 else 0.0


def title(process: psutil.Process) -> str:
    """Its command line; Ray's actors call themselves `ray::` and their class. Empty once it has gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def main() -> None:
    parser = arguments("hosted")
    parser.add_argument("--unwatched", action="store_true", help="do not look at memory")
    options = parser.parse_args()
    plan = asked_plan(options)
    store = open_store(options.store)
    plan, _ = Ledger(store, plan.campaign).freeze(plan)
    driver = epochs.claim(store, plan.campaign, epochs.HeartbeatConfig())
    address, memory = StoreSpec(url=options.store), Memory()
    site = pods(plan, address, DriveOptions.of(plan), elsewhere=False)
    private = PrivateRay(cpus=4)
    try:
        idle = [private.ray.remote(num_cpus=0.1)(Idle).remote() for _ in range(2)]
        private.ray.get([actor.begun.remote() for actor in idle])
        if not options.unwatched:
            threading.Thread(target=memory.follow, daemon=True).start()

        @contextmanager
        def place(name: str, pool: Pool, jobs: Sequence[DispatcherJob]) -> Generator[Supervisor]:
            with on_ray.hosted(private.ray, name, pool, jobs) as supervisor:
                yield supervisor

        with view(as_json=True, terminal=False) as shown:
            limits, planned = AmendedLimits.of(plan), PlannedReps(plan.reps)
            ending = drive_shards(
                plan, limits, site, place, driver, Interrupt(), shown, lambda event: None, planned=planned
            )
        memory.stop()
    finally:
        private.close()
    driver.end()
    said: dict[str, Any] = {"ending": ending, **memory.peaks}
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
