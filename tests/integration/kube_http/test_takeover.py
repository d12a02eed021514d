"""Pods that another controller launched, that nobody ends, or that are not what was planned."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.integration.kube_http.pods import TRIALS, Open, exited, finished, name_of, order, running
from tests.support import records
from tests.support import scripted_api as s
from tests.support.plans import IMAGE_ID, kube_plan
from tests.support.raw_pods import status
from tests.support.scripted_api import Api
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import names
from trialfleet_controller.backends.kube.backend import KubernetesBackend
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.owner import CampaignOwner, Elsewhere
from trialfleet_controller.backends.protocol import Liveness
from trialfleet_controller.backends.runner_termination import classify
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.attempt import Start
from trialfleet_ledger.records.verdicts import LossClass


def _unnamed(_: str | None, only_named: bool) -> bool:
    """The ledger has pods of which it does not say in which cluster they are."""
    return not only_named


def test_pods_that_may_run_in_another_cluster_are_not_started_here(
    api: Api, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is their owner made: the next controller must be refused as well."""
    monkeypatch.setattr("trialfleet_controller.backends.kube.owner.IDENTITY_S", 0.1)
    plan = kube_plan(namespaces=("trials",))
    for _ in range(2):
        with pytest.raises(OperatorError, match="not in this cluster"):
            CampaignOwner(client, "trials", plan, "s3://b/p").ensure(elsewhere=_unnamed)
        assert not api.config_maps
    first = CampaignOwner(client, "trials", plan, "s3://b/p").ensure()
    assert CampaignOwner(client, "trials", plan, "s3://b/p").ensure(elsewhere=_unnamed) == first


def test_an_owner_of_the_same_name_does_not_hide_pods_of_another_cluster(api: Api, client: Client) -> None:
    """A ledger may be driven in one cluster, then in another that has an owner of before."""
    plan = kube_plan(namespaces=("trials",))
    first = CampaignOwner(client, "trials", plan, "s3://b/p").ensure()
    named: Elsewhere = lambda cluster_id, _: cluster_id != sha256(b"certificate")  # noqa: E731
    assert CampaignOwner(client, "trials", plan, "s3://b/p").ensure(elsewhere=named) == first, "not known"
    api.root_ca = "certificate"
    assert CampaignOwner(client, "trials", plan, "s3://b/p").ensure(elsewhere=named) == first
    api.root_ca = "of another cluster"
    with pytest.raises(OperatorError, match="not in this cluster"):
        CampaignOwner(client, "trials", plan, "s3://b/p").ensure(elsewhere=named)


def test_a_new_namespace_is_waited_for_until_it_has_its_certificate(api: Api, client: Client) -> None:
    plan = kube_plan(namespaces=("trials",))

    def runs_elsewhere(cluster_id: str | None, _: bool) -> bool:
        if cluster_id is None:
            api.root_ca = "certificate"
        return cluster_id != sha256(b"certificate")

    owner = CampaignOwner(client, "trials", plan, "s3://b/p").ensure(elsewhere=runs_elsewhere)
    assert owner.name in api.config_maps


def test_a_dispatcher_beside_this_one_may_begin_while_this_one_looks(api: Api, client: Client) -> None:
    plan = kube_plan(namespaces=("trials",))

    def begins(_: str | None, only_named: bool) -> bool:
        CampaignOwner(client, "trials", plan, "s3://b/p").ensure()
        return not only_named

    assert CampaignOwner(client, "trials", plan, "s3://b/p").ensure(elsewhere=begins).name in api.config_maps


def test_an_owner_that_was_deleted_in_this_cluster_is_made_again(api: Api, client: Client) -> None:
    """A missing ConfigMap, Job or namespace is no other cluster: the certificate tells."""
    plan, other = kube_plan(namespaces=("trials",)), sha256(b"of another cluster")
    api.root_ca = "certificate"

    def runs_elsewhere(cluster: str | None, _: bool) -> bool:
        return cluster != launched_in

    launched_in: str | None = other
    with pytest.raises(OperatorError, match="not in this cluster"):
        CampaignOwner(client, "trials", plan, "s3://b/p").ensure(elsewhere=runs_elsewhere)
    owner = CampaignOwner(client, "trials", plan, "s3://b/p")
    owner.ensure()
    launched_in = owner.cluster_id
    assert launched_in == sha256(b"certificate")
    api.config_maps.clear()
    api.jobs.clear()
    again = CampaignOwner(client, "trials", plan, "s3://b/p").ensure(elsewhere=runs_elsewhere)
    assert again.name in api.config_maps


