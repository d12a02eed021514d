"""Whole campaigns of fake runners under the dispatcher: losses, retries, halts, cancels, caps."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest

from tests.support import records
from tests.support.audit import audit
from tests.support.fake_campaign import drive, fake_argv
from tests.support.forgetful_store import ForgetfulStore
from tests.support.plans import CAMPAIGN, make_plan, priced
from tests.support.processes import survivors
from trialfleet_controller.backends.local.process_backend import ProcessBackend
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_controller.dispatch.stop_conditions import Interrupt, PollIntervals
from trialfleet_controller.hosting.local_drive import finish
from trialfleet_controller.planning.amending import amend
from trialfleet_controller.status.campaign_status import read_status
from trialfleet_ledger.amendments import effective_cost
from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.exit_codes import CommandExit
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.records.directives import Epoch
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import trials


class Site:
    """One store, and controllers that are functions of this process."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.log = folder, folder / "store", folder / "log"
        self.log.touch()
        self.ledger = Ledger(DirectoryStore(self.root), CAMPAIGN)

    def run(self, plan: Plan, behaviour: str = "pass", *, slots: int = 4) -> Ending:
        backend = ProcessBackend(slots=slots, runner=fake_argv(f"{behaviour},log={self.log}"))
        return drive(self.root, plan, backend)

    def outcomes(self, plan: Plan) -> list[Outcome]:
        found = (self.ledger.attempts.outcome(trial.id) for trial in trials(plan))
        return [outcome for outcome in found if outcome is not None]

    def executions(self) -> int:
        return len(self.log.read_text().splitlines())

    def once_executed(self, count: int, act: Callable[[], object]) -> None:
        """Beside a run: as soon as that many agents have begun."""

        def wait_and_act() -> None:
            end = time.monotonic() + 120
            while self.executions() < count and time.monotonic() < end:
                time.sleep(0.02)
            act()

        threading.Thread(target=wait_and_act, daemon=True).start()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "scratch"))
    yield Site(tmp_path)
    assert not [pid for pid in survivors(tmp_path) if pid != os.getpid()]


def test_a_campaign_without_losses(site: Site) -> None:
    plan = make_plan()
    assert site.run(plan) is Ending.COMPLETE
    assert len(audit(site.root, plan, log=site.log)) == 12
    assert site.executions() == 12
    assert site.run(plan) is Ending.COMPLETE  # again: nothing is left to do
    assert site.executions() == 12


@pytest.mark.parametrize(
    ("behaviour", "attempts", "executions", "loss"),
    [
        ("loss=evicted:4", 5, 1, LossClass.EVICTED),  # before the agent: free
        ("midloss=terminated:2", 3, 3, LossClass.TERMINATED),  # the agent runs again: budgeted
        ("midloss=node_lost:3", 4, 4, LossClass.NODE_LOST),  # the second and the third are budgeted
        ("kill=start:2", 3, 1, LossClass.TERMINATED),
        ("kill=patch:3", 4, 1, LossClass.TERMINATED),  # only scoring is repeated
        ("kill=bundle:1", 2, 1, LossClass.TERMINATED),
    ],
)
def test_losses_within_their_budget_are_measured_in_the_end(
    site: Site, behaviour: str, attempts: int, executions: int, loss: LossClass
) -> None:
    plan = make_plan(tasks=1, conditions=("none",), reps=1)
    assert site.run(plan, behaviour) is Ending.COMPLETE
    (outcome,) = audit(site.root, plan, log=site.log)
    assert outcome.scored is not None
    assert outcome.attempts == attempts
    assert set(outcome.losses) == {loss}
    assert site.executions() == executions


@pytest.mark.parametrize(
    ("behaviour", "attempts"),
    [("loss=evicted:99", 5), ("midloss=evicted:99", 6), ("midloss=runner:99", 3), ("kill=patch:99", 4)],
)
def test_a_spent_budget_abandons_and_stays_so(site: Site, behaviour: str, attempts: int) -> None:
    plan = make_plan(tasks=1, conditions=("none",), reps=1, retries=RetrySpec(before_agent=4, disruptions=5))
    for words in (behaviour, "pass"):  # a resume does not try again
        assert site.run(plan, words) is Ending.INCOMPLETE
        (outcome,) = audit(site.root, plan)
        assert outcome.scored is None
        assert outcome.abandoned is not None
        assert (outcome.attempts, len(outcome.losses)) == (attempts, attempts)


def test_budgets_are_the_plans(site: Site) -> None:
    plan = make_plan(tasks=1, conditions=("none",), reps=1, retries=RetrySpec(disruptions=0))
    site.run(plan, "midloss=evicted:1")
    (outcome,) = audit(site.root, plan)
    assert (outcome.attempts, outcome.abandoned) == (1, LossClass.EVICTED)


