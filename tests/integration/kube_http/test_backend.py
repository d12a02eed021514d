"""A pod's life as the backend sees it, from its launch to its deletion."""

from __future__ import annotations

import threading
import time

import pytest
import scripted_api as s
from scripted_api import Api

from tests.integration.kube_http.pods import Open, eventually, exited, finished, name_of, order, running
from tests.unit.controller.kube.lab import status
from trialfleet_controller.backend import Order, TooLate
from trialfleet_controller.classify import classify
from trialfleet_runner.contract import LossClass


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
    eventually(lambda: name not in api.pods)


def test_a_short_pod_may_never_be_seen_running(api: Api, opened: Open) -> None:
    backend = opened()
    backend.launch(order())
    api.report(name_of(backend), "Succeeded", *exited(0))
    assert finished(backend)[0].departure.code == 0


def test_a_pod_that_disappears_without_a_word(api: Api, opened: Open) -> None:
    backend = opened()
    backend.launch(order())
    api.report(name_of(backend), "Running", *running())
    eventually(lambda: backend.working == 1)  # seen, or it is "never seen"
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
    assert "never seen" in classify(one.departure, started=False, patched=False).message


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
    threads = [threading.Thread(target=backend.launch, args=(order(n),), daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(api.pods) == 3)
    time.sleep(0.5)
    assert len(api.pods) == 3
    for name in list(api.pods):
        api.report(name, "Running", *running())
    for thread in threads:
        thread.join(60)
    assert len(api.pods) == 6
    assert backend.slots == 6


def test_a_stop_before_the_pod_is_there(api: Api, opened: Open) -> None:
    backend = opened()
    api.always["create"] = s.refuse(429, retry_after="1")
    thread = threading.Thread(target=backend.launch, args=(order(),), daemon=True)
    thread.start()
    api.wait_for("create", 1)
    backend.stop([order().id], grace_s=1)
    thread.join(60)
    (one,) = finished(backend)
    assert classify(one.departure, started=False, patched=False).loss is LossClass.TERMINATED
    assert api.pods == {}


@pytest.mark.parametrize("full", ["pending", "refused"])
def test_a_launch_that_waits_is_withdrawn_and_what_was_launched_goes_on(api: Api, opened: Open, full: str) -> None:
    backend = opened(max_pending=1 if full == "pending" else 10)
    backend.launch(order(0))
    if full == "refused":
        api.always["create"] = s.refuse(403, "Forbidden", "exceeded quota: trials, used: pods=5, limited: pods=5")
    thread = threading.Thread(target=backend.launch, args=(order(1),), daemon=True)
    thread.start()
    time.sleep(0.5)
    assert thread.is_alive()
    backend.withdraw([order(0).id, order(1).id])
    thread.join(60)
    assert not thread.is_alive()
    (one,) = finished(backend)
    loss = classify(one.departure, started=False, patched=False)
    assert (one.id, loss.loss) == (order(1).id, LossClass.TERMINATED)
    assert "not created" in loss.message
    assert set(api.pods) == {name_of(backend, 0)}


@pytest.mark.parametrize("full", ["pending", "refused"])
def test_a_launch_that_found_no_room_is_given_back_before_its_signatures_end(
    api: Api, opened: Open, full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opened(max_pending=1 if full == "pending" else 10)
    backend.launch(order(0))
    if full == "refused":
        api.always["create"] = s.refuse(403, "Forbidden", "exceeded quota: trials, used: pods=5, limited: pods=5")
    with monkeypatch.context() as hurried:
        hurried.setattr("trialfleet_controller.kube.backend.LAUNCH_S", 1.0)
        with pytest.raises(TooLate):
            backend.launch(order(1))
    assert backend.poll(0) == [], "it is not over: it has not begun"
    api.always.clear()
    api.report(name_of(backend, 0), "Running", *running())
    eventually(lambda: backend.slots == 1 + (1 if full == "pending" else 9))
    backend.launch(Order(order(1).id, b"{}", "https://store.example/again"))
    assert "https://store.example/again" in str(api.pods[name_of(backend, 1)])


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
    monkeypatch.setattr("trialfleet_controller.kube.sweeper.AGAIN_S", 0.2)
    backend = opened()
    backend.launch(order())
    api.faults["delete"].extend([s.refuse(500), s.drop])
    api.report(name_of(backend), "Succeeded", *exited(0))
    finished(backend)
    backend.settled(order().id)
    eventually(lambda: backend.poll(0.05) == [] and not api.pods)
    assert api.count("delete") == 3