def test_failed_pods_are_kept_for_a_look(api: Api, opened: Open) -> None:
    backend = opened(keep_failed=1)
    for n in range(3):
        backend.launch(order(n))
        api.report(name_of(backend, n), "Failed", *exited(1))
        finished(backend)
        backend.settled(order(n).id)
    wait_until(lambda: backend.poll(0.05) == [] and len(api.pods) == 1)
    assert name_of(backend, 2) in api.pods


def started(n: int, uid: str, attempt: int = 1) -> Start:
    return records.start(trial=TRIALS[n], attempt=attempt, pod=uid)


def test_the_next_controller_adopts_what_runs(api: Api, opened: Open) -> None:
    first = opened()
    for n in (0, 1):
        first.launch(order(n))
        api.report(name_of(first, n), "Running", *running())
    uids = [api.pods[name_of(first, n)]["metadata"]["uid"] for n in (0, 1)]
    second = opened()
    assert second.adopt(order(0).id, started(0, uids[0]))
    assert not second.adopt(order(1).id, started(1, "another's pod"))
    assert not second.adopt(order(2).id, started(2, "no pod at all"))
    assert second.adopt(order(1).id, None), "a pod may wait for its place when its controller is killed"
    assert not second.adopt(order(2).id, None)
    assert second.alive(started(0, uids[0])) is Liveness.ALIVE
    assert second.alive(started(1, "another's pod")) is Liveness.GONE
    assert second.alive(started(2, "no pod at all")) is Liveness.GONE
    api.report(name_of(first, 0), "Failed", *exited(1))
    assert finished(second)[0].id == order(0).id
    assert second.alive(started(0, uids[0])) is Liveness.GONE
    api.always["get"] = s.refuse(503)
    assert second.alive(started(1, uids[1])) is Liveness.UNKNOWN


