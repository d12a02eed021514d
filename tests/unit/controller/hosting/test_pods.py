"""Whether pods of a campaign may still run somewhere, as the ledger has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.fake_campaign import fake_plan
from trialfleet_controller import keys
from trialfleet_controller.driving import Hosts
from trialfleet_controller.hosting.division import Shard
from trialfleet_controller.hosting.drive import pods
from trialfleet_controller.hosting.pods import begun
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.plan import trials
from trialfleet_controller.shards import shard_of
from trialfleet_runner.campaign import KubernetesPlan, StoreSpec
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.contract import End, Intent, Loss, LossClass, Start
from trialfleet_runner.store.directory import DirectoryStore

PLAN = fake_plan()
TRIAL = trials(PLAN)[0].id
HERE = shard_of(TRIAL, 2, namespaces=2)
START = Start(
    trial=TRIAL,
    attempt=1,
    nonce="n",
    at=0,
    host="h",
    boot_id="b",
    pid=1,
    scratch="/",
    isolation="container",
    pod="uid",
)
LOST = Loss(loss=LossClass.NODE_LOST, message="", agent_started=True)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(DirectoryStore(tmp_path), PLAN.campaign)
    intent = Intent(trial=TRIAL, attempt=1, nonce="n", epoch=1, at=0)
    made.store.put(keys.grants(PLAN.campaign, TRIAL, 1), b"{}")
    made.store.put(keys.attempt_file(PLAN.campaign, TRIAL, 1, "intent.json"), canonical_json(intent))
    return made


def has(ledger: Ledger, record: Start | End) -> None:
    folder = keys.attempts(PLAN.campaign, TRIAL, 1)
    name = "start.json" if isinstance(record, Start) else "end.json"
    ledger.store.put(f"{folder}{name}", canonical_json(record))


def test_a_start_without_an_end_is_a_pod_that_may_run(ledger: Ledger) -> None:
    shard = Shard(HERE, 2, "a", 2)
    assert not begun(ledger, shard)
    has(ledger, START)
    assert begun(ledger, shard)
    assert not begun(ledger, Shard(1 - HERE, 2, "b", 2)), "that namespace has none"
    assert all(begun(ledger, Shard(2 * HERE + k, 4, "a", 2)) for k in (0, 1)), "all shards of a namespace agree"
    has(ledger, End(trial=TRIAL, attempt=1, nonce="n", at=1, by="controller", loss=LOST))
    assert not begun(ledger, shard)


def test_who_says_that_the_cluster_is_gone_is_believed_by_every_dispatcher() -> None:
    hosts = Hosts.asked(no_ray=False, ray_address=None, log=None, local=False, cluster_gone=True)
    kube = KubernetesPlan(image="i", image_id="i", network="enforced", namespaces=("a",))
    plan = PLAN.model_copy(update={"kubernetes": kube})
    assert pods(plan, StoreSpec(url="s3://b/p"), elsewhere=True, cluster_gone=hosts.cluster_gone).cluster_gone


def test_what_ran_on_a_machine_is_no_pod(ledger: Ledger) -> None:
    has(ledger, START.model_copy(update={"pod": None}))
    assert not begun(ledger, Shard(HERE, 2, "a", 2))
