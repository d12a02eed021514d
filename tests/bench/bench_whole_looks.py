"""Whole campaigns with declared looks, through ledger and controller on a simulated cluster: each must stop at the
look, and for the reason, that the test names from the outcomes which the trials' seeds give.

`$TRIALFLEET_BENCH_CAMPAIGNS` chooses another number of them.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from tests.bench.figure import Figure
from tests.support.plans import CAMPAIGN, make_plan
from tests.support.simulated_cluster import Cluster, ClusterBackend
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.looks import Looks
from trialfleet_controller.dispatch.shards import Lease, of_shard
from trialfleet_controller.dispatch.stop_conditions import PollIntervals
from trialfleet_designs.monitoring import design_of, futility_of
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import StopRule
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import trials
from trialfleet_statistics.sequential import SequentialStage, futile, monitor, stage

CAMPAIGNS = int(os.environ.get("TRIALFLEET_BENCH_CAMPAIGNS", "200"))
TREATED, CONTROL = "flat_llm", "none"
RATES = ((0.5, 0.5), (0.7, 0.4), (0.9, 0.3), (0.35, 0.6))  # of treatment and control, in turn
FAST = PollIntervals(poll_s=0.01, steer_s=0.01, watch_s=0.01, back_off_s=0.001, wind_down_s=5)


def measure() -> list[Figure]:
    began, agreed, at = time.perf_counter(), 0, dict[str, int]()
    for number in range(CAMPAIGNS):
        plan, rates = _planned(number), dict(zip((TREATED, CONTROL), RATES[number % len(RATES)], strict=True))
        expected = _named(plan, rates)
        found = _run(plan, rates)
        agreed += found == expected
        at[f"look {expected[0]}"] = at.get(f"look {expected[0]}", 0) + 1
    taken = (time.perf_counter() - began) / CAMPAIGNS
    note = ", ".join(f"{name}: {count}" for name, count in sorted(at.items()))
    name = f"of {CAMPAIGNS} whole campaigns, those that stop at the look that the test names"
    return [
        Figure(name, agreed, "", note=note, floor=CAMPAIGNS),
        Figure("one whole campaign of at most 7 × 10 × 2 trials", taken, "s"),
    ]


def _planned(number: int) -> Plan:
    primary = Primary(treatment=TREATED, control=CONTROL, stop=StopRule(looks=5))
    return make_plan(7, (CONTROL, TREATED), seed=1000 + number, reps=10, parallel=40, primary=primary)


def _named(plan: Plan, rates: dict[str, float]) -> tuple[int, str]:
    """The look and the verdict, from the trials' seeds alone."""
    assert plan.primary is not None
    design, rule = design_of(plan.primary, plan.reps), futility_of(plan.primary)
    stages: list[SequentialStage] = []
    for number in range(1, len(design.looks) + 1):
        stages.append(
            _stage(plan, rates, design.looks[number - 1] - design.stage(number), design.looks[number - 1])
        )
        look = monitor(design, stages)[-1]
        if look.crossed:
            return number, "benefit" if look.crossed > 0 else "harm"
        if futile(design, rule, look, tasks=len(plan.tasks)):
            return number, "futility"
    return len(design.looks), "end"


def _stage(plan: Plan, rates: dict[str, float], first: int, last: int) -> SequentialStage:
    tasks, reps = [task.order.id for task in plan.tasks], last - first
    passed = {(task, condition): 0 for task in tasks for condition in rates}
    for trial in trials(plan, plan.reps):
        if first <= trial.block < last:
            passed[trial.task, trial.condition] += trial.seed / 2**63 < rates[trial.condition]
    of_a, of_b = ([passed[task, condition] for task in tasks] for condition in (TREATED, CONTROL))
    return stage(of_a, [reps] * len(tasks), of_b, [reps] * len(tasks), blocks=reps)


def _run(plan: Plan, rates: dict[str, float]) -> tuple[int, str]:
    """The number and the verdict of its last decision."""
    with tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
        store = DirectoryStore(Path(folder) / "store")
        ledger, cluster = Ledger(store, CAMPAIGN), Cluster(store)
        cluster.rates = rates
        ledger.freeze(plan)
        every = trials(plan, plan.reps)
        driver = epochs.Driver(store, CAMPAIGN, 1, epochs.HeartbeatConfig(enabled=False))
        Dispatcher(
            plan,
            of_shard(every, 0, 1),
            ledger,
            ClusterBackend(cluster),
            driver,
            looks=Looks(plan, lambda: every, ledger, epoch=1),
            lease=Lease(40),
            tell=lambda _: None,
            intervals=FAST,
        ).run()
        cluster.close()
        last = ledger.directives.decisions()[-1]
        return last.number, last.result.verdict
