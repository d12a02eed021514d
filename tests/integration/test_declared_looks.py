"""Declared looks: when they are taken, what they hold back, what ends the campaign, and who decides."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.campaign_site import Site
from tests.support.plans import CAMPAIGN, make_plan
from tests.support.simulated_cluster import Fate
from tests.support.waiting import in_background, wait_until
from trialfleet_controller.dispatch.looks import Looks
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_controller.planning.amending import amend, grow_until_decided
from trialfleet_controller.status.campaign_status import State, read_status
from trialfleet_controller.status.status_text import lines
from trialfleet_controller.status.status_watch import over
from trialfleet_designs.monitoring import look_result
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import (
    AnytimeResult,
    AnytimeRule,
    Decision,
    FutilityRule,
    LookResult,
    Reestimation,
    StopRule,
)
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.verdicts import LossClass, Verdict
from trialfleet_ledger.trial_order import trials

TREATED, CONTROL = "flat_llm", "none"
NO_FUTILITY = StopRule(looks=(2, 4, 6), futility="none")


def monitored(stop: StopRule = NO_FUTILITY, **fields: object) -> Plan:
    primary = Primary(treatment=TREATED, control=CONTROL, stop=stop)
    return make_plan(**{"tasks": 6, "reps": 6, "parallel": 20, "primary": primary, **fields})  # type: ignore[arg-type]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.cluster.close()


def test_a_clear_gain_ends_the_campaign_at_a_look(site: Site) -> None:
    plan = monitored()
    site.cluster.rates = {TREATED: 1.0, CONTROL: 0.0}
    assert site.run(plan) is Ending.DECIDED
    assert [(d.number, d.blocks, d.result.verdict) for d in site.decisions] == [(1, 2, "benefit")]
    assert site.blocks(plan) == {0, 1}
    assert not site.cluster.living
    assert site.told[-1].startswith("look 1 of 3 after 2 blocks: decided for benefit (p 2e-05, of which")
    status = read_status(site.store, CAMPAIGN)
    assert (status.state, status.decided, status.looks_taken) == (State.DECIDED, "benefit", 1)
    assert "1 of 3 declared looks are taken; the last one decided: benefit" in lines(status)
    assert over(status)  # --watch ends although not every planned trial has


def test_a_harm_is_as_good_a_reason(site: Site) -> None:
    site.cluster.rates = {TREATED: 0.0, CONTROL: 1.0}
    assert site.run(monitored()) is Ending.DECIDED
    assert site.decisions[-1].result.verdict == "harm"


def test_looks_go_on_to_the_end_where_nothing_is_there(site: Site) -> None:
    plan = monitored()
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    assert site.run(plan) is Ending.COMPLETE
    assert [(d.number, d.blocks) for d in site.decisions] == [(1, 2), (2, 4), (3, 6)]
    assert site.decisions[-1].result.verdict in ("end", "benefit", "harm")
    assert site.state is State.COMPLETE
    assert site.run(plan) is Ending.COMPLETE  # again: nothing is decided twice
    assert len(site.decisions) == 3


@pytest.mark.parametrize("edited", [0, 6])
def test_no_look_counts_a_verdict_that_was_edited(site: Site, edited: int) -> None:
    plan = monitored()
    site.cluster.rates = {TREATED: 0.0, CONTROL: 0.0}
    assert site.run(plan) is Ending.COMPLETE
    shutil.rmtree(site.store.root / CAMPAIGN / "decisions")  # as if it had not been taken yet
    treated = [trial for trial in trials(plan) if trial.condition == TREATED and trial.block == 0]
    for trial in treated[:edited]:
        path = site.store.root / CAMPAIGN / f"outcomes/{trial.id}.json"
        path.write_bytes(path.read_bytes().replace(b'"verdict":"failed"', b'"verdict":"passed"'))
    every = trials(plan)
    news = Looks(plan, lambda: every, Ledger(site.store, CAMPAIGN), epoch=2).read()
    stage = news.decisions[0].stage
    assert sum(one.treatment_passed for one in stage) == 0
    assert [sum(one.treatment_valid for one in stage), sum(one.control_valid for one in stage)] == [
        12 - edited,
        12,
    ]


def test_futility_ends_it_unless_the_operator_wants_to_go_on(site: Site) -> None:
    plan = monitored(StopRule(looks=(2, 4, 6), futility=FutilityRule(predictive=0.99)))
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    assert site.run(plan, obey=False) is Ending.COMPLETE
    assert [(d.result.verdict, d.obeyed) for d in site.decisions][:2] == [("futility", False)] * 2


def test_futility(site: Site) -> None:
    plan = monitored(StopRule(looks=(2, 4, 6), futility=FutilityRule(predictive=0.99)))
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    assert site.run(plan) is Ending.DECIDED
    assert site.decisions[-1].result.verdict == "futility"
    assert "(a gain and a harm have both become improbable: the power to show it at the end is" in site.told[-1]
    assert site.state is State.DECIDED


def test_nothing_starts_beyond_a_look_that_waits_for_its_slowest_trial(site: Site) -> None:
    plan = monitored(blocks_ahead=5)
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    site.cluster.usual = Fate(seconds=600)
    run = in_background(site.dispatcher(plan).run)
    wait_until(lambda: len(site.cluster.living) == 20)  # all that are allowed at once
    assert site.blocks(plan) <= {0, 1}
    assert site.decisions == ()
    shown = "\n".join(lines(read_status(site.store, CAMPAIGN), rates=False))
    assert "check after block       2       4       6\ndecides if p ≤     0.0056  0.0222  0.0500\n" in shown
    assert "five tests at 5% find a difference in 14% of the campaigns" in shown
    site.cluster.hasten()
    assert run.result(60) is Ending.COMPLETE


def test_shards_wait_for_each_other_and_one_decides(site: Site) -> None:
    plan = monitored()
    site.cluster.rates = {TREATED: 1.0, CONTROL: 0.0}
    running = [in_background(site.dispatcher(plan, shard=shard, shards=3).run) for shard in range(3)]
    assert {run.result(60) for run in running} == {Ending.DECIDED}
    assert len(site.decisions) == 1
    assert site.blocks(plan) == {0, 1}


def test_two_controllers_at_a_look_read_one_decision(site: Site) -> None:
    plan = monitored()
    site.cluster.rates = {TREATED: 1.0, CONTROL: 0.0}
    assert site.run(plan) is Ending.DECIDED
    [first] = site.decisions
    barrier = threading.Barrier(2)

    def decided() -> Decision:
        barrier.wait(10)
        return site.ledger.directives.decide(first.model_copy(update={"at": first.at + 5, "epoch": 9}))

    both = [in_background(decided) for _ in range(2)]
    assert [one.result(30) for one in both] == [first, first]


def test_a_late_outcome_changes_no_decision(site: Site) -> None:
    """What a look counted stands in its record, and later looks read it there."""
    plan = monitored()
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    assert site.run(plan) is Ending.COMPLETE
    first, second, _ = site.decisions
    assert plan.primary is not None
    assert look_result(plan.primary, plan.reps, [first], second.stage) == second.result
    other = first.model_copy(
        update={"stage": tuple(one.model_copy(update={"control_passed": 0}) for one in first.stage)}
    )
    assert look_result(plan.primary, plan.reps, [other], second.stage) != second.result


def test_losses_are_missing_data_and_a_cancelled_block_is_no_look(site: Site) -> None:
    plan = monitored(reps=6, retries={"mid_run": 0, "disruptions": 0})
    site.cluster.rates = {TREATED: 1.0, CONTROL: 0.0}
    site.cluster.fates[1] = Fate(loss=LossClass.TERMINATED)
    assert site.run(plan) is Ending.INCOMPLETE
    assert all(one.treatment_valid == one.control_valid == 0 for d in site.decisions for one in d.stage)
    assert [d.result.p_value for d in site.decisions] == [1, 1, 1]


def test_cancelled_before_a_look(site: Site) -> None:
    plan = monitored()
    site.cluster.usual = Fate(seconds=600)
    run = in_background(site.dispatcher(plan).run)
    wait_until(lambda: len(site.cluster.living) == 20)
    site.ledger.directives.cancel(now=True, by="test")
    assert run.result(60) is Ending.CANCELLED
    assert site.decisions == ()


def test_reps_are_added_only_after_the_decision_and_labelled(site: Site) -> None:
    plan = monitored()
    site.cluster.rates = {TREATED: 1.0, CONTROL: 0.0}
    site.ledger.freeze(plan)
    with pytest.raises(OperatorError, match="declares looks up to block 6, and has taken 0 of them"):
        amend(site.ledger, reps=9)
    assert site.run(plan) is Ending.DECIDED
    amendment = amend(site.ledger, reps=8)
    assert amendment is not None
    assert amendment.after_look
    assert site.run(plan, reps=8) is Ending.COMPLETE
    assert len(site.decisions) == 1
    assert site.blocks(plan) == set(range(8))
    assert site.state is State.COMPLETE


def test_a_halted_task_is_left_out(site: Site) -> None:
    plan = monitored()
    site.cluster.rates = {TREATED: 1.0, CONTROL: 0.0}
    site.ledger.freeze(plan)
    site.ledger.directives.halt("task-3", "broken")
    assert site.run(plan) is Ending.DECIDED
    [decision] = site.decisions
    assert decision.halted == ("task-3",)
    assert {one.task for one in decision.stage} == {f"task-{i}" for i in (0, 1, 2, 4, 5)}


@pytest.mark.parametrize("side", [TREATED, CONTROL])
def test_without_a_side_of_its_contrast_no_look_is_taken_and_the_rest_runs(site: Site, side: str) -> None:
    plan = monitored()
    site.ledger.freeze(plan)
    site.ledger.directives.halt_condition(side, "agent: crashed")
    assert site.run(plan) is Ending.HALTED, "nothing waits for a look that cannot be"
    assert site.decisions == ()
    measured = list(site.ledger.attempts.outcomes([trial.id for trial in trials(plan)]))
    assert len(measured) == len([trial for trial in trials(plan) if trial.condition != side])
    assert {one.trial.condition for one in measured} == set(plan.condition_names) - {side}


# --- saturated tasks --------------------------------------------------------------------------------

DROPPING = StopRule(looks=(2, 4, 6), futility="none", drop_saturated=2)
SURE = {"task-1": True, "task-4": False}


def test_saturated_tasks_are_in_no_block_after_the_declared_look(site: Site) -> None:
    plan = monitored(DROPPING, blocks_ahead=5)
    site.cluster.rates, site.cluster.sure = {TREATED: 0.5, CONTROL: 0.5}, SURE
    assert site.run(plan) is Ending.COMPLETE
    first, second, third = site.decisions
    assert set(SURE) <= set(first.dropped) < {f"task-{i}" for i in range(6)}
    assert (second.dropped, third.dropped) == ((), ())
    planned = site.ledger.directives.planned_reps(plan)
    by_id = {trial.id: trial for trial in trials(plan)}
    launched = [by_id[attempt.trial] for attempt in site.cluster.order]
    assert all(planned.includes((trial.task, trial.condition), trial.block) for trial in launched)
    assert len(launched) == 6 * 2 * 6 - len(first.dropped) * 2 * 4
    left = [one for one in second.stage if one.task in first.dropped]
    assert {(one.treatment_valid, one.control_valid) for one in left} == {(0, 0)}
    status = read_status(site.store, CAMPAIGN)
    assert (status.state, status.planned, status.terminal) == (State.COMPLETE, len(launched), len(launched))
    assert status.complete_blocks == 6
    said = f"left out after block 2, since all or none of their trials passed: {', '.join(first.dropped)}"
    assert said in lines(status)
    assert any(told.startswith("left out, saturated: task-") for told in site.told)
    assert site.run(plan) is Ending.COMPLETE  # again: nothing of them starts
    assert len(site.cluster.order) == len(launched)


def test_what_saturates_a_task_is_the_total_over_all_conditions(site: Site) -> None:
    """A third condition in which tasks pass sometimes keeps them, though the declared two say nothing."""
    plan = monitored(DROPPING, conditions=(CONTROL, TREATED, "intent_layer"))
    site.cluster.rates = {TREATED: 0.0, CONTROL: 0.0, "intent_layer": 0.5}
    assert site.run(plan) is Ending.COMPLETE
    passed = {
        outcome.trial.task
        for outcome in site.ledger.attempts.outcomes([t.id for t in trials(plan, 2)])
        if outcome.scored is not None and outcome.scored.verdict is Verdict.PASSED
    }
    assert site.decisions[0].dropped == tuple(sorted({f"task-{i}" for i in range(6)} - passed))
    assert passed


def test_a_task_of_which_nothing_was_measured_stays(site: Site) -> None:
    plan = monitored(DROPPING, retries={"mid_run": 0, "disruptions": 0})
    site.cluster.rates, site.cluster.sure = {TREATED: 0.5, CONTROL: 0.5}, SURE
    site.cluster.losing = {t.id for t in trials(plan, 2) if t.task == "task-1"}
    assert site.run(plan) is Ending.INCOMPLETE
    assert "task-1" not in site.decisions[0].dropped
    assert "task-4" in site.decisions[0].dropped


def test_where_every_task_is_saturated_the_campaign_is_over(site: Site) -> None:
    site.cluster.rates = {TREATED: 0.0, CONTROL: 0.0}
    assert site.run(monitored(DROPPING)) is Ending.COMPLETE
    assert [(d.number, d.result.p_value, d.result.verdict) for d in site.decisions] == [
        (1, 1.0, "continue"),
        (2, 1.0, "continue"),
        (3, 1.0, "end"),
    ]
    assert len(site.cluster.order) == 6 * 2 * 2


def test_a_look_that_ends_the_campaign_leaves_nothing_out(site: Site) -> None:
    plan = monitored(DROPPING)
    site.cluster.rates, site.cluster.sure = {TREATED: 1.0, CONTROL: 0.0}, {"task-1": True}
    assert site.run(plan) is Ending.DECIDED
    assert [(d.blocks, d.dropped) for d in site.decisions] == [(2, ())]


def test_reps_that_are_added_leave_the_same_tasks_out(site: Site) -> None:
    plan = monitored(DROPPING)
    site.cluster.rates, site.cluster.sure = {TREATED: 0.5, CONTROL: 0.5}, SURE
    assert site.run(plan) is Ending.COMPLETE
    before, dropped = len(site.cluster.order), site.decisions[0].dropped
    amendment = amend(site.ledger, reps=8)
    assert amendment is not None
    assert amendment.after_look
    assert site.run(plan, reps=8) is Ending.COMPLETE
    assert len(site.cluster.order) == before + 2 * 2 * (6 - len(dropped))
    assert site.state is State.COMPLETE


def test_shards_leave_out_the_same_tasks(site: Site) -> None:
    plan = monitored(DROPPING, blocks_ahead=6)  # nobody renews the shards' leases here
    site.cluster.rates, site.cluster.sure = {TREATED: 0.5, CONTROL: 0.5}, SURE
    running = [in_background(site.dispatcher(plan, shard=shard, shards=3).run) for shard in range(3)]
    assert {run.result(60) for run in running} == {Ending.COMPLETE}
    assert len(site.cluster.order) == 6 * 2 * 6 - len(site.decisions[0].dropped) * 2 * 4
    assert site.state is State.COMPLETE


def test_two_controllers_leave_out_what_the_first_decision_says(site: Site) -> None:
    """Two at once, and one that would have left out another task: the record decides."""
    plan = monitored(DROPPING)
    site.cluster.rates, site.cluster.sure = {TREATED: 0.5, CONTROL: 0.5}, SURE
    both = [in_background(site.dispatcher(plan).run) for _ in range(2)]
    assert {run.result(60) for run in both} == {Ending.COMPLETE}
    first = site.decisions[0]
    assert {attempt.trial for attempt in site.cluster.order} == {
        trial.id for trial in trials(plan) if trial.block < 2 or trial.task not in first.dropped
    }
    assert site.ledger.directives.decide(first.model_copy(update={"dropped": ("task-0",)})) == first


# --- reps that are re-estimated -----------------------------------------------------------------------


def growing(effect: float, cap: int = 9, stop: StopRule = NO_FUTILITY, **fields: object) -> Plan:
    rule = stop.model_copy(update={"reestimate": Reestimation(after=2, cap=cap)})
    primary = Primary(treatment=TREATED, control=CONTROL, effect=effect, stop=rule)
    return monitored(primary=primary, blocks_ahead=10, **fields)


def test_a_look_re_estimates_more_reps(site: Site) -> None:
    plan = growing(effect=0.1)
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    assert site.run(plan) is Ending.COMPLETE
    assert [(d.blocks, result(d).reps) for d in site.decisions] == [(2, 9), (6, None), (9, None)]
    assert site.blocks(plan) == set(range(9))
    assert len(site.cluster.order) == 6 * 2 * 9
    status = read_status(site.store, CAMPAIGN)
    assert (status.state, status.reps, status.planned, status.complete_blocks) == (State.COMPLETE, 9, 108, 9)
    assert list(status.look_bounds) == [2, 6, 9]
    assert "3 of 3 declared looks are taken; reps re-estimated: 9, planned 6" in lines(status)
    assert "re-estimated: 9 reps" in site.told
    assert site.run(plan) is Ending.COMPLETE  # again
    assert len(site.cluster.order) == 108
    with pytest.raises(OperatorError, match="9 reps already"):
        amend(site.ledger, reps=9)


def test_a_look_re_estimates_fewer_reps(site: Site) -> None:
    plan = growing(effect=0.5)
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    site.cluster.sure = {f"task-{i}": i % 2 == 0 for i in range(5)}  # one task of six varies
    assert site.run(plan) is Ending.COMPLETE
    [only] = site.decisions
    assert (only.blocks, result(only).reps, only.result.verdict) == (2, 2, "end")
    assert result(only).level == 0.025  # it is the end: all of alpha may be spent
    assert site.blocks(plan) == {0, 1}
    status = read_status(site.store, CAMPAIGN)
    assert (status.state, status.planned, status.complete_blocks) == (State.COMPLETE, 24, 2)


def test_before_the_look_only_the_planned_reps_are_counted(site: Site) -> None:
    plan = growing(effect=0.1)
    dispatcher = site.dispatcher(plan, reps=0)
    assert sum(one.planned for one in dispatcher.report().conditions.values()) == 0
    site.cluster.usual = Fate(seconds=600)
    run = in_background(dispatcher.run)
    wait_until(lambda: len(site.cluster.living) == 20)
    assert sum(one.planned for one in dispatcher.report().conditions.values()) == 72
    assert read_status(site.store, CAMPAIGN).planned == 72
    site.ledger.directives.cancel(now=True, by="test")
    assert run.result(60) is Ending.CANCELLED


def test_shards_and_a_second_controller_go_on_to_the_re_estimated_reps(site: Site) -> None:
    plan = growing(effect=0.1, cap=8)
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    running = [in_background(site.dispatcher(plan, shard=shard, shards=3).run) for shard in range(3)]
    running.append(in_background(site.dispatcher(plan).run))
    assert {run.result(60) for run in running} == {Ending.COMPLETE}
    assert {attempt.trial for attempt in site.cluster.order} == {trial.id for trial in trials(plan, 8)}
    assert result(site.decisions[0]).reps == 8


def test_saturated_tasks_are_left_out_of_the_re_estimated_reps_too(site: Site) -> None:
    plan = growing(effect=0.1, stop=DROPPING)
    site.cluster.rates, site.cluster.sure = {TREATED: 0.5, CONTROL: 0.5}, SURE
    assert site.run(plan) is Ending.COMPLETE
    first = site.decisions[0]
    assert result(first).reps == 9
    assert len(site.cluster.order) == 6 * 2 * 2 + (6 - len(first.dropped)) * 2 * 7
    assert site.state is State.COMPLETE


def result(decision: Decision) -> LookResult:
    assert isinstance(decision.result, LookResult)
    return decision.result


# --- without a fixed end ----------------------------------------------------------------------------

BETS = AnytimeRule(anytime="half")


def open_ended(reps: int = 4, **fields: object) -> Plan:
    primary = Primary(treatment=TREATED, control=CONTROL, effect=0.3, stop=BETS)
    return make_plan(**{"tasks": 6, "reps": reps, "parallel": 20, "primary": primary, **fields})  # type: ignore[arg-type]


def test_bets_end_a_campaign_after_the_first_block_that_decides(site: Site) -> None:
    site.cluster.rates = {TREATED: 1.0, CONTROL: 0.0}
    assert site.run(open_ended(reps=8)) is Ending.DECIDED
    [first, second] = site.decisions  # 2⁶ = 64 times the stake for 6 of 6 would be bold; half of it is mixed
    assert isinstance(second.result, AnytimeResult)
    assert (first.blocks, second.blocks) == (1, 2)
    assert (first.result.verdict, second.result.verdict) == ("continue", "benefit")
    assert (second.result.won, second.result.lost, second.result.equal, second.result.broken) == (12, 0, 0, 0)
    assert second.result.p_value <= 0.05 < first.result.p_value
    assert not site.cluster.living  # trials of later blocks have finished
    assert site.told[-1].startswith("decided for benefit after 2 blocks: p at any look 0.0")
    status = read_status(site.store, CAMPAIGN)
    assert (status.state, status.decided, status.anytime, status.looks_taken) == (
        State.DECIDED,
        "benefit",
        True,
        2,
    )
    assert "decided after 2 blocks: benefit" in lines(status)
    assert site.run(open_ended(reps=8)) is Ending.DECIDED  # again: nothing more starts, nothing is decided twice
    assert len(site.decisions) == 2


def test_every_block_is_looked_at_in_order_and_none_holds_later_ones_back(site: Site) -> None:
    plan = open_ended()
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    site.cluster.usual = Fate(seconds=600)
    run = in_background(site.dispatcher(plan).run)
    wait_until(lambda: len(site.cluster.living) == 20)
    assert site.blocks(plan) == {0, 1}  # 12 trials a block: the second one has begun
    shown = "\n".join(lines(read_status(site.store, CAMPAIGN), rates=False))
    assert "0 blocks looked at, none has decided" in shown
    site.cluster.hasten()
    assert run.result(60) is Ending.COMPLETE
    assert [(d.number, d.blocks, d.result.verdict) for d in site.decisions] == [
        (number, number, "continue") for number in (1, 2, 3, 4)
    ]


def test_a_campaign_without_a_fixed_end_grows_until_it_decides(site: Site) -> None:
    plan = open_ended(reps=2)
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    assert site.run(plan) is Ending.COMPLETE
    with pytest.raises(OperatorError, match="2 reps already"):
        grow_until_decided(site.ledger, 1)
    assert grow_until_decided(site.ledger, 2) is None
    grown = grow_until_decided(site.ledger, 20)
    assert grown is not None
    assert grown.reps == 20
    assert grown.after_look  # every planned trial had ended: results may have been seen
    site.cluster.rates = {TREATED: 1.0, CONTROL: 0.0}
    assert site.run(plan, reps=20) is Ending.DECIDED
    assert [d.blocks for d in site.decisions] == list(range(1, len(site.decisions) + 1))
    assert 3 <= len(site.decisions) < 20
    assert grow_until_decided(site.ledger, 30) is None


def test_only_a_campaign_without_a_fixed_end_may_grow_until_it_is_decided(site: Site) -> None:
    site.ledger.freeze(monitored())
    with pytest.raises(OperatorError, match="has a fixed end"):
        grow_until_decided(site.ledger, 9)


def test_a_lost_trial_breaks_its_pair_alone(site: Site) -> None:
    """Its block stays open until every task has a complete pair."""
    plan = open_ended(reps=3, retries={"mid_run": 0, "disruptions": 0})
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    lost = next(trial for trial in trials(plan, 3) if trial.block == 1 and trial.condition == TREATED)
    site.cluster.losing = {lost.id}
    assert site.run(plan) is Ending.INCOMPLETE
    results = [one.result for one in site.decisions if isinstance(one.result, AnytimeResult)]
    settled = [(one.broken, one.won + one.lost + one.equal, one.open_blocks) for one in results]
    assert settled == [(0, 6, 0), (1, 6, 1), (1, 17, 0)]


def test_shards_settle_the_bets_once(site: Site) -> None:
    plan = open_ended(reps=3)
    site.cluster.rates = {TREATED: 0.5, CONTROL: 0.5}
    running = [in_background(site.dispatcher(plan, shard=shard, shards=3).run) for shard in range(3)]
    assert {run.result(60) for run in running} <= {Ending.COMPLETE, Ending.DECIDED}
    assert [d.blocks for d in site.decisions] == list(range(1, len(site.decisions) + 1))
