"""Plans and controllers for tests that need no real task: `fake_campaign.py STORE BEHAVIOUR [options]` runs one.

The program is what kill tests kill: a controller in a process of its own, on the real backends.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from trialfleet_controller import epochs
from trialfleet_controller.backend import Backend
from trialfleet_controller.dispatcher import Dispatcher
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.plan import trials
from trialfleet_controller.process_backend import ProcessBackend
from trialfleet_controller.shards import Ending
from trialfleet_controller.steering import Interrupt, Rhythm
from trialfleet_runner.campaign import Cell, Plan, PlannedTask, RetrySpec
from trialfleet_runner.canonical import digest
from trialfleet_runner.conditions import PRESETS
from trialfleet_runner.contract import AgentSpec, ConditionOrder, EnvironmentRef, Limits, TaskOrder
from trialfleet_runner.store.directory import DirectoryStore

RUNNER = Path(__file__).with_name("fake_runner.py")
CAMPAIGN = "fake"


def fake_task(name: str) -> PlannedTask:
    order = TaskOrder(
        id=name,
        digest=digest(name),
        environment=EnvironmentRef(digest=digest("environment"), python="3.11", lock=digest("lock")),
        workspace=digest([name, "workspace"]),
        pristine=digest([name, "pristine"]),
        fix=digest([name, "fix"]),
        test_command=("true",),
        prompt_source="failing_test",
        prompt=digest([name, "prompt"]),
    )
    return PlannedTask(order=order, primary=True, file=f"{name}.yaml")


def fake_plan(
    *,
    tasks: int = 2,
    conditions: tuple[str, ...] = ("none", "flat_llm"),
    reps: int = 3,
    parallel: int = 4,
    retries: RetrySpec | None = None,
    seed: int = 7,
    stop_grace_s: float = 2.0,
) -> Plan:
    planned = tuple(fake_task(f"task-{i}") for i in range(tasks))
    return Plan(
        campaign=CAMPAIGN,
        uid="0" * 32,
        created=0.0,
        seed=seed,
        reps=reps,
        agent=AgentSpec(kind="nop"),
        agent_digest=digest("nop"),
        limits=Limits(stop_grace_s=stop_grace_s),
        parallel=parallel,
        retries=retries or RetrySpec(),
        blocks_ahead=4,
        conditions={name: PRESETS[name] for name in conditions},
        tasks=planned,
        cells=tuple(
            Cell(task=t.order.id, condition=ConditionOrder(name=name, digest=digest([t.order.id, name])))
            for t in planned
            for name in conditions
        ),
        inputs={},
        versions={},
    )


def fake_argv(behaviour: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", str(RUNNER), behaviour)


def drive(
    root: Path,
    plan: Plan,
    backend: Backend,
    *,
    pulse: epochs.Pulse | None = None,
    interrupt: Interrupt | None = None,
    rhythm: Rhythm | None = None,
) -> Ending:
    """One controller's life, as the command line lives it."""
    store = DirectoryStore(root)
    ledger = Ledger(store, plan.campaign)
    plan, _ = ledger.freeze(plan)
    driver = epochs.claim(store, plan.campaign, pulse or epochs.Pulse())
    dispatcher = Dispatcher(
        plan,
        trials(plan),
        ledger,
        backend,
        driver,
        interrupt=interrupt,
        rhythm=rhythm or Rhythm(poll_s=0.1, steer_s=0.1, watch_s=0.1, back_off_s=0.001),
    )
    ending = dispatcher.run()
    driver.end()
    return ending


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("behaviour")
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--grace", type=float, default=2.0)
    parser.add_argument("--no-beat", action="store_true")
    parser.add_argument("--ray", action="store_true")
    options = parser.parse_args()
    interrupt = Interrupt()
    plan = fake_plan(tasks=options.tasks, reps=options.reps, stop_grace_s=options.grace)
    argv = fake_argv(options.behaviour)
    if options.ray:
        from trialfleet_controller.local import RayBackend

        backend: Backend = RayBackend(slots=options.slots, cpu=1, memory_bytes=2**28, runner=argv)
    else:
        backend = ProcessBackend(slots=options.slots, runner=argv)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: interrupt.ask())
    print("driving", flush=True)
    ending = drive(
        options.root, plan, backend, pulse=epochs.Pulse(enabled=not options.no_beat), interrupt=interrupt
    )
    print(ending.value, flush=True)
    sys.exit(130 if ending is Ending.INTERRUPTED else 0)


if __name__ == "__main__":
    main()