def test_before_the_first_listing_nothing_is_adopted_and_nobody_waits(
    api: Api, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trialfleet_controller.backends.kube.backend.FIRST_LISTING_S", 0.1)
    first = opened()
    first.launch(order())
    start = started(0, api.pods[name_of(first)]["metadata"]["uid"])
    api.report(name_of(first), "Failed", *exited(1))
    first.close()
    api.always["list"] = s.refuse(503)
    second = opened()
    began = time.monotonic()
    assert not second.adopt(order().id, start)
    assert second.alive(start) is Liveness.UNKNOWN, "its last words would be lost"
    assert time.monotonic() - began < 8, "less than a first listing may take"
    del api.always["list"]
    wait_until(lambda: second.adopt(order().id, start))
    assert finished(second)[0].departure.code == 1


def test_a_launch_that_was_made_before_is_taken_over(api: Api, opened: Open) -> None:
    first, second = opened(), opened()
    first.launch(order())
    second.launch(order())
    assert len(api.pods) == 1
    api.report(name_of(first), "Succeeded", *exited(0))
    assert finished(first)[0].departure == finished(second)[0].departure


def test_a_pod_that_a_lost_node_never_ends_is_given_up_once_and_stays_so(api: Api, opened: Open) -> None:
    """It says `Running` for ever: without a memory it would be adopted again, with a fresh clock each time."""

    def on_a_lost_node(backend: KubernetesBackend) -> Start:
        (one,) = finished(backend)
        loss = classify(one.departure, started=True, patched=False)
        assert (loss.loss, "never reported that it ended" in loss.message) == (LossClass.NODE_LOST, True)
        start = started(0, api.pods[name_of(backend)]["metadata"]["uid"])
        assert backend.alive(start) is Liveness.GONE
        assert not backend.adopt(order().id, start)
        return start

    first = opened()
    first.launch(order())
    name = name_of(first)
    api.report(name, "Running", *running())
    ending = {"deletionTimestamp": "2026-11-21T10:00:00Z", "deletionGracePeriodSeconds": 1}
    api.happen("MODIFIED", {**api.pods[name], "metadata": {**api.pods[name]["metadata"], **ending}})
    api.always["delete"] = lambda handler: handler.answer(200, {})  # nobody is there to carry it out
    start = on_a_lost_node(first)
    second = opened()
    assert second.alive(start) is Liveness.ALIVE, "another controller learns it by itself"
    assert second.adopt(order().id, start)
    on_a_lost_node(second)


def test_what_was_seen_to_end_is_gone_though_the_server_is_away(api: Api, opened: Open) -> None:
    backend = opened()
    backend.launch(order())
    start = started(0, api.pods[name_of(backend)]["metadata"]["uid"])
    api.report(name_of(backend), "Failed", *exited(1))
    finished(backend)
    api.always["get"] = s.refuse(503)
    assert backend.alive(start) is Liveness.GONE
    assert not backend.adopt(order().id, start)


def test_closing_leaves_what_runs_and_what_is_not_in_the_ledger(api: Api, opened: Open) -> None:
    backend = opened()
    for n in (0, 1, 2):
        backend.launch(order(n))
    api.report(name_of(backend, 0), "Running", *running())
    for n in (1, 2):
        api.report(name_of(backend, n), "Succeeded", *exited(0))
    finished(backend, 2)
    backend.settled(order(1).id)
    backend.close()
    assert set(api.pods) == {name_of(backend, 0), name_of(backend, 2)}, "one runs, one's end is not in the ledger"


def test_the_owner_is_made_once_and_never_taken_from_another_campaign(api: Api, opened: Open) -> None:
    for _ in range(2):
        opened().launch(order())
    (config_map,) = api.config_maps.values()
    (pod,) = api.pods.values()
    assert pod["metadata"]["ownerReferences"][0]["uid"] == config_map["metadata"]["uid"]
    config_map["metadata"]["labels"] = {names.CAMPAIGN: "another"}
    with pytest.raises(OperatorError, match="of another campaign"):
        opened()


def test_an_api_server_that_starts_late_is_waited_for(api: Api, opened: Open) -> None:
    api.faults["post"].extend([s.drop, s.refuse(503), s.refuse(403, "Forbidden", "not yet")])
    opened()
    assert api.count("post") == 5, "one each for the Job and the ConfigMap, and those that failed"


def test_a_reflector_that_is_not_allowed_ends_the_poll(api: Api, opened: Open) -> None:
    api.always["list"] = s.refuse(403, "Forbidden", "cannot list pods")
    backend = opened()
    with pytest.raises(OperatorError, match="cannot list pods"):
        finished(backend, within_s=60)


def test_another_image_than_planned_stops_its_pod(api: Api, opened: Open) -> None:
    backend = opened()
    backend.launch(order())
    wrong = {**status("runner", running={}), "imageID": IMAGE_ID.replace("0a", "0b")}
    api.report(name_of(backend), "Running", wrong)
    (one,) = finished(backend)
    assert one.departure.named is not None
    assert one.departure.named.halt == "campaign"
    assert api.pods == {}


def owner_of(pod: dict[str, Any]) -> str:
    (reference,) = pod["metadata"]["ownerReferences"]
    return str(reference["uid"])


def test_an_owner_that_was_deleted_is_made_again_and_named(api: Api, opened: Open) -> None:
    backend = opened()
    for n in (0, 1):
        backend.launch(order(n))
        api.report(name_of(backend, n), "Running", *running())
    (config_map,) = api.config_maps
    assert owner_of(api.pods[name_of(backend)]) == api.config_maps[config_map]["metadata"]["uid"]
    del api.config_maps[config_map]
    for n in (0, 1):
        api.remove(name_of(backend, n))  # as the garbage collector does
    for one in finished(backend, 2):
        loss = classify(one.departure, started=True, patched=False)
        assert loss.loss is LossClass.TERMINATED
        assert f"ConfigMap {config_map} was deleted, and the controller made it again" in loss.message
    backend.launch(order(2))
    assert owner_of(api.pods[name_of(backend, 2)]) == api.config_maps[config_map]["metadata"]["uid"]


def test_an_owner_that_is_there_is_not_blamed_for_a_deletion(api: Api, opened: Open) -> None:
    backend = opened()
    backend.launch(order())
    api.report(name_of(backend), "Running", *running())
    api.remove(name_of(backend))
    (one,) = finished(backend)
    assert classify(one.departure, started=True, patched=False).message == "the pod was deleted"
