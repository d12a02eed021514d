"""A pod's life as the backend sees it, from its launch to its deletion."""

from __future__ import annotations

import time

import pytest

from tests.integration.kube_http.pods import Open, exited, finished, name_of, order, running
from tests.support import scripted_api as s
from tests.support.raw_pods import status
from tests.support.scripted_api import Api
from tests.support.waiting import in_background, wait_until
from trialfleet_controller.backends.kube.backend import KubernetesBackend
from trialfleet_controller.backends.protocol import Order, TooLate
from trialfleet_controller.backends.runner_termination import classify
from trialfleet_ledger.records.verdicts import LossClass


def test_a_pod_from_its_launch_to_its_deletion(api: Api, opened: Open) -> None:
    backend = opened()
    backend.launch(order())
    name = name_of(backend)
    api.report(name, "Running", *running())
    assert backend.poll(0.3) == []
    api.report(name, "Succeeded", *exited(0))
    (one,) = finished(backend)
    assert (one.id, one.departure.code, one.departure.named) == (order().id, 0, None)
    assert backend.poll(0.3) == [], "each once"
    assert name in api.pods, "until its end is in the ledger"
    backend.settled(order().id)
    backend.poll(0)
    wait_until(lambda: name not in api.pods)


def test_a_short_pod_may_never_be_seen_running(api: Api, opened: Open) -> None:
    backend = opened()
    backend.launch(order())
    api.report(name_of(backend), "Succeeded", *exited(0))
    assert finished(backend)[0].departure.code == 0


def test_a_pod_that_disappears_without_a_word(api: Api, opened: Open) -> None:
    backend = opened()
    backend.launch(order())
    api.report(name_of(backend), "Running", *running())
    wait_until(lambda: backend.working == 1)  # seen, or it is "never listed"
    api.remove(name_of(backend))
    (one,) = finished(backend)
    loss = classify(one.departure, started=True, patched=False)
    assert (loss.loss, "deleted" in loss.message) == (LossClass.TERMINATED, True)


def test_a_pod_that_was_created_and_never_seen(api: Api, opened: Open) -> None:
    def ghost(handler: s.Handler) -> None:
        handler.answer(201, {**handler.body, "metadata": {**handler.body["metadata"], "uid": "ghost"}})

    backend = opened()
    api.faults["create"].append(ghost)
    backend.launch(order())
    (one,) = finished(backend)
    assert "never listed" in classify(one.departure, started=False, patched=False).message


def test_a_pod_that_only_the_watch_missed_is_not_given_up(api: Api, opened: Open) -> None:
    def unseen(handler: s.Handler) -> None:
        made = {**handler.body, "metadata": {**handler.body["metadata"], "uid": "quiet"}, "status": {}}
        api.happen("ADDED", made, told=False)
        handler.answer(201, made)

    backend = opened()
    api.wait_for("watch", 1)
    api.faults["create"].append(unseen)
    backend.launch(order())
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert backend.poll(0.2) == []
    api.report(name_of(backend), "Succeeded", *exited(0))
    assert finished(backend)[0].departure.code == 0


def test_a_pod_made_again_under_its_name_ends_the_attempt_once(api: Api, opened: Open) -> None:
    backend = opened()
    backend.launch(order())
    name = name_of(backend)
    api.report(name, "Running", *running())
    again = {**api.pods[name], "metadata": {**api.pods[name]["metadata"], "uid": "another"}}
    api.happen("ADDED", again)
    (one,) = finished(backend)
    assert "deleted" in classify(one.departure, started=True, patched=False).message
    assert backend.poll(0.3) == []


def test_a_stuck_pod_is_deleted_before_it_is_reported(api: Api, opened: Open) -> None:
    backend = opened()
    backend.launch(order())
    waits = status("runner", waiting={"reason": "ImagePullBackOff", "message": "no such image: not found"})
    api.report(name_of(backend), "Pending", waits)
    (one,) = finished(backend)
    loss = classify(one.departure, started=False, patched=False)
    assert loss.loss is LossClass.IMAGE_PULL
    assert name_of(backend) not in api.pods


def test_no_more_than_max_pending_are_launched_ahead(api: Api, opened: Open) -> None:
    backend = opened(max_pending=3)
    assert backend.slots == 3
    launched = [in_background(backend.launch, order(n)) for n in range(6)]
    wait_until(lambda: len(api.pods) == 3)
    time.sleep(0.5)
    assert len(api.pods) == 3
    for name in list(api.pods):
        api.report(name, "Running", *running())
    for each in launched:
        each.result(60)
    assert len(api.pods) == 6
    assert backend.slots == 6


