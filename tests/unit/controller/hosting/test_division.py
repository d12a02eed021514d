"""How a campaign is divided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.integration.fake_campaign import fake_plan
from trialfleet_controller.capacity import UNBOUNDED
from trialfleet_controller.hosting.division import Shard, shards, width
from trialfleet_controller.hosting.drive import pods
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.plan import Planned, base32
from trialfleet_runner.campaign import KubernetesPlan, Plan, StoreSpec


def in_pods(parallel: int) -> Plan:
    kube = KubernetesPlan(image="i", image_id="i", network="enforced", namespaces=("a", "b"))
    return fake_plan(parallel=parallel).model_copy(update={"kubernetes": kube})


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
    assert [(shard.index, shard.namespace) for shard in shards(plan)] == found
    assert {shard.count for shard in shards(plan)} == {len(found)}


def test_a_width_that_is_left_open_is_what_one_dispatcher_a_namespace_holds() -> None:
    plan = in_pods(UNBOUNDED)
    assert shards(plan) == (Shard(0, 2, "a", 2), Shard(1, 2, "b", 2))
    site = pods(plan, StoreSpec(url="s3://bucket/prefix"), elsewhere=False)
    assert width(plan) == Pool.of(plan).width == site.parallel == 5000


@given(st.integers(1, 40_000), st.integers(1, 40_000), st.lists(st.binary(min_size=16, max_size=16), max_size=30))
def test_a_resume_of_another_width_leaves_every_trial_in_its_namespace(
    before: int, after: int, seeds: list[bytes]
) -> None:
    trials = [Planned(base32(seed), "task", "none", 0, 0, 0, 0) for seed in seeds]

    def namespaces(width: int) -> list[tuple[str, str | None]]:
        return sorted(
            (trial.id, shard.namespace) for shard in shards(in_pods(width)) for trial in shard.mine(trials)
        )

    assert namespaces(before) == namespaces(after)
    assert [trial for trial, _ in namespaces(before)] == sorted(trial.id for trial in trials)


def test_how_much_is_asked_of_the_cluster_is_not_what_is_frozen() -> None:
    """`run` and `resume` may change it; a dispatcher reads the frozen plan."""
    frozen, faster = in_pods(2), {"context": "another", "max_pending": 7, "creates_per_s": 3.0, "creates_burst": 5}
    assert frozen.kubernetes is not None
    now = frozen.model_copy(update={"parallel": 9, "kubernetes": frozen.kubernetes.model_copy(update=faster)})
    site = pods(now, StoreSpec(url="s3://bucket/prefix"), elsewhere=False)
    assert site.as_asked(frozen) == now
    asked = pods(now, StoreSpec(url="s3://bucket/prefix"), elsewhere=True).as_asked(frozen).kubernetes
    assert asked is not None
    assert (asked.context, asked.max_pending) == (None, 7), "by its own service account, and as fast"


def test_without_a_cluster_there_is_one() -> None:
    assert shards(fake_plan()) == (Shard(0, 1),)
