"""The life of a trial, with a backend and a ledger that only say what the test has planned."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from trialfleet_controller.backends.protocol import AttemptId, Backend, Finished, Liveness
from trialfleet_controller.backends.runner_termination import RunnerTermination
from trialfleet_controller.dispatch.breaker import Breaker, ProviderHealth
from trialfleet_controller.dispatch.crash_watch import CrashWatch
from trialfleet_controller.dispatch.io_pool import IoPool
from trialfleet_controller.dispatch.stop_conditions import PollIntervals, StopConditions
from trialfleet_controller.dispatch.trial_driver import TrialDriver
from trialfleet_controller.dispatch.trial_steps import Seen, TrialSteps
from trialfleet_controller.dispatch.trial_table import CampaignBudget, OpenTrial, TrialState, TrialTable
from trialfleet_ledger.fold import Conclude, LaunchAttempt, Step, StoredAttempt, WatchAttempt
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.attempt import End, Intent
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Loss, LossClass
from trialfleet_ledger.trial_order import Planned

TRIAL = Planned("a" * 26, "task", "none", 0, 0, 0, 0)
INTENT = Intent(trial=TRIAL.id, attempt=1, nonce="n", epoch=1, at=0)
LOST = Loss(loss=LossClass.EVICTED, message="", agent_started=True)
END = End(trial=TRIAL.id, attempt=1, nonce="n", at=1, by="controller", loss=LOST)
OPENED = OpenTrial(TRIAL, (StoredAttempt(INTENT),))
ENDED = OpenTrial(TRIAL, (StoredAttempt(INTENT, end=END),))
OUTCOME = Outcome(trial=TRIAL.record(), attempts=1, abandoned=LossClass.EVICTED, losses=(LossClass.EVICTED,))
GONE = RunnerTermination(code=-9)


@dataclass
class Script:
    """Steps and backend in one. `seen`: what each look finds; `known`: whether the backend knows the runner."""

    step: Step
    seen: deque[Seen] = field(default_factory=deque[Seen])
    known: bool = False
    working: int = 0
    epoch: int = 1
    calls: list[str] = field(default_factory=list[str])
    at_launch: Callable[[], None] = lambda: None

    def launch(self, opened: OpenTrial) -> tuple[OpenTrial, Step]:
        self.calls.append("launch")
        self.at_launch()
        return OPENED, self.step

    def look(self, opened: OpenTrial, gone: RunnerTermination | None = None) -> Seen:
        self.calls.append("look" if gone is None else f"look {gone.code}")
        return self.seen.popleft()

    def lose(self, opened: OpenTrial, gone: RunnerTermination) -> OpenTrial:
        self.calls.append(f"lose {gone.code}")
        return ENDED

    def next(self, opened: OpenTrial) -> Step:
        return Conclude(OUTCOME) if opened.last.end is not None else WatchAttempt(1)

    def conclude(self, step: Conclude) -> Outcome:
        self.calls.append("conclude")
        return step.outcome

    def adopt(self, attempt: AttemptId, start: object) -> bool:
        return self.known

    def settled(self, attempt: AttemptId) -> None:
        self.calls.append("settled")


@pytest.fixture
def table() -> TrialTable:
    return TrialTable([TRIAL], blocks_ahead=1, budget=CampaignBudget(cap=None, trial=0.0), metered=())


def driver_of(script: Script, table: TrialTable) -> TrialDriver:
    ledger = cast("Ledger", None)
    watch = CrashWatch(ledger, lambda: [TRIAL])
    stop = StopConditions(ledger, watch, lambda _: None, lambda _: None, every_s=1)
    return TrialDriver(
        table,
        cast("TrialSteps", script),
        IoPool(1),
        stop,
        cast("Backend", script),
        ProviderHealth(Breaker.closed(1)),
        deadline_s=60,
        patience_s=1,
        intervals=PollIntervals(watch_s=0),
        tell=lambda _: None,
        note=lambda _: None,
    )


def test_a_runner_that_goes_before_its_launch_was_noted_is_settled_all_the_same(table: TrialTable) -> None:
    script = Script(LaunchAttempt(1, None), seen=deque([Seen(ENDED, None)]))
    driver = driver_of(script, table)
    script.at_launch = lambda: driver.finished(Finished(OPENED.id, GONE))
    driver.launch(OPENED)
    assert script.calls == ["launch", "look -9", "settled", "conclude"]
    assert table.state(TRIAL.id) is None


def test_a_running_trial_waits_for_its_own_runner(table: TrialTable) -> None:
    script = Script(LaunchAttempt(1, None), seen=deque([Seen(OPENED, None)]))
    driver = driver_of(script, table)
    driver.launch(OPENED)
    driver.look_at_watched(now=1.0)
    driver.finished(Finished(AttemptId(TRIAL.id, 2), GONE))
    assert (script.calls, table.state(TRIAL.id)) == (["launch"], TrialState.RUNNING)
    driver.finished(Finished(OPENED.id, GONE))
    assert script.calls[1:] == ["look -9", "lose -9", "settled", "conclude"]
    driver.finished(Finished(OPENED.id, GONE))
    assert script.calls.count("conclude") == 1


def test_another_controllers_runner_is_watched_until_it_has_gone(table: TrialTable) -> None:
    script = Script(WatchAttempt(1), seen=deque([Seen(OPENED, Liveness.ALIVE), Seen(OPENED, Liveness.GONE)]))
    driver = driver_of(script, table)
    driver.launch(OPENED)
    driver.look_at_watched(now=1.0)
    assert (script.calls, table.state(TRIAL.id)) == (["launch", "look"], TrialState.WATCHED)
    driver.look_at_watched(now=2.0)
    assert script.calls[2:] == ["look", "lose None", "settled", "conclude"]


def test_a_watched_runner_that_the_backend_gets_to_know_is_left_to_it(table: TrialTable) -> None:
    script = Script(WatchAttempt(1), seen=deque([Seen(OPENED, Liveness.GONE), Seen(ENDED, None)]))
    driver = driver_of(script, table)
    driver.launch(OPENED)
    script.known = True
    driver.look_at_watched(now=1.0)
    assert table.state(TRIAL.id) is TrialState.RUNNING
    driver.finished(Finished(OPENED.id, GONE))
    assert script.calls == ["launch", "look", "look -9", "settled", "conclude"]