def test_a_stop_before_the_pod_is_there(api: Api, opened: Open) -> None:
    backend = opened()
    api.always["create"] = s.refuse(429, retry_after="1")
    launched = in_background(backend.launch, order())
    api.wait_for("create", 1)
    backend.stop([order().id], grace_s=1)
    launched.result(60)
    (one,) = finished(backend)
    assert classify(one.departure, started=False, patched=False).loss is LossClass.TERMINATED
    assert api.pods == {}


def without_room(api: Api, opened: Open, full: str) -> KubernetesBackend:
    """After one launch: as many pods as may be are pending, or the namespace's quota is used up."""
    backend = opened(max_pending=1 if full == "pending" else 10)
    backend.launch(order(0))
    if full == "refused":
        api.always["create"] = s.refuse(403, "Forbidden", "exceeded quota: trials, used: pods=5, limited: pods=5")
    return backend


@pytest.mark.parametrize("full", ["pending", "refused"])
def test_a_launch_that_waits_is_withdrawn_and_what_was_launched_goes_on(api: Api, opened: Open, full: str) -> None:
    backend = without_room(api, opened, full)
    launched = in_background(backend.launch, order(1))
    time.sleep(0.5)
    assert not launched.done()
    backend.withdraw([order(0).id, order(1).id])
    launched.result(60)
    (one,) = finished(backend)
    loss = classify(one.departure, started=False, patched=False)
    assert (one.id, loss.loss) == (order(1).id, LossClass.TERMINATED)
    assert "not created" in loss.message
    assert set(api.pods) == {name_of(backend, 0)}


@pytest.mark.parametrize("full", ["pending", "refused"])
def test_a_launch_that_found_no_room_is_given_back_before_its_signatures_end(
    api: Api, opened: Open, full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = without_room(api, opened, full)
    with monkeypatch.context() as hurried:
        hurried.setattr("trialfleet_controller.backends.kube.backend.LAUNCH_S", 1.0)
        with pytest.raises(TooLate):
            backend.launch(order(1))
    assert backend.poll(0) == [], "it is not over: it has not begun"
    api.always.clear()
    api.report(name_of(backend, 0), "Running", *running())
    wait_until(lambda: backend.slots == 1 + (1 if full == "pending" else 9))
    backend.launch(Order(order(1).id, b"{}", "https://store.example/again"))
    assert "https://store.example/again" in str(api.pods[name_of(backend, 1)])


def test_launches_follow_the_dispatchers_rate_alone(api: Api, opened: Open) -> None:
    backend = opened(creates_per_s=0.01, creates_burst=1)
    began = time.monotonic()
    for n in range(3):
        backend.launch(order(n))
    assert time.monotonic() - began < 60, "the dispatcher has counted them: a second limit would last 200 s"
    assert len(api.pods) == 3


def test_a_withdrawal_is_forgotten_when_no_create_of_before_can_succeed_any_more(
    api: Api, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a controller that withdraws for weeks would remember all of it."""
    monkeypatch.setattr("trialfleet_controller.backends.kube.launcher.WITHDRAWN_S", 2.0)
    backend = opened()
    backend.withdraw([order(0).id])
    backend.stop([order(1).id], grace_s=1)
    backend.launch(order(0))
    assert finished(backend)[0].id == order(0).id
    assert api.pods == {}, "not yet"
    time.sleep(2.0)
    backend.poll(0)
    for n in (0, 1):
        backend.launch(order(n))
    assert len(api.pods) == 2


def test_a_stop_deletes_and_the_exit_code_tells(api: Api, opened: Open) -> None:
    backend = opened()
    backend.launch(order())
    api.report(name_of(backend), "Running", *running())
    graces: list[int] = []

    def told_to_stop(handler: s.Handler) -> None:
        graces.append(handler.body["gracePeriodSeconds"])
        api.report(name_of(backend), "Failed", *exited(143))
        handler.answer(200, {})

    api.faults["delete"].append(told_to_stop)
    backend.stop([order().id], grace_s=2.2)
    (one,) = finished(backend)
    assert (one.departure.code, graces) == (143, [3])


def test_a_deletion_that_fails_is_tried_again(api: Api, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trialfleet_controller.backends.kube.pod_cleaner.AGAIN_S", 0.2)
    backend = opened()
    backend.launch(order())
    api.faults["delete"].extend([s.refuse(500), s.drop])
    api.report(name_of(backend), "Succeeded", *exited(0))
    finished(backend)
    backend.settled(order().id)
    wait_until(lambda: backend.poll(0.05) == [] and not api.pods)
    assert api.count("delete") == 3