def test_a_changed_bundle_is_quarantined_and_never_counted(site: Site) -> None:
    plan = make_plan(tasks=1, conditions=("none",), reps=2)
    assert site.run(plan, "torn") is Ending.INCOMPLETE
    assert [outcome.abandoned for outcome in site.outcomes(plan)] == [LossClass.QUARANTINED] * 2
    standing = read_status(site.ledger.store, CAMPAIGN)
    assert (standing.quarantined, standing.losses) == (2, {"quarantined": 2})
    assert site.executions() == 2


def test_a_broken_task_halts_and_a_lift_goes_on(site: Site) -> None:
    plan = make_plan(tasks=1, reps=4)
    assert site.run(plan, "loss=setup:99,halt=task") is Ending.HALTED
    (halt, *_) = site.ledger.directives.halts()
    assert halt.task == "task-0"
    assert "as asked" in halt.reason
    assert site.outcomes(plan) == []
    assert site.run(plan) is Ending.HALTED  # still in force
    assert site.executions() == 0
    lifts = tuple(halt.number for halt in site.ledger.directives.halts())
    site.ledger.directives.amend(reps=None, after_look=False, lifts=lifts)
    assert site.run(plan) is Ending.COMPLETE
    audit(site.root, plan, log=site.log)


def test_a_harness_that_loses_everything_stops_the_campaign(site: Site) -> None:
    plan = make_plan(tasks=4, reps=50, retries=RetrySpec(before_agent=0))
    assert site.run(plan, "loss=setup:99") is Ending.HALTED
    assert any(halt.task is None for halt in site.ledger.directives.halts())
    assert len(site.outcomes(plan)) < 30, "it should have stopped long before its end"


REFUSED = "echo 'trialfleet runner: scratch: /x: no folder can be made here: Not a directory' >&2; exit 2"


def test_a_permanent_error_of_the_operator_halts_at_once_and_says_what_it_is(site: Site) -> None:
    plan = make_plan(tasks=2, reps=10)
    broken = ProcessBackend(slots=2, runner=("/bin/sh", "-c", REFUSED))
    assert drive(site.root, plan, broken) is Ending.HALTED
    (halt,) = site.ledger.directives.halts()
    assert halt.task is None
    assert "scratch: /x: no folder can be made here: Not a directory" in halt.reason
    lost = [trial for trial in trials(plan) if site.ledger.attempts.chain(trial.id)]
    assert len(lost) <= 2, "as many as ran at the time, each once"
    assert all(len(site.ledger.attempts.chain(trial.id)) == 1 for trial in lost)
    assert site.run(plan) is Ending.HALTED  # still in force
    site.ledger.directives.amend(reps=None, after_look=False, lifts=(halt.number,))
    assert site.run(plan) is Ending.COMPLETE


def test_a_condition_whose_first_agents_crash_halts_alone_and_once(site: Site) -> None:
    plan = make_plan(tasks=2, reps=8)
    broken, *others = plan.condition_names
    assert site.run(plan, f"dead={broken}", slots=2) is Ending.HALTED
    (halt,) = site.ledger.directives.halts()
    assert (halt.task, halt.condition) == (None, broken)
    assert halt.reason.startswith(
        f"agent: in each of the first 3 measured trials of condition {broken} it crashed"
    )
    assert len(site.outcomes(plan)) < len(trials(plan))
    status = read_status(site.ledger.store, CAMPAIGN)
    assert status.state == "halted"
    assert status.complete_blocks == plan.reps, "the other conditions are complete without it"
    assert status.conditions[broken].crashed == status.conditions[broken].measured >= 3
    assert status.conditions[broken].interim_rate is None
    for name in others:
        assert status.conditions[name].measured == status.conditions[name].planned
        assert status.conditions[name].interim_rate is not None
    assert site.run(plan, f"dead={broken}") is Ending.HALTED, "still in force"
    site.ledger.directives.amend(reps=None, after_look=False, lifts=(halt.number,))
    assert site.run(plan, f"dead={broken}") is Ending.COMPLETE
    assert site.ledger.directives.halts() == (), "a halt that was lifted does not return"


