"""A controller whose runners are fake: `python -m tests.support.fake_campaign STORE BEHAVIOUR [options]`.

Tests kill this program: a controller in a process of its own, on the real backends.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.support.plans import make_plan
from trialfleet_controller.backends.local.process_backend import ProcessBackend
from trialfleet_controller.backends.protocol import Backend
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.operator_signals import interruptible
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_controller.dispatch.stop_conditions import Interrupt, PollIntervals
from trialfleet_ledger.amendments import most_reps, planned_reps
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import AnytimeRule, Reestimation, StopRule
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import trials

RUNNER = Path(__file__).with_name("fake_runner.py")
FAST = PollIntervals(poll_s=0.1, steer_s=0.1, watch_s=0.1, back_off_s=0.001)
FIVE = ("none", "flat_llm", "intent_layer", "placebo", "preamble_only")


def fake_argv(behaviour: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", str(RUNNER), behaviour)


def drive(
    root: Path,
    plan: Plan,
    backend: Backend,
    *,
    pulse: epochs.HeartbeatConfig | None = None,
    interrupt: Interrupt | None = None,
    tell: Callable[[str], None] = lambda _: None,
    intervals: PollIntervals | None = None,
) -> Ending:
    """One controller's life, as the command line lives it."""
    store = DirectoryStore(root)
    ledger = Ledger(store, plan.campaign)
    plan, _ = ledger.freeze(plan)
    driver = epochs.claim(store, plan.campaign, pulse or epochs.HeartbeatConfig())
    dispatcher = Dispatcher(
        plan,
        trials(plan, most_reps(plan, planned_reps(plan, (), ledger.directives.decisions(), ()).most)),
        ledger,
        backend,
        driver,
        interrupt=interrupt,
        tell=tell,
        intervals=intervals or FAST,
    )
    ending = dispatcher.run()
    driver.end()
    return ending


def _primary(looks: str) -> Primary:
    if looks == "bets":
        return Primary(treatment="flat_llm", control="none", stop=AnytimeRule(anytime="mixture"))
    if looks == "halve":
        return Primary(treatment="flat_llm", control="none", halve=True)
    grow = Reestimation(after=1, cap=3) if looks == "grow" else None
    stop = StopRule(looks=2, futility="none", drop_saturated=int(looks == "drop"), reestimate=grow)
    return Primary(
        treatment="flat_llm", control="none", effect=0.1, stop=StopRule(looks=2) if looks == "2" else stop
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("behaviour")
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--grace", type=float, default=2.0)
    parser.add_argument("--finish", type=float, default=60.0, help="seconds after Ctrl-C")
    parser.add_argument("--looks", choices=("2", "drop", "grow", "bets", "halve"), help="what looks do")
    parser.add_argument("--no-beat", action="store_true")
    parser.add_argument("--ray", action="store_true")
    options = parser.parse_args()
    plan = make_plan(
        tasks=options.tasks,
        reps=options.reps,
        limits=Limits(stop_grace_s=options.grace),
        primary=_primary(options.looks) if options.looks else None,
        **({"conditions": FIVE} if options.looks == "halve" else {}),
    )
    argv = fake_argv(options.behaviour)
    if options.ray:
        from trialfleet_controller.hosting.ray_backend import RayBackend

        backend: Backend = RayBackend(slots=options.slots, cpu=1, memory_bytes=2**28, runner=argv)
    else:
        backend = ProcessBackend(slots=options.slots, runner=argv)
    with interruptible() as interrupt:  # after the backend: importing Ray sets a handler for SIGTERM
        print("driving", flush=True)
        ending = drive(
            options.root,
            plan,
            backend,
            pulse=epochs.HeartbeatConfig(enabled=not options.no_beat),
            interrupt=interrupt,
            tell=partial(print, flush=True),
            intervals=replace(FAST, finish_s=options.finish),
        )
    print(ending.value, flush=True)
    sys.exit(130 if ending is Ending.INTERRUPTED else 0)


if __name__ == "__main__":
    main()
