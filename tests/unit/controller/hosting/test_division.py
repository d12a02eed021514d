"""How a campaign is divided."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plans import kube_plan, make_plan
from trialfleet_controller.backends.local.capacity import UNBOUNDED
from trialfleet_controller.dispatch.drive_options import DriveOptions
from trialfleet_controller.hosting.division import Shard, shards, width
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.pods import pods
from trialfleet_ledger.campaign_spec import StoreSpec
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.trial_order import Planned, base32


def in_pods(parallel: int) -> Plan:
    return kube_plan(namespaces=("a", "b")).model_copy(update={"parallel": parallel})


@pytest.mark.parametrize(
    ("parallel", "found"),
    [
        (2, [(0, "a"), (1, "b")]),
        (5000, [(0, "a"), (1, "b")]),
        (5001, [(0, "a"), (1, "a"), (2, "b"), (3, "b")]),
    ],
)
def test_one_shard_a_namespace_more_above_what_one_may_hold(parallel: int, found: list[tuple[int, str]]) -> None:
    plan = in_pods(parallel)
    divided = shards(plan, DriveOptions.of(plan))
    assert [(shard.index, shard.namespace) for shard in divided] == found
    assert {shard.count for shard in divided} == {len(found)}


def test_a_width_that_is_left_open_is_what_one_dispatcher_a_namespace_holds() -> None:
    plan = in_pods(UNBOUNDED)
    options = DriveOptions.of(plan)
    assert shards(plan, options) == (Shard(0, 2, "a", 2), Shard(1, 2, "b", 2))
    site = pods(plan, StoreSpec(url="s3://bucket/prefix"), options, elsewhere=False)
    assert width(plan, options) == Pool.of(plan, options, None).width == site.options.parallel == 5000


@given(st.integers(1, 40_000), st.integers(1, 40_000), st.lists(st.binary(min_size=16, max_size=16), max_size=30))
def test_a_resume_of_another_width_leaves_every_trial_in_its_namespace(
    before: int, after: int, seeds: list[bytes]
) -> None:
    trials = [Planned(base32(seed), "task", "none", 0, 0, 0, 0) for seed in seeds]

    plan = in_pods(before)

    def namespaces(width: int) -> list[tuple[str, str | None]]:
        divided = shards(plan, DriveOptions(width))
        return sorted((trial.id, shard.namespace) for shard in divided for trial in shard.mine(trials))

    assert namespaces(before) == namespaces(after)
    assert [trial for trial, _ in namespaces(before)] == sorted(trial.id for trial in trials)


def test_how_much_is_asked_of_the_cluster_is_not_what_is_frozen() -> None:
    """`run` and `resume` may change it; a dispatcher reads the frozen plan."""
    options = DriveOptions(9, context="another", max_pending=7, creates_per_s=3.0, creates_burst=5)
    frozen, address = in_pods(2), StoreSpec(url="s3://bucket/prefix")
    assert pods(frozen, address, options, elsewhere=False).options == options
    there = pods(frozen, address, options, elsewhere=True).options
    assert there == replace(options, context=None), "by its own service account, and as fast"


def test_without_a_cluster_there_is_one() -> None:
    assert shards(make_plan(), DriveOptions.of(make_plan())) == (Shard(0, 1),)