def test_a_resumed_controller_halts_for_crashes_that_an_earlier_one_measured(site: Site) -> None:
    plan = make_plan(tasks=1, reps=8)
    broken = plan.condition_names[0]
    site.ledger.freeze(plan)
    first = [trial for trial in trials(plan) if trial.condition == broken][:3]
    for trial in first:
        scored = records.scored(Verdict.FAILED, stop=Stop.CRASHED)
        site.ledger.attempts.conclude(Outcome(trial=trial.record(), attempts=1, scored=scored))
    assert site.run(plan) is Ending.HALTED
    assert [halt.condition for halt in site.ledger.directives.halts()] == [broken]
    measured = [one for one in site.outcomes(plan) if one.trial.condition == broken]
    assert len(measured) == 3, "nothing more of it started"


FULL = "echo 'OSError: [Errno 28] No space left on device' >&2; exit 1"


@pytest.mark.parametrize("script", [FULL, "exit 75", "echo evicted >&2; kill -9 $$"])
@pytest.mark.parametrize("tasks", [1, 2])
def test_when_no_attempt_can_begin_every_trial_stays_open(site: Site, script: str, tasks: int) -> None:
    plan = make_plan(tasks=tasks, conditions=("none",), reps=2)
    for _ in range(2 if "kill" not in script else 1):  # a resume on a machine that is still full gives up nothing
        broken = ProcessBackend(slots=2, runner=("/bin/sh", "-c", script))
        assert drive(site.root, plan, broken) is Ending.OUTAGE
        assert site.outcomes(plan) == []
    assert site.ledger.directives.halts() == (), "a plain resume goes on"
    with pytest.raises(OperatorError, match="trialfleet resume"):
        finish(Ending.OUTAGE, "store", CAMPAIGN)
    assert site.run(plan) is Ending.COMPLETE
    assert all(outcome.scored is not None for outcome in audit(site.root, plan, log=site.log))


@pytest.mark.parametrize("ending", [Ending.CANCELLED, Ending.OUT_OF_TIME, Ending.INCOMPLETE])
def test_a_campaign_that_is_over_and_not_complete_has_an_exit_code_of_its_own(
    ending: Ending, capsys: pytest.CaptureFixture[str]
) -> None:
    for in_job, code in ((False, CommandExit.NOT_COMPLETE), (True, CommandExit.DONE)):  # a Job would restart
        with pytest.raises(click.exceptions.Exit) as left:
            finish(ending, "store", CAMPAIGN, in_job=in_job)
        assert left.value.exit_code == code
        assert "over and not complete" in capsys.readouterr().err


def test_a_disk_that_fills_while_agents_run_costs_two_runs_and_no_trial(site: Site) -> None:
    plan = make_plan(tasks=1, conditions=("none",), reps=1)
    assert site.run(plan, "midloss=host_full:99", slots=1) is Ending.OUTAGE
    assert (site.executions(), site.outcomes(plan)) == (2, [])
    assert site.run(plan) is Ending.COMPLETE
    assert site.outcomes(plan)[0].scored is not None


def test_cancel_drains(site: Site) -> None:
    plan = make_plan(reps=20)
    site.once_executed(3, lambda: site.ledger.directives.cancel(now=False, by="test"))
    assert site.run(plan, "sleep=0.3", slots=2) is Ending.CANCELLED
    outcomes = site.outcomes(plan)
    assert 0 < len(outcomes) < 40
    assert all(outcome.scored is not None for outcome in outcomes)
    assert site.run(plan) is Ending.CANCELLED  # for good


def test_a_campaign_that_is_cancelled_after_its_last_trial_is_complete(site: Site) -> None:
    plan = make_plan(tasks=1, reps=1)
    assert site.run(plan) is Ending.COMPLETE
    site.ledger.directives.cancel(now=False, by="test")
    assert site.run(plan) is Ending.COMPLETE
    assert read_status(site.ledger.store, CAMPAIGN).state == "complete"


def test_cancel_now_marks_what_ran_as_lost(site: Site) -> None:
    plan = make_plan()

    def cancel() -> None:
        site.ledger.directives.cancel(now=False, by="test")
        site.ledger.directives.cancel(now=True, by="test")

    site.once_executed(2, cancel)
    began = time.monotonic()
    assert site.run(plan, "sleep=250", slots=2) is Ending.CANCELLED
    assert time.monotonic() - began < 200
    assert [outcome.abandoned for outcome in site.outcomes(plan)] == [LossClass.CANCELLED] * 2


def test_the_cost_cap_stops_starting(site: Site) -> None:
    plan = priced(make_plan(reps=10), campaign=5)
    for _ in range(2):  # the fake reports no cost, so every run counts as the most it may have cost: also resumed
        assert site.run(plan) is Ending.OUT_OF_MONEY
        assert site.executions() == 5


