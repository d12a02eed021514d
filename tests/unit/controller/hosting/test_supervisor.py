"""The supervisor: adds up, passes on, and says who is silent."""

from __future__ import annotations

from trialfleet_controller.backends.protocol import Wait
from trialfleet_controller.dispatch.events import CampaignEvent, EventKind
from trialfleet_controller.dispatch.shards import Activity, DispatcherStatus, Ending
from trialfleet_controller.dispatch.tally import ConditionCounts
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.messages import DispatcherFailure, ShardReport
from trialfleet_controller.hosting.supervisor import EVENTS, SILENT_S, CampaignSupervisor
from trialfleet_ledger.records.verdicts import LossClass


def said(shard: int, **fields: object) -> ShardReport:
    report = DispatcherStatus(
        activity=Activity.DRIVING,
        open=4,
        running=1,
        pending={Wait.QUEUED: 1},
        conditions={"none": ConditionCounts(planned=5, measured=1, running=1, lost_attempts=2)},
        losses={LossClass.EVICTED: 2},
    )
    return ShardReport(shard, None, report, **fields)  # type: ignore[arg-type]


def test_counters_are_added_up() -> None:
    campaign = CampaignSupervisor(Pool(4), 2)
    for shard in (0, 1):
        campaign.exchange(said(shard))
    found = campaign.summary(0).report
    assert found.conditions["none"] == ConditionCounts(planned=10, measured=2, running=2, lost_attempts=4)
    assert found.pending == {Wait.QUEUED: 2}
    assert (found.open, found.running, found.losses) == (8, 2, {LossClass.EVICTED: 4})


def test_the_wish_to_stop_reaches_every_dispatcher_also_of_a_new_supervisor() -> None:
    campaign = CampaignSupervisor(Pool(4), 1)
    assert campaign.exchange(said(0)).interrupts == 0
    campaign.summary(2)
    assert campaign.exchange(said(0)).interrupts == 2
    anew = CampaignSupervisor(Pool(4), 1)
    anew.summary(2)
    assert anew.exchange(said(0)).interrupts == 2


def test_one_that_failed_stops_the_others_and_its_failure_is_kept() -> None:
    campaign = CampaignSupervisor(Pool(4), 2)
    failure = DispatcherFailure("operator", "no such namespace", hint="make it")
    campaign.exchange(said(0, failure=failure, ended=Ending.INTERRUPTED))
    assert campaign.exchange(said(1)).interrupts == 1
    assert campaign.summary(0).ending is None
    campaign.exchange(said(1, ended=Ending.INTERRUPTED))
    found = campaign.summary(0)
    assert (found.ending, found.failure) == (Ending.INTERRUPTED, failure)


def test_who_says_nothing_is_named() -> None:
    now = [0.0]
    campaign = CampaignSupervisor(Pool(4), 2, clock=lambda: now[0])
    now[0] = SILENT_S + 1
    campaign.exchange(said(1))
    assert campaign.summary(0).silent == (0,)
    campaign.exchange(said(0))
    assert campaign.summary(0).silent == ()


def test_events_are_handed_on_once_and_no_more_than_fit() -> None:
    campaign = CampaignSupervisor(Pool(4), 1)
    campaign.exchange(said(0, events=[CampaignEvent(1.0, EventKind.LAUNCHED, "t", 1)]))
    (event,) = campaign.summary(0).events
    assert (event.kind, event.shard) == (EventKind.LAUNCHED, 0)
    assert campaign.summary(0).events == ()
    many = [CampaignEvent(float(i), EventKind.LOST) for i in range(EVENTS + 10)]
    campaign.exchange(said(0, events=many, missed=5))
    found = campaign.summary(0)
    assert (len(found.events), found.missed) == (EVENTS, 15)
    assert found.events[-1].at == EVENTS + 9
