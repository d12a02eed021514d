"""Holding back: provider trouble, broken harnesses, money."""

from __future__ import annotations

from trialfleet_controller.dispatch.breaker import Breaker, Health, Outage, ProviderHealth
from trialfleet_controller.dispatch.shards import Answers
from trialfleet_controller.dispatch.trial_table import CampaignBudget
from trialfleet_ledger.records.verdicts import HaltScope, Loss, LossClass
from trialfleet_ledger.spent_money import price_runs


def loss_of(loss: LossClass) -> Loss:
    return Loss(loss=loss, message="", agent_started=True)


HOST_FULL = Loss(loss=LossClass.HOST_FULL, message="", agent_started=False)


def test_provider_losses_halve_the_width_and_verdicts_restore_it() -> None:
    breaker = Breaker.closed(64).lost(64).lost(64)
    assert breaker.width == 16
    assert breaker.pause_s == 0
    for _ in range(10):
        breaker = breaker.lost(64)
    assert breaker.width == 1
    assert breaker.pause_s == 300
    assert Breaker.closed(64).lost(64).lost(64).lost(64).pause_s == 5
    breaker = breaker.answered()
    assert (breaker.width, breaker.pause_s) == (2, 0)
    for _ in range(100):
        breaker = breaker.answered()
    assert breaker.width == 64


def test_half_of_what_was_under_way_not_of_a_width_that_nobody_used() -> None:
    assert Breaker.closed(1000).lost(8).width == 4


def test_another_width_does_not_lift_what_is_held_back() -> None:
    assert Breaker.closed(8).resized(64).width == 64
    assert Breaker.closed(64).lost(64).resized(128).width == 32
    assert Breaker.closed(64).lost(64).resized(16).width == 16


def test_trouble_that_other_shards_have_with_the_provider_holds_everybody_back() -> None:
    mine = ProviderHealth(Breaker.closed(32))
    assert mine.heard(None, Answers(lost=7), in_flight=32, now=0) == mine, "how it was before is no news"
    held = mine.heard(Answers(lost=7), Answers(lost=9), in_flight=32, now=100)
    assert (held.breaker.width, held.not_before) == (8, 100), "no pause yet"
    held = held.heard(Answers(lost=9), Answers(lost=10), in_flight=8, now=100)
    assert (held.breaker.width, held.not_before) == (4, 105), "the third in a row"
    better = held.heard(Answers(lost=10), Answers(lost=10, given=3), in_flight=4, now=200)
    assert (better.breaker.width, better.breaker.in_a_row) == (4, 0), "each verdict widens the campaign once"
    assert better.heard(Answers(lost=10), Answers(), in_flight=4, now=300) == better, "a shard began anew"


def test_a_shard_tells_what_it_has_heard_of_the_provider() -> None:
    told = ProviderHealth(Breaker.closed(32)).measured("task")
    for loss in (LossClass.PROVIDER, LossClass.EVICTED, LossClass.PROVIDER):
        told = told.lost("task", loss_of(loss), in_flight=9, working=8, now=0, back_off_s=1)
    assert told.answers == Answers(lost=2, given=1)
    passed_on = told.heard(Answers(), Answers(lost=5), in_flight=4, now=0)
    assert passed_on.answers == told.answers, "what others said is not said again"


def test_a_task_that_only_loses_is_halted_in_all_conditions() -> None:
    health = Health().measured("good")
    for _ in range(4):
        health = health.lost("bad", loss_of(LossClass.SETUP))
    assert health.verdict("bad") is HaltScope.NONE
    health = health.lost("bad", loss_of(LossClass.SETUP))
    assert health.verdict("bad") is HaltScope.TASK
    assert health.verdict("good") is HaltScope.NONE
    assert health.measured("bad").verdict("bad") is HaltScope.NONE


def test_tests_that_a_patch_made_too_large_are_no_broken_harness() -> None:
    """One trial whose patch eats memory would else halt its task in all conditions."""
    health, killed = Health(), loss_of(LossClass.SCORING).model_copy(update={"by_patch": True})
    for i in range(20):
        health = health.lost(f"task-{i % 2}", killed)
    assert health == Health()
    assert health.lost("task-0", loss_of(LossClass.SCORING)) != Health()


