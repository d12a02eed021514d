"""What may differ from the frozen plan while a campaign is driven."""

from __future__ import annotations

import pytest

from tests.support.plans import kube_plan, make_plan
from trialfleet_controller.dispatch.drive_options import AmendedLimits, DriveOptions
from trialfleet_controller.dispatch.shards import Lease
from trialfleet_ledger.records.directives import Amendment


def test_without_a_choice_the_plans_values_hold() -> None:
    plan = kube_plan(context="c", max_pending=11, creates_per_s=3, creates_burst=5)
    options = DriveOptions.of(plan, keep_failed=2)
    assert options == DriveOptions(10, "c", max_pending=11, creates_per_s=3, creates_burst=5, keep_failed=2)
    assert Lease.whole(options, 9.0) == Lease(10, 3, 5, money_usd=9.0)


def test_on_this_machine_nothing_limits_how_fast_attempts_start() -> None:
    options = DriveOptions.of(make_plan(parallel=7), keep_failed=2, cluster_gone=True)
    assert options == DriveOptions(7), "nothing of a cluster"
    assert Lease.whole(options, None) == Lease(7)


@pytest.mark.parametrize("first_at", [None, 100.0])
def test_amended_limits_are_the_plans_until_an_amendment_changes_them(first_at: float | None) -> None:
    plan = make_plan(reps=3).model_copy(update={"cost_usd_campaign": 4.0})
    assert AmendedLimits.of(plan) == AmendedLimits(3, 4.0)
    amendments = [
        Amendment(number=1, at=0, reps=5),
        Amendment(number=2, at=1, cost_usd_campaign=2, wall_clock_s=60),
    ]
    ends_at = None if first_at is None else first_at + 60
    assert AmendedLimits.of(plan, amendments, first_at) == AmendedLimits(5, 2.0, ends_at)