def test_another_cap_goes_on_or_stops_earlier(site: Site) -> None:
    plan = priced(make_plan(reps=10), campaign=5)
    site.run(plan)
    for cap, executions in ((8, 8), (3, 8), (9, 9)):  # the latest holds, whether it is more or less
        amend(site.ledger, cost_usd=cap)
        cost = effective_cost(plan, site.ledger.directives.amendments())
        live = dispatcher(site, plan.model_copy(update={"cost_usd_campaign": cost}), "pass", freeze=False)
        assert live.run() is Ending.OUT_OF_MONEY
        assert site.executions() == executions


def test_a_cap_without_a_trials_own_is_refused(site: Site) -> None:
    site.run(make_plan(tasks=1, reps=1))
    with pytest.raises(OperatorError, match=r"no cost limit per trial"):
        amend(site.ledger, cost_usd=5)


def dispatcher(site: Site, plan: Plan, behaviour: str, *, freeze: bool = True) -> Dispatcher:
    if freeze:
        site.ledger.freeze(plan)
    backend = ProcessBackend(slots=2, runner=fake_argv(f"{behaviour},log={site.log}"))
    driver = epochs.claim(site.ledger.store, CAMPAIGN, epochs.HeartbeatConfig(enabled=False))
    intervals = PollIntervals(poll_s=0.05, back_off_s=0.001)
    return Dispatcher(plan, trials(plan), site.ledger, backend, driver, intervals=intervals)


@pytest.mark.parametrize(
    ("behaviour", "spent"),
    [
        ("cost=0.25", 0.5),
        ("cost=0.25,loss=evicted:2", 0.5),  # with a start, and yet before the agent
        ("cost=0.25,midloss=evicted:1", 2.5),
        ("cost=0.25,kill=patch:1", 0.5),  # the scoring tells what the lost run had cost
        ("cost=0.25,torn", 0.5),
        ("midloss=terminated:99", 6),
        ("loss=setup:99,halt=task", 0),
        ("cost=0.25,midloss=setup:1,halt=task", 2),  # its trials stay open
    ],
)
def test_a_resume_knows_the_same_of_the_money(site: Site, behaviour: str, spent: float) -> None:
    plan = priced(make_plan(tasks=1, conditions=("none",), reps=2), campaign=9)
    live = dispatcher(site, plan, behaviour)
    live.run()
    later = dispatcher(site, plan, behaviour)
    later.run()
    assert live.report().spent_usd == later.report().spent_usd == spent


def test_what_is_paid_for_is_scored_though_the_money_is_gone(site: Site) -> None:
    plan = priced(make_plan(tasks=1, conditions=("none",), reps=2), campaign=1)
    assert site.run(plan, "kill=patch:2") is Ending.OUT_OF_MONEY
    (outcome,) = site.outcomes(plan)
    assert outcome.scored is not None
    assert (outcome.attempts, site.executions()) == (3, 1)


def test_an_edited_end_is_named(site: Site) -> None:
    plan = make_plan(tasks=1, conditions=("none",), reps=1)
    drive(site.root, plan, ProcessBackend(slots=1, runner=("/bin/sh", "-c", FULL)))
    (trial,) = trials(plan)
    end = site.root / CAMPAIGN / "attempts" / trial.id / "1" / "end.json"
    end.chmod(0o600)
    end.write_bytes(end.read_bytes().replace(b"disk is full", b"disk is fine", 1))
    told: list[str] = []
    backend = ProcessBackend(slots=1, runner=fake_argv(f"pass,log={site.log}"))
    assert drive(site.root, plan, backend, tell=told.append) is Ending.INCOMPLETE
    assert f"attempts/{trial.id}/1/end.json was changed after it was written" in told
    assert site.outcomes(plan) == []
    assert site.executions() == 0


def test_who_is_told_to_stop_may_still_say_what_was_lost(site: Site) -> None:
    """A runner gives its agent the whole grace, and then needs a moment for its end."""
    plan = make_plan(tasks=1, conditions=("none",), reps=1, limits=Limits(stop_grace_s=0.2))
    interrupt = Interrupt()
    site.once_executed(1, interrupt.hurry)
    backend = ProcessBackend(slots=1, runner=fake_argv(f"sleep=250,linger=1,log={site.log}"))
    assert drive(site.root, plan, backend, interrupt=interrupt) is Ending.INTERRUPTED
    (attempt,) = site.ledger.attempts.chain(trials(plan)[0].id)
    assert attempt.end is not None
    assert attempt.end.by == "runner"


