"""Whether pods of a campaign may still run somewhere, as the ledger has it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support import records
from tests.support.plans import kube_plan, make_plan
from trialfleet_controller.backends.attempt_times import grants_expire_s
from trialfleet_controller.dispatch.drive_options import DriveOptions
from trialfleet_controller.dispatch.shards import shard_of
from trialfleet_controller.hosting.division import Shard
from trialfleet_controller.hosting.pods import pods, runs_elsewhere
from trialfleet_ledger import keys
from trialfleet_ledger.campaign_spec import StoreSpec
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.attempt import End, Start
from trialfleet_ledger.records.verdicts import Loss, LossClass
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import trials

PLAN = make_plan()
TRIAL = trials(PLAN)[0].id
HERE = shard_of(TRIAL, 2, namespaces=2)
START = records.start(trial=TRIAL, pod="uid")
LOST = Loss(loss=LossClass.NODE_LOST, message="", agent_started=True)


HERE_CA, OTHER_CA = "a" * 64, "b" * 64


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return made_ledger(tmp_path)


def made_ledger(root: Path, *, cluster: str | None = None) -> Ledger:
    made = Ledger(DirectoryStore(root), PLAN.campaign)
    intent = records.intent(trial=TRIAL, cluster_id=cluster)
    made.store.put(keys.grants(PLAN.campaign, TRIAL, 1), b"{}")
    made.store.put(keys.attempt_file(PLAN.campaign, TRIAL, 1, "intent.json"), canonical_json(intent))
    return made


def has(ledger: Ledger, record: Start | End) -> None:
    folder = keys.attempts(PLAN.campaign, TRIAL, 1)
    name = "start.json" if isinstance(record, Start) else "end.json"
    ledger.store.put(f"{folder}{name}", canonical_json(record))


def begun(
    ledger: Ledger, shard: Shard, plan: Plan, cluster: str | None = None, *, only_named: bool = False
) -> bool:
    return runs_elsewhere(ledger, shard, plan, cluster_id=cluster, only_named=only_named)


def test_a_start_without_an_end_is_a_pod_that_may_run(ledger: Ledger) -> None:
    shard = Shard(HERE, 2, "a", 2)
    assert not begun(ledger, shard, PLAN)
    has(ledger, START.model_copy(update={"at": time.time()}))
    assert begun(ledger, shard, PLAN)
    assert not begun(ledger, Shard(1 - HERE, 2, "b", 2), PLAN), "that namespace has none"
    assert all(begun(ledger, Shard(2 * HERE + k, 4, "a", 2), PLAN) for k in (0, 1)), (
        "all shards of a namespace agree"
    )
    has(ledger, records.end(LOST, trial=TRIAL, by="controller"))
    assert not begun(ledger, shard, PLAN)


def test_who_says_that_the_cluster_is_gone_is_believed_by_every_dispatcher() -> None:
    plan = kube_plan(namespaces=("a",))
    options = DriveOptions.of(plan, cluster_gone=True)
    assert pods(plan, StoreSpec(url="s3://b/p"), options, elsewhere=True).options.cluster_gone


def test_what_ran_on_a_machine_is_no_pod(ledger: Ledger) -> None:
    has(ledger, START.model_copy(update={"pod": None, "at": time.time()}))
    assert not begun(ledger, Shard(HERE, 2, "a", 2), PLAN)


def test_a_start_whose_pods_deadline_has_passed_is_no_pod_that_may_run(ledger: Ledger) -> None:
    """The pod has expired with its owner, and the next controller makes another."""
    has(ledger, START.model_copy(update={"at": time.time() - grants_expire_s(PLAN) - 1}))
    assert not begun(ledger, Shard(HERE, 2, "a", 2), PLAN)


@pytest.mark.parametrize(
    ("launched_in", "looked_at", "elsewhere", "named"),
    [
        (HERE_CA, HERE_CA, False, False),
        (HERE_CA, OTHER_CA, True, True),
        (None, HERE_CA, True, False),
        (HERE_CA, None, True, True),
        (None, None, True, False),
    ],
)
def test_a_pod_of_this_very_cluster_is_not_elsewhere(
    tmp_path: Path, launched_in: str | None, looked_at: str | None, elsewhere: bool, named: bool
) -> None:
    """An identity that is not known proves nothing."""
    ledger = made_ledger(tmp_path, cluster=launched_in)
    has(ledger, START.model_copy(update={"at": time.time()}))
    assert begun(ledger, Shard(HERE, 2, "a", 2), PLAN, looked_at) is elsewhere
    assert begun(ledger, Shard(HERE, 2, "a", 2), PLAN, looked_at, only_named=True) is named