def test_a_harness_that_loses_everything_halts_the_campaign() -> None:
    health = Health()
    for i in range(10):
        health = health.lost(f"task-{i % 4}", loss_of(LossClass.RUNNER))
    assert health.verdict("task-0") is HaltScope.CAMPAIGN
    assert health.measured("task-1").verdict("task-0") is HaltScope.NONE


def test_machines_that_come_and_go_are_nobodys_fault() -> None:
    health = Health()
    for _ in range(100):
        health = health.lost("task", loss_of(LossClass.EVICTED))
    assert health.verdict("task") is HaltScope.NONE


def test_only_what_no_agent_did_adds_up_to_an_outage() -> None:
    outage = Outage()
    for _ in range(20):
        outage = outage.lost("a", Loss(loss=LossClass.CANCELLED, message="", agent_started=False))
        outage = outage.lost("a", Loss(loss=LossClass.NODE_LOST, message="", agent_started=True))
    assert outage == Outage(by_task={"a": 0})
    for task in "abcdefghij":
        assert not outage.over(task)
        outage = outage.lost(task, Loss(loss=LossClass.EVICTED, message="", agent_started=False))
    assert outage.over("j")
    assert outage.pause_s(1) == 128
    assert not outage.measured("a").over("j")


def test_a_campaign_wider_than_its_cluster_is_no_outage_while_others_run() -> None:
    no_room = Loss(loss=LossClass.UNSCHEDULABLE, message="0/3 nodes are available", agent_started=False)
    wide = idle = ProviderHealth(Breaker.closed(64))
    for i in range(10):
        assert not idle.outage.over(f"{i}")
        wide = wide.lost(f"{i}", no_room, in_flight=64, working=1, now=0, back_off_s=1)
        idle = idle.lost(f"{i}", no_room, in_flight=64, working=0, now=0, back_off_s=1)
    assert (wide.outage.over("9"), wide.not_before) == (False, 0)
    assert idle.outage.over("9"), "a cluster that takes nothing stops the campaign"


def test_a_task_that_alone_needs_too_much_room_stops_the_campaign() -> None:
    outage = Outage()
    for _ in range(9):
        outage = outage.lost("big", HOST_FULL).measured("small")
    assert not outage.over("big")
    assert outage.lost("big", HOST_FULL).over("big")
    assert outage.lost("small", HOST_FULL).pause_s(1) == 0


def test_the_cap_is_kept_by_reservation() -> None:
    budget = CampaignBudget(cap=10, trial=2)
    assert budget.allows(4)
    assert not budget.allows(5)
    budget = budget.charged(price_runs(1, 0.5, budget.trial))
    assert budget.spent == 0.5
    assert budget.allows(3)
    assert not budget.allows(4)


def test_what_is_unknown_is_taken_as_the_most_it_can_have_been() -> None:
    assert price_runs(1, None, 2) == 2  # lost, or not measured
    assert price_runs(3, 0.5, 2) == 4.5  # two lost runs before it
    assert price_runs(0, None, 2) == 0  # lost before the agent


def test_without_a_cap_everything_may_start() -> None:
    assert CampaignBudget(cap=None, trial=0, spent=1e9).allows(10_000)


def test_text_of_another_condition_halts_from_two_tasks_on() -> None:
    """One attempt may have brought it about itself."""
    health = ProviderHealth(Breaker.closed(8))
    loss = Loss(loss=LossClass.CONTAMINATED, message="m", agent_started=True)
    scopes: list[HaltScope] = []
    for task in ("a", "a", "b", "c"):
        health = health.measured("z").lost(task, loss, in_flight=1, working=0, now=0, back_off_s=1)
        scopes.append(health.scope(task, loss))
    assert scopes == [HaltScope.NONE, HaltScope.NONE, HaltScope.CAMPAIGN, HaltScope.CAMPAIGN]
    other = Loss(loss=LossClass.EVICTED, message="m", agent_started=True)
    assert health.scope("a", other) is HaltScope.NONE