def test_a_provider_that_is_down_slows_down_and_burns_no_more_than_the_budget(site: Site) -> None:
    plan = make_plan(tasks=1, conditions=("none",), reps=2)
    assert site.run(plan, "midloss=provider:1", slots=1) is Ending.COMPLETE
    outcomes = audit(site.root, plan, log=site.log)
    assert [outcome.losses for outcome in outcomes] == [(LossClass.PROVIDER,)] * 2


def test_more_reps_run_only_what_is_new(site: Site) -> None:
    plan = make_plan(tasks=1, reps=2)
    site.run(plan)
    longer = plan.model_copy(update={"reps": 4})
    backend = ProcessBackend(slots=2, runner=fake_argv(f"pass,log={site.log}"))
    driver = epochs.claim(site.ledger.store, CAMPAIGN, epochs.HeartbeatConfig())
    assert Dispatcher(plan, trials(plan, 4), site.ledger, backend, driver).run() is Ending.COMPLETE
    assert site.executions() == 8
    assert len(site.outcomes(longer)) == 8


def test_a_different_campaign_of_the_same_name_is_refused(site: Site) -> None:
    plan = make_plan(tasks=1, reps=1)
    site.run(plan)
    with pytest.raises(OperatorError, match="differ in: seed, reps"):
        site.run(make_plan(tasks=1, reps=2, seed=99))
    assert site.run(plan.model_copy(update={"uid": "x", "parallel": 9})) is Ending.COMPLETE


# --- who drives -------------------------------------------------------------------------------------

FAST = epochs.HeartbeatConfig(every_s=0.2, takeover_s=1.0, look_s=0.1)


def other_machines_epoch(site: Site, number: int) -> None:
    record = Epoch(number=number, at=time.time(), host="elsewhere", boot_id="b", pid=1, nonce="n")
    site.ledger.store.create(f"{CAMPAIGN}/epochs/{number}.json", canonical_json(record))


def beat(site: Site, number: int, count: int) -> None:
    record = epochs.Heartbeat(count=count, state="driving")
    site.ledger.store.put(f"{CAMPAIGN}/epochs/{number}.beat", canonical_json(record))


def test_a_heart_that_stands_still_is_taken_over(site: Site) -> None:
    other_machines_epoch(site, 1)
    beat(site, 1, 1)
    began = time.monotonic()
    assert epochs.claim(site.ledger.store, CAMPAIGN, FAST).number == 2
    assert time.monotonic() - began >= FAST.takeover_s


def test_one_wrong_answer_is_no_beat(site: Site) -> None:
    other_machines_epoch(site, 1)
    beat(site, 1, 1)
    assert epochs.claim(ForgetfulStore(site.root, "1.beat"), CAMPAIGN, FAST).number == 2


def test_a_heart_that_beats_is_not(site: Site) -> None:
    other_machines_epoch(site, 1)
    beat(site, 1, 1)
    threading.Timer(0.5, lambda: beat(site, 1, 2)).start()
    with pytest.raises(OperatorError, match="process 1 on elsewhere"):
        epochs.claim(site.ledger.store, CAMPAIGN, replace(FAST, takeover_s=60))


def test_who_is_superseded_leaves_with_its_children(site: Site) -> None:
    site.once_executed(2, lambda: other_machines_epoch(site, 2))
    backend = ProcessBackend(slots=2, runner=fake_argv(f"sleep=250,log={site.log}"))
    with pytest.raises(epochs.Fenced, match="epoch 2"):
        drive(site.root, make_plan(), backend, pulse=FAST)
    assert survivors(site.folder) == []


def test_an_ended_epoch_need_not_be_waited_for(site: Site) -> None:
    first = epochs.claim(site.ledger.store, CAMPAIGN, epochs.HeartbeatConfig())
    first.end()
    assert epochs.claim(site.ledger.store, CAMPAIGN, epochs.HeartbeatConfig()).number == 2


# --- what is shown ----------------------------------------------------------------------------------


def test_status_counts_complete_blocks_and_records_looks(site: Site) -> None:
    plan = make_plan(reps=20)
    site.once_executed(6, lambda: site.ledger.directives.cancel(now=False, by="test"))
    site.run(plan, "sleep=0.1", slots=2)
    standing = read_status(site.ledger.store, CAMPAIGN)
    outcomes = site.outcomes(plan)
    assert standing.state == "cancelled"
    assert standing.terminal == len(outcomes)
    complete = [o for o in outcomes if o.trial.block < standing.complete_blocks]
    assert sum(c.interim_measured for c in standing.conditions.values()) == len(complete)
    for _ in range(2):
        site.ledger.directives.look(
            planned=standing.planned,
            terminal=standing.terminal,
            complete_blocks=standing.complete_blocks,
            by="test",
        )
    assert len(site.ledger.directives.looks()) == 1
